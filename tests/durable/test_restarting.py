"""A terminal that begins anew, one that is removed, and time that passes while no process runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from greenroom.actors.system import open_runtime
from greenroom.actors.terminal.actor import Release
from greenroom.protocol.errors import FormError
from greenroom.protocol.forms import Form
from greenroom.protocol.terminals import AnswerSuccess
from greenroom.runtime.restart import Restart
from tests.clock import advance, settle
from tests.durable.stage import FORM, Asking, life, refusing

ANSWER = {"x": "yes"}
VALUES = {"x": "yes", "n": 3}
DAY = 86_400.0


class WallClock:
    """Wall time that follows trio's, from whenever the process began."""

    def __init__(self) -> None:
        self.started = 1e9

    def __call__(self) -> float:
        return self.started + trio.current_time()


@pytest.fixture
def wall_clock() -> WallClock:
    return WallClock()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "journal.db"


# -------------------------------------------------------------------- time


async def test_the_time_without_a_process_counts(file: Path, wall_clock: WallClock, mock_clock: MockClock) -> None:
    async with life(file, wall_clock=wall_clock) as before:
        before.ask("k", timeout=60)
        await settle()
        await advance(20_000)
        (record,) = before.ops.pending()
    wall_clock.started += 30
    async with life(file, wall_clock=wall_clock) as after:
        asking = after.ask("k")
        await settle()
        assert after.ops.remaining() == {record.id: pytest.approx(10)}
        await advance(9_999)
        assert after.told == ["pending"]
        await advance(1)
        assert after.told == ["pending", "expired: timeout"]
        with pytest.raises(FormError) as abandoned:
            await asking.result()
        assert abandoned.value.context == {"reason": "timeout"}


async def test_what_is_overdue_is_never_shown(file: Path, wall_clock: WallClock, mock_clock: MockClock) -> None:
    async with life(file, wall_clock=wall_clock) as before:
        before.ask("k", timeout=60)
        await settle()
    wall_clock.started += 61
    async with life(file, wall_clock=wall_clock) as after:
        await settle()
        assert "pending" not in after.told
        assert after.ops.pending() == []
        assert await after.rows() == [("k", "expired", '"timeout"')]
    async with open_runtime(data=file, wall_clock=wall_clock) as runtime:
        with pytest.raises(FormError) as abandoned:
            await runtime.ask("ops", FORM, key="k")
        assert abandoned.value.context == {"reason": "timeout"}


async def test_a_form_without_a_limit_waits_for_ever(file: Path, wall_clock: WallClock, mock_clock: MockClock) -> None:
    async with life(file, wall_clock=wall_clock) as before:
        before.ask("k", timeout=None)
        await settle()
    wall_clock.started += 400 * DAY
    async with life(file, wall_clock=wall_clock) as after:
        await settle()
        assert len(after.ops.pending()) == 1
        assert after.ops.remaining() == {}


async def test_an_accepted_answer_has_no_deadline_any_more(
    file: Path, wall_clock: WallClock, mock_clock: MockClock
) -> None:
    async with life(file, wall_clock=wall_clock) as now:
        asking = now.ask("k", timeout=1)
        await settle()
        (record,) = now.ops.pending()
        results: list[object] = []

        async def answer() -> None:
            results.append(await now.ops.answer(record.id, ANSWER))

        now.nursery.start_soon(answer)
        await trio.testing.wait_all_tasks_blocked()
        mock_clock.jump(2)
        await settle()
        assert results == [AnswerSuccess(value=VALUES)]
        assert await asking.result() == VALUES


async def test_a_form_expires_also_where_that_cannot_be_recorded(
    file: Path, wall_clock: WallClock, mock_clock: MockClock
) -> None:
    async with life(file, wall_clock=wall_clock) as now:
        asking = now.ask("k", timeout=1)
        await settle()
        with refusing(now.runtime):
            await advance(1_000)
        assert now.told == ["pending", "expired: timeout"]
        for again in (asking, now.ask("k")):
            with pytest.raises(FormError):
                await again.result()


# -------------------------------------------------------------------- terminals that end and begin


