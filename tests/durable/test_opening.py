"""A runtime on a file: whose it is, what it keeps of terminals, and rows that nobody can use any more."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from greenroom.actors.system import open_runtime
from greenroom.actors.terminal import JournalTerminalStore
from greenroom.protocol.errors import FormError, JournalError, TerminalError
from greenroom.protocol.terminals import TerminalSnapshot
from tests.durable.stage import FORM, life
from tests.journal.stage import shell


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


async def test_a_file_has_one_owner(file: Path) -> None:
    async with open_runtime(data=file):
        with pytest.raises(JournalError) as refused:
            async with open_runtime(data=file):
                pass
        assert refused.value.code == "OWNED"
        assert refused.value.context["pid"] == os.getpid()
    async with open_runtime(data=file) as runtime:
        assert runtime.journal is not None


async def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JournalError):
        async with open_runtime(data=tmp_path):
            pass


async def test_without_a_file_there_is_no_journal() -> None:
    async with open_runtime() as runtime:
        assert runtime.journal is None


async def test_the_settings_of_terminals_are_kept_in_the_file(file: Path) -> None:
    async with open_runtime(data=file) as runtime:
        runtime.terminals.add("ops", timeout=20)
        runtime.terminals.add("dev")
        assert await runtime.terminals.save("ops")
        assert await runtime.terminals.save("dev")
    async with open_runtime(data=file, timeout=99) as runtime:
        ops, dev = await runtime.terminals.open("ops"), await runtime.terminals.open("dev")
        assert ops is not None
        assert dev is not None
        assert (ops.timeout, dev.timeout) == (20, 99)
        assert await runtime.terminals.open("nobody") is None


async def test_a_store_forgets_and_what_is_no_snapshot_is_none(file: Path) -> None:
    async with open_runtime(data=file) as runtime:
        assert runtime.journal is not None
        store = JournalTerminalStore(runtime.journal)
        await store.set(TerminalSnapshot("ops", 20))
        await store.set(TerminalSnapshot("ops", 30))
        assert await store.get("ops") == TerminalSnapshot("ops", 30)
        await store.delete("ops")
        await store.delete("ops")
        assert await store.get("ops") is None
    shell(file, "INSERT INTO terminals VALUES ('ops', '{\"id\": 7}')")
    async with open_runtime(data=file) as runtime:
        assert await runtime.terminals.open("ops") is None


async def test_a_form_that_this_program_cannot_show_is_not_shown(file: Path) -> None:
    async with life(file) as before:
        await before.shown("k")
    shell(file, """UPDATE asks SET form = '{"fields": [{"control": "hologram", "name": "x"}]}'""")
    async with life(file) as after:
        with pytest.raises(TerminalError) as taken:
            await after.runtime.ask("ops", FORM, key="k")
        assert taken.value.code == "TAKEN"
        assert after.told == []
        assert after.ops.pending() == []
        assert after.terminals.durable is not None
        await after.terminals.durable.settle()
        assert await after.rows() == [("k", "expired", '"unreadable"')]
        assert await after.terminals.release("k")


async def test_texts_of_any_kind_come_back_as_they_were(file: Path) -> None:
    odd = 'é😀\u2028"\\\x00\x7f'
    form = {"label": odd, "fields": [{"control": "text", "name": "x"}, {"control": "number", "name": "n"}]}
    async with life(file) as before:
        id, _ = await before.shown(odd, form, owner=odd)
        await before.ops.answer(id, {"x": odd + "\ud800", "n": 0.1})
    async with life(file) as after:
        assert await after.ask(odd, form, owner=odd).result() == {"x": odd + "\ud800", "n": 0.1}


@pytest.mark.parametrize("key", ["", 7])
async def test_a_key_is_a_text(file: Path, key: str) -> None:
    async with life(file) as now:
        with pytest.raises(TerminalError) as refused:
            await now.runtime.ask("ops", FORM, key=key)
        assert refused.value.code == "INVALID"


async def test_a_key_that_no_file_can_hold_is_refused(file: Path) -> None:
    async with life(file) as now:
        with pytest.raises(JournalError) as refused:
            await now.runtime.ask("ops", FORM, key="\ud800")
        assert refused.value.code == "REFUSED"
        assert now.ops.count == 0
        id, _ = await now.shown("k")
        assert [record.id for record in now.ops.pending()] == [id]


async def test_an_ask_whose_terminal_is_not_there_is_refused_and_kept(file: Path) -> None:
    async with life(file) as before:
        await before.shown("k")
    async with open_runtime(data=file) as runtime:
        with pytest.raises(TerminalError) as refused:
            await runtime.ask("ops", FORM, key="k")
        assert refused.value.code == "TARGET"
    async with life(file) as after:
        await after.until_told(1)
        await after.ops.stop()
        with pytest.raises(FormError):
            await after.runtime.ask("ops", FORM, key="k")
