"""A durable ask: recorded before it is shown, there again after a restart, and answered once for its owner's key."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio.testing

from greenroom.actors.system import open_runtime
from greenroom.actors.terminal import TerminalManager
from greenroom.protocol.errors import FormError, JournalError, TerminalDeadlock, TerminalError
from greenroom.protocol.forms import FieldRule, Form, FormSchema, TextField
from greenroom.protocol.terminals import AnswerFailure, AnswerSuccess
from greenroom.runtime.actor import Actor, handles
from greenroom.runtime.messages import Message
from tests.durable.stage import FORM, life, refusing

ANSWER = {"x": "yes"}
VALUES = {"x": "yes", "n": 3}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


async def test_the_answer_goes_to_the_asker_and_into_the_record(file: Path) -> None:
    async with life(file) as now:
        id, asking = await now.shown("k", from_="agent", timeout=60)
        assert await now.rows() == [("k", "pending", None)]
        assert await now.ops.answer(id, ANSWER) == AnswerSuccess(value=VALUES)
        assert await asking.result() == VALUES
        assert now.told == ["pending", "answered"]
        assert await now.rows() == [("k", "answered", '{"x":"yes","n":3}')]
        assert now.ops.pending() == []
        assert now.runtime.snapshot().waits == ()


async def test_after_a_restart_the_form_is_there_under_its_id(file: Path) -> None:
    async with life(file) as before:
        _, first = await before.shown("a", Form(FORM, values={"x": "draft"}), from_="agent")
        _, second = await before.shown("b")
        records = before.ops.pending()
        assert [record.durable for record in records] == [True, True]
    assert first.error is not None
    assert first.error.context == {"reason": "stopped"}
    assert "same key" in first.error.message
    async with life(file) as after:
        await after.until_told(2)
        assert after.ops.pending() == records
        # A retry needs only what is missing: the values with which it was asked are there as well.
        assert await after.ops.answer(records[0].id, {"n": 4}) == AnswerSuccess(value={"x": "draft", "n": 4})
        assert await after.ask("a", from_="agent").result() == {"x": "draft", "n": 4}
    assert second.error is not None


async def test_an_asker_that_comes_again_waits_on(file: Path) -> None:
    async with life(file) as before:
        await before.shown("k", from_="agent")
    async with life(file) as after:
        await after.until_told(1)
        asking = after.ask("k", from_="agent")
        await trio.testing.wait_all_tasks_blocked()
        assert [wait.from_ for wait in after.runtime.snapshot().waits] == [("agent",)]
        after.terminals.add("agent")
        with pytest.raises(TerminalDeadlock):
            await after.runtime.ask("agent", FORM, from_="ops")
        (record,) = after.ops.pending()
        await after.ops.answer(record.id, ANSWER)
        assert await asking.result() == VALUES


async def test_the_recorded_answer_needs_no_terminal(file: Path) -> None:
    async with life(file) as before:
        id, _ = await before.shown("k")
        await before.ops.answer(id, ANSWER)
    async with open_runtime(data=file) as runtime:
        assert await runtime.ask("ops", FORM, key="k") == VALUES


async def test_a_cancelled_asker_leaves_its_form_and_finds_it_again(file: Path) -> None:
    async with life(file) as now:
        id, asking = await now.shown("k")
        asking.scope.cancel()
        await asking.done.wait()
        assert now.told == ["pending"]
        assert now.runtime.snapshot().waits == ()
        again = now.ask("k")
        await trio.testing.wait_all_tasks_blocked()
        assert now.told == ["pending"], "it is not shown a second time"
        await now.ops.answer(id, ANSWER)
        assert await again.result() == VALUES


async def test_askers_of_one_key_all_get_the_answer(file: Path) -> None:
    async with life(file) as now:
        first, second = now.ask("k"), now.ask("k")
        await now.until_told(1)
        (record,) = now.ops.pending()
        await now.ops.answer(record.id, ANSWER)
        assert await first.result() == await second.result() == VALUES


async def test_a_key_is_its_owners_alone(file: Path) -> None:
    async with life(file) as now:
        first, asking = await now.shown("k", owner="run/1")
        second, other = await now.shown("k", owner="run/2")
        assert first != second
        await now.ops.answer(second, {"x": "two"})
        await now.ops.answer(first, {"x": "one"})
        assert (await asking.result())["x"] == "one"
        assert (await other.result())["x"] == "two"


async def test_a_key_names_one_question(file: Path) -> None:
    async with life(file) as now:
        now.terminals.add("dev")
        await now.shown("k")
        with pytest.raises(TerminalError) as elsewhere:
            await now.runtime.ask("dev", FORM, key="k")
        with pytest.raises(TerminalError) as another:
            await now.runtime.ask("ops", {"fields": [{"control": "text", "name": "y"}]}, key="k")
        assert elsewhere.value.code == another.value.code == "TAKEN"
        assert "of ops" in elsewhere.value.message
        assert now.told == ["pending"]


# -------------------------------------------------------------------- what cannot be durable


async def test_a_password_is_refused_by_name(file: Path) -> None:
    async with life(file) as now:
        form = Form({"fields": [{"control": "text", "name": "user"}, {"control": "password", "name": "pin"}]})
        with pytest.raises(TerminalError) as refused:
            await now.terminals.ask(None, "ops", form, key="k")
        assert refused.value.code == "DURABLE"
        assert refused.value.context == {"fields": ["pin"]}
        assert form.status == "editing"
        assert await now.rows() == []


async def test_a_custom_rule_is_refused_by_name(file: Path) -> None:
    schema = FormSchema(fields=(TextField(name="x", rule=FieldRule(custom=lambda value, values: True)),))
    async with life(file) as now:
        with pytest.raises(TerminalError) as refused:
            await now.runtime.ask("ops", Form(schema), key="k")
        assert refused.value.context == {"fields": ["x"]}


async def test_without_a_journal_there_is_no_durable_ask() -> None:
    async with open_runtime() as runtime:
        runtime.terminals.add("ops")
        with pytest.raises(TerminalError, match="data=FILE") as refused:
            await runtime.ask("ops", FORM, key="k")
        assert refused.value.code == "DURABLE"
        with pytest.raises(TerminalError):
            await runtime.terminals.release("k")


# -------------------------------------------------------------------- how long a record lives


async def test_release_forgets_an_answer(file: Path) -> None:
    async with life(file) as now:
        id, asking = await now.shown("k")
        await now.ops.answer(id, ANSWER)
        await asking.result()
        assert await now.terminals.release("k") is True
        assert await now.terminals.release("k") is False
        assert await now.rows() == []
        again, _ = await now.shown("k")
        assert again != id


async def test_release_withdraws_what_is_pending(file: Path) -> None:
    async with life(file) as now:
        _, asking = await now.shown("k")
        assert await now.terminals.release("k") is True
        assert now.told == ["pending", "withdrawn"]
        with pytest.raises(FormError) as abandoned:
            await asking.result()
        assert abandoned.value.context == {"reason": "withdrawn"}
        assert await now.rows() == []


async def test_release_reaches_forms_whose_terminal_is_not_there(file: Path) -> None:
    async with life(file) as before:
        await before.shown("k")
    async with open_runtime(data=file) as runtime:
        assert await runtime.terminals.release("k") is True
    async with life(file) as after:
        assert await after.rows() == []
        assert after.ops.count == 0


class Ask(Message, frozen=True):
    """Ask `ops` durably, beside the mailbox."""


class Finish(Message, frozen=True):
    """End."""


class Agent(Actor):
    """Asks with a key, as itself."""

    def __init__(self, terminals: TerminalManager) -> None:
        super().__init__()
        self.terminals = terminals

    @handles(Ask)
    def ask(self, message: Ask) -> None:
        self.start_soon(self._ask)

    async def _ask(self) -> None:
        await self.terminals.ask(None, "ops", Form(FORM), key="k")

    @handles(Finish)
    def finish(self, message: Finish) -> None:
        self.end()


@pytest.mark.parametrize("how", ["ends", "is stopped"])
async def test_a_record_ends_with_the_actor_that_owns_it(file: Path, how: str) -> None:
    async with life(file) as now:
        agent = now.runtime.spawn(Agent(now.terminals), "agent")
        agent.tell(Ask())
        await now.until_told(1)
        if how == "ends":
            agent.tell(Finish())
        else:
            await agent.stop()
        await now.until_told(2)
        assert now.told == ["pending", "withdrawn"]
        assert await now.rows() == []


async def test_a_record_outlives_its_owner_where_everything_ends(file: Path) -> None:
    async with life(file) as before:
        before.runtime.spawn(Agent(before.terminals), "agent").tell(Ask())
        await before.until_told(1)
        (record,) = before.ops.pending()
    async with life(file) as after:
        after.runtime.spawn(Agent(after.terminals), "agent").tell(Ask())
        await after.until_told(1)
        assert [pending.id for pending in after.ops.pending()] == [record.id]


async def test_all_records_of_an_owner_end_together(file: Path) -> None:
    async with life(file) as now:
        await now.shown("a", owner="run")
        answered, _ = await now.shown("b", owner="run")
        await now.shown("a", owner="another")
        await now.ops.answer(answered, ANSWER)
        assert await now.terminals.release_all("run") == 2
        assert await now.rows() == [("a", "pending", None)]


# -------------------------------------------------------------------- a journal that refuses


async def test_what_cannot_be_recorded_is_not_asked(file: Path) -> None:
    async with life(file) as now:
        form = Form(FORM)
        with refusing(now.runtime), pytest.raises(JournalError) as refused:
            await now.runtime.ask("ops", form, key="k")
        assert refused.value.code == "READONLY"
        assert form.status == "editing"
        assert now.told == []
        assert now.ops.count == 0
        await now.shown("k", form)


async def test_an_answer_that_cannot_be_recorded_leaves_the_form_as_it_was_asked(file: Path) -> None:
    async with life(file) as now:
        id, asking = await now.shown("k", timeout=60)
        with refusing(now.runtime), pytest.raises(JournalError) as refused:
            await now.ops.answer(id, {"x": "lost", "n": 9})
        assert refused.value.code == "READONLY"
        assert now.told == ["pending", "pending"], "nobody heard of an answer; those who forgot the form see it again"
        assert [record.id for record in now.ops.pending()] == [id]
        assert now.ops.remaining()[id] == pytest.approx(60, abs=30)
        assert await now.ops.answer(id, ANSWER) == AnswerSuccess(value=VALUES)
        assert await asking.result() == VALUES


async def test_on_a_full_disk_nothing_is_asked_and_what_was_asked_stays(file: Path) -> None:
    large = {"label": "x" * 60_000, "fields": FORM["fields"]}
    async with life(file) as now:
        id, asking = await now.shown("k")
        assert now.runtime.journal is not None
        writer = now.runtime.journal._writer._file.writer
        writer.execute("PRAGMA max_page_count = 1")  # which means: no page more than there are
        with pytest.raises(JournalError) as full:
            await now.runtime.ask("ops", large, key="large")
        assert full.value.code == "FULL"
        assert [record.id for record in now.ops.pending()] == [id]
        writer.execute("PRAGMA max_page_count = 1000000")
        await now.shown("large", large)
        await now.ops.answer(id, ANSWER)
        assert await asking.result() == VALUES


async def test_while_an_answer_is_being_recorded_nobody_else_answers(file: Path) -> None:
    async with life(file) as now:
        id, asking = await now.shown("k")
        results: list[object] = []

        async def answer(value: str) -> None:
            results.append(await now.ops.answer(id, {"x": value}))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer, "one")
            nursery.start_soon(answer, "two")
        assert sum(isinstance(result, AnswerFailure) for result in results) == 1
        (accepted,) = [result for result in results if isinstance(result, AnswerSuccess)]
        assert await asking.result() == accepted.value


async def test_a_stop_that_cannot_be_recorded_stops_nothing(file: Path) -> None:
    async with life(file) as now:
        id, _ = await now.shown("k")
        with refusing(now.runtime), pytest.raises(JournalError):
            await now.ops.stop(id)
        assert [record.id for record in now.ops.pending()] == [id]
        assert await now.ops.stop(id) is True
        assert now.told[-1] == "expired: stopped"