async def test_a_restarted_terminal_offers_its_durable_forms_again(file: Path) -> None:
    async with life(file) as now:
        await now.terminals.remove("ops")
        ops = now.terminals.add("ops", restart=Restart("on_failure"))
        durable = now.ask("k")
        await now.until_told(1)
        plain = Asking()
        now.nursery.start_soon(plain.run, lambda: now.runtime.ask("ops", FORM))
        await now.until_told(2)
        (kept,) = [record for record in ops.pending() if record.durable]
        ops.ref.life.fail(RuntimeError("a bug"))
        await now.until_told(5)
        assert now.told == ["pending", "pending", "expired: restarted", "expired: restarted", "pending"]
        assert ops.pending() == [kept]
        with pytest.raises(FormError) as lost:
            await plain.result()
        assert lost.value.context == {"reason": "restarted"}
        assert await ops.answer(kept.id, ANSWER) == AnswerSuccess(value=VALUES)
        assert await durable.result() == VALUES


async def test_a_restart_while_an_answer_is_being_recorded_loses_no_answer(file: Path) -> None:
    async with life(file) as now:
        await now.terminals.remove("ops")
        ops = now.terminals.add("ops", restart=Restart("on_failure"))
        asking = now.ask("k")
        await now.until_told(1)
        (record,) = ops.pending()
        answering = Asking()

        async def answer() -> dict[str, object]:
            return {"result": await ops.answer(record.id, ANSWER)}

        now.nursery.start_soon(answering.run, answer)
        await trio.testing.wait_all_tasks_blocked()
        ops.ref.life.fail(RuntimeError("a bug"))
        assert await asking.result() == VALUES
        assert await now.rows() == [("k", "answered", '{"x":"yes","n":3}')]
        assert ops.count == 0


async def test_a_removed_terminals_forms_have_expired_for_good(file: Path) -> None:
    async with life(file) as before:
        _, asking = await before.shown("k")
        assert await before.terminals.remove("ops") is True
        assert await before.rows() == [("k", "expired", '"removed"')]
        with pytest.raises(FormError) as abandoned:
            await asking.result()
        assert abandoned.value.context == {"reason": "removed"}
        assert before.terminals.add("ops").pending() == []
    async with life(file) as after:
        with pytest.raises(FormError):
            await after.ask("k").result()
        assert after.told == []


@pytest.mark.parametrize("withdraw", [False, True])
async def test_what_is_taken_back_stays_away(file: Path, withdraw: bool) -> None:
    async with life(file) as before:
        id, _ = await before.shown("k")
        await (before.ops.withdraw(id) if withdraw else before.ops.stop(id))
        assert before.told == ["pending", "withdrawn" if withdraw else "expired: stopped"]
    async with life(file) as after:
        with pytest.raises(FormError) as abandoned:
            await after.ask("k").result()
        assert abandoned.value.context == {"reason": "withdrawn" if withdraw else "stopped"}
        assert after.told == []


async def test_several_are_stopped_together(file: Path) -> None:
    async with life(file) as now:
        for key in "abc":
            await now.shown(key)
        await now.ops.stop()
        assert {status for _, status, _ in await now.rows()} == {"expired"}
        assert now.ops.count == 0


async def test_a_program_that_is_cancelled_keeps_its_forms(file: Path) -> None:
    with trio.CancelScope() as scope:
        async with life(file) as before:
            await before.shown("k")
            scope.cancel()
            await trio.lowlevel.checkpoint()
    async with life(file) as after:
        assert await after.rows() == [("k", "pending", None)]


async def test_a_program_that_fails_keeps_its_forms(file: Path) -> None:
    with pytest.RaisesGroup(RuntimeError):
        async with life(file) as before:
            await before.shown("k")
            raise RuntimeError("a bug")
    async with life(file) as after:
        assert await after.rows() == [("k", "pending", None)]


# -------------------------------------------------------------------- the form's own end


@pytest.mark.parametrize("end", ["submit", "destroy"])
async def test_an_ask_ends_with_its_form_whoever_ended_it(file: Path, end: str) -> None:
    async with life(file) as now:
        form = Form(FORM, values={"x": "mine"})
        _, asking = await now.shown("k", form)
        finish: Callable[[], object] = form.submit if end == "submit" else form.destroy
        finish()
        if end == "submit":
            assert await asking.result() == {"x": "mine", "n": 3}
        else:
            with pytest.raises(FormError):
                await asking.result()
        assert now.ops.count == 0
        ((_, status, _),) = await now.rows()
        assert status == ("answered" if end == "submit" else "expired")


async def test_a_listener_may_tell_the_terminal_to_release(file: Path) -> None:
    async with life(file) as now:
        now.ops.emitter.on("pending", lambda record: now.ops.ref.tell(Release((record.id,))))
        with pytest.raises(FormError) as abandoned:
            await now.ask("k").result()
        assert abandoned.value.context == {"reason": "stopped"}
