"""Results that are too large for a model's context."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.actors.agent import Agent
from greenroom.actors.providers import ScriptedProvider
from greenroom.actors.system import Runtime, open_runtime
from greenroom.protocol.agents import MessageInput, ProviderResult
from greenroom.runtime.pipeline.invocations import Settled
from greenroom.runtime.pipeline.verdicts import Accept, Block
from greenroom.runtime.policies import LocalSpill, SpillStore, spill_policy
from greenroom.runtime.policies.spill import excerpt
from greenroom.runtime.tools import Tool
from tests.pipeline.track import Track, call

CAP = 400


class FullDisk:
    async def save(self, owner: str, name: str, text: str) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
async def runtime() -> AsyncIterator[Runtime]:
    async with open_runtime() as runtime:
        yield runtime


def inside(folder: Path) -> list[Path]:
    return list(folder.iterdir())


async def shown(runtime: Runtime, text: str, store: SpillStore) -> tuple[str, Any]:
    """What a model is shown of a tool that returns the text, and what observers are told that it returned."""
    settled: list[Settled] = []
    runtime.bus.on("tools/post-execute", spill_policy(store, max_inline_bytes=CAP), prepend=True)
    runtime.bus.on("tools/result", settled.append)
    calling = ProviderResult("", tools=(call("look"),))
    agent = Agent(ScriptedProvider([calling, ProviderResult("Seen.")]), id="ada", tools=[Tool("look", lambda: text)])
    runtime.agents.add(agent).context.messages.add(MessageInput("user", "Look."))
    assert (await agent.generate()).content == "Seen."
    (content,) = [message.content for message in agent.context.messages.view() if message.role == "tool"]
    (told,) = settled
    return content, getattr(told.outcome, "value", None)


@pytest.mark.case("pipeline", 40)
async def test_a_text_one_byte_over_the_cap_is_kept_in_a_file_and_its_excerpt_fits(
    runtime: Runtime, tmp_path: Path
) -> None:
    text = "ü" + "x" * (CAP - 3)  # in JSON two quotes more
    content, value = await shown(runtime, text, LocalSpill(tmp_path / "spill"))
    assert value == text
    assert len(content.encode()) <= CAP
    (folder,) = inside(tmp_path / "spill")
    (file,) = inside(folder)
    assert file.read_text("utf-8") == f'"{text}"'
    assert str(file) in content
    assert content.startswith('"üxx')
    assert content.endswith('xx"')
    assert (stat.S_IMODE(folder.stat().st_mode), stat.S_IMODE(file.stat().st_mode)) == (0o700, 0o600)
    assert folder.name.startswith("session-")
    assert file.name.endswith("-look")


async def test_a_text_at_the_cap_is_left_alone(runtime: Runtime, tmp_path: Path) -> None:
    text = "x" * (CAP - 2)
    assert await shown(runtime, text, LocalSpill(tmp_path)) == (f'"{text}"', text)
    assert inside(tmp_path) == []


@pytest.mark.case("pipeline", 40)
async def test_where_the_disk_is_full_the_text_stays_and_the_call_succeeds(
    runtime: Runtime, caplog: pytest.LogCaptureFixture
) -> None:
    text = "x" * CAP
    assert await shown(runtime, text, FullDisk()) == (f'"{text}"', text)
    assert "cannot be saved: [Errno 28]" in caplog.text


class FarAway:
    async def save(self, owner: str, name: str, text: str) -> str:
        return "/far/" * CAP


class Unspeakable:
    async def save(self, owner: str, name: str, text: str) -> str:
        return "/mnt/\udcff"


@pytest.mark.parametrize(("store", "reason"), [(FarAway(), "no room"), (Unspeakable(), "surrogates not allowed")])
async def test_where_the_place_cannot_be_told_the_text_stays_and_the_reason_is_logged(
    runtime: Runtime, store: SpillStore, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    text = "x" * CAP
    assert await shown(runtime, text, store) == (f'"{text}"', text)
    assert reason in caplog.text


async def test_a_folder_that_others_may_read_is_shut(tmp_path: Path) -> None:
    store = LocalSpill(tmp_path)
    folder = Path(await store.save("ada", "look", "first")).parent
    folder.chmod(0o755)
    await store.save("ada", "look", "second")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


async def test_in_a_folder_of_another_account_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalSpill(tmp_path)
    folder = Path(await store.save("ada", "look", "first")).parent
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    with pytest.raises(PermissionError, match="another account"):
        await store.save("ada", "look", "second")
    assert len(inside(folder)) == 1


async def test_a_text_that_cannot_be_written_leaves_no_file(tmp_path: Path) -> None:
    store = LocalSpill(tmp_path)
    folder = Path(await store.save("ada", "look", "first")).parent
    with pytest.raises(UnicodeEncodeError):
        await store.save("ada", "look", "lone \ud800")
    assert len(inside(folder)) == 1


async def test_what_nobody_owns_and_what_was_blocked_or_replaced_stays(caplog: pytest.LogCaptureFixture) -> None:
    track = Track()
    track.tool(lambda: "x" * CAP)
    track.bus.on("tools/post-execute", spill_policy(FullDisk(), max_inline_bytes=CAP), prepend=True)
    await track.value()
    assert "no agent owns it" in caplog.text
    caplog.clear()
    for review in (Block("x" * CAP), Accept(value="y" * CAP)):
        track.on(track.pipeline.post_execute, lambda settled, review=review: review, prepend=False)
    assert await track.error() == "x" * CAP
    assert caplog.text == ""


async def test_a_link_in_the_place_of_a_folder_is_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    store = LocalSpill(tmp_path / "spill")
    folder = Path(await store.save("ada", "look", "first")).parent
    inside(folder)[0].unlink()
    folder.rmdir()
    folder.symlink_to(elsewhere)
    kept = Path(await store.save("ada", "../../look", "second"))
    assert inside(folder) == [kept]
    assert kept.parent == folder
    assert kept.name.endswith("-.._.._look")
    assert not folder.is_symlink()
    assert inside(elsewhere) == []


async def test_a_file_that_could_not_be_written_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = LocalSpill(tmp_path)

    def full(descriptor: int, data: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        await store.save("ada", "look", "text")
    (folder,) = inside(tmp_path)
    assert inside(folder) == []


async def test_without_a_root_there_is_a_private_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    store = LocalSpill()
    first, second = Path(await store.save("ada", "look", "x")), Path(await store.save("bob", "look", "x"))
    assert first.parent.parent == second.parent.parent
    assert first.parent != second.parent
    assert stat.S_IMODE(first.parent.parent.stat().st_mode) == 0o700


@given(st.text(alphabet="aü€😀", min_size=1, max_size=200), st.integers(0, 300))
def test_an_excerpt_fits_and_is_made_of_both_ends(text: str, most: int) -> None:
    short = excerpt(text, "/p", most)
    if short is None:
        assert most < 100
        return
    assert len(short.encode()) <= most
    head, tail = short.split("\n[... ", 1)[0], short.rsplit(" ...]\n", 1)[1]
    assert text.startswith(head)
    assert text.endswith(tail)
