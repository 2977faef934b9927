"""Snapshots: what is one, and how a table keeps it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from greenroom.actors.system import open_runtime
from greenroom.actors.workspace import WORKSPACES, TableWorkspaceStore, WorkspaceManager
from greenroom.protocol.workspace import Snapshot, create_file, parse_snapshot
from greenroom.runtime.journal import Journal, open_journal
from tests.workspace.conftest import PNG, texts

SNAPSHOT = Snapshot("w", (*texts(a="é😀\r\n"), create_file("half", "\ud83d"), create_file("", ""), PNG))
TEXT: dict[str, Any] = msgspec.to_builtins(SNAPSHOT.files[0])
BYTES: dict[str, Any] = msgspec.to_builtins(PNG)


def test_a_snapshot_survives_json() -> None:
    assert parse_snapshot(json.loads(json.dumps(msgspec.to_builtins(SNAPSHOT)))) == SNAPSHOT


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {"id": "w"},
        {"id": 1, "files": []},
        {"id": "w", "files": {}},
        {"id": "w", "files": [None]},
        {"id": "w", "files": [TEXT, {**TEXT, "path": 1}]},
        {"id": "w", "files": [{**TEXT, "state": "removed"}]},
        {"id": "w", "files": [{**TEXT, "size": "1"}]},
        {"id": "w", "files": [{**TEXT, "lines": True}]},
        {"id": "w", "files": [{**TEXT, "content": {"text": "x"}}]},
        {"id": "w", "files": [{**TEXT, "content": {"text": 1, "language": "text"}}]},
        {"id": "w", "files": [{**BYTES, "content": {"data": "AAAA", "mime": "application/pdf"}}]},
        {"id": "w", "files": [{**BYTES, "content": {"mime": "image/png"}}]},
    ],
)
def test_anything_else_is_none(value: object) -> None:
    assert parse_snapshot(value) is None


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Journal]:
    async with open_runtime() as runtime:
        yield await open_journal(runtime.tree, tmp_path / "journal", tables=[WORKSPACES])


async def test_a_table_keeps_one_snapshot_a_workspace(journal: Journal) -> None:
    store = TableWorkspaceStore(journal)
    assert await store.get("w") is None
    await store.set(Snapshot("w", ()))
    await store.set(SNAPSHOT)
    await store.set(Snapshot("other", ()))
    assert await store.get("w") == SNAPSHOT
    await store.delete("w")
    await store.delete("w")
    assert await store.get("w") is None
    assert await store.get("other") == Snapshot("other", ())


@pytest.mark.parametrize("stored", ["", "{", '{"id": "w"}', "[" * 100_000])
async def test_what_is_no_snapshot_is_none_in_a_table_too(journal: Journal, stored: str) -> None:
    await journal.write(WORKSPACES.upsert(id="w", snapshot=stored))
    assert await TableWorkspaceStore(journal).get("w") is None


async def test_a_workspace_comes_back_in_another_process_life(tmp_path: Path) -> None:
    for expected in (None, SNAPSHOT.files):
        async with open_runtime() as runtime:
            journal = await open_journal(runtime.tree, tmp_path / "journal", tables=[WORKSPACES])
            workspaces = WorkspaceManager(runtime.tree, store=TableWorkspaceStore(journal))
            opened = await workspaces.open("w")
            assert (opened and await opened.files()) == expected
            workspaces.add("w", SNAPSHOT.files)
            assert await workspaces.save("w")
