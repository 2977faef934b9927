"""The driver of a live trio run, and what a stress run tells."""

from __future__ import annotations

import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import ClassVar

import pytest
import trio
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.stress import __main__ as command
from tests.stress.driver import Driver, StillWaiting
from tests.stress.outcome import Failure, Outcome, load, machine


@pytest.fixture
def driver() -> Iterator[Driver]:
    with Driver() as driver:
        yield driver


async def raises(error: BaseException) -> None:
    await trio.lowlevel.checkpoint()
    raise error


class TestTheDriver:
    def test_runs_a_call_to_its_end(self, driver: Driver) -> None:
        async def add(a: int, b: int) -> int:
            await trio.lowlevel.checkpoint()
            return a + b

        assert driver.call(add, 2, 3) == 5
        with pytest.raises(ValueError, match="wrong"):
            driver.call(raises, ValueError("wrong"))
        assert driver.call(add, 2, 3) == 5

    def test_stands_still_between_calls(self, driver: Driver) -> None:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await trio.sleep(1)
                ticks += 1

        driver.spawn(tick)
        assert ticks == 0
        driver.advance(2.5)
        assert (ticks, driver.now()) == (2, 2.5)

    def test_tells_a_call_that_only_a_further_one_could_end(self, driver: Driver) -> None:
        with pytest.raises(StillWaiting, match="sleep"):
            driver.call(trio.sleep, 1)
        assert driver.now() == 0

    def test_keeps_what_was_spawned_until_it_ends(self, driver: Driver) -> None:
        event = trio.Event()
        waiting = driver.spawn(event.wait)
        assert not waiting.done
        with pytest.raises(StillWaiting):
            waiting.result()

        async def wake() -> None:
            event.set()

        driver.call(wake)
        assert waiting.done
        assert waiting.result() is None

    def test_cancels_what_was_spawned(self, driver: Driver) -> None:
        waiting = driver.spawn(trio.sleep_forever)
        driver.cancel(waiting)
        assert waiting.done
        assert waiting.cancelled
        with pytest.raises(RuntimeError, match="cancelled"):
            waiting.result()

    def test_leaves_what_was_entered_innermost_first(self) -> None:
        left: list[str] = []

        @asynccontextmanager
        async def manager(name: str) -> AsyncGenerator[str]:
            yield name
            await trio.sleep(60)  # a grace period, say
            left.append(name)

        driver = Driver()
        assert driver.enter(manager("outer")) == "outer"
        assert driver.enter(manager("inner")) == "inner"
        driver.spawn(trio.sleep_forever)
        driver.close()
        driver.close()
        assert left == ["inner", "outer"]
        with pytest.raises(RuntimeError, match="has ended"):
            driver.settle()

    def test_raises_what_ends_the_run_and_leaves_no_thread(self) -> None:
        before = threading.active_count()

        @asynccontextmanager
        async def failing() -> AsyncGenerator[trio.Nursery]:
            async with trio.open_nursery() as nursery:
                yield nursery

        driver = Driver()
        nursery = driver.enter(failing())

        async def start() -> None:
            nursery.start_soon(raises, ValueError("wrong"))

        with pytest.RaisesGroup(pytest.RaisesGroup(pytest.RaisesExc(ValueError, match="wrong"))):
            driver.call(start)
            driver.settle()
        driver.close()
        assert threading.active_count() == before


class Counter(RuleBasedStateMachine):
    """Sleeps add up; `limit` is where the planted bug is."""

    limit: ClassVar[float] = float("inf")

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver()

    @rule(seconds=st.integers(0, 10))
    def sleep(self, seconds: int) -> None:
        before = self.driver.now()
        spawned = self.driver.spawn(trio.sleep, seconds)
        self.driver.advance(seconds)
        assert spawned.done
        assert self.driver.now() == pytest.approx(before + seconds)
        if self.driver.now() > self.limit:
            raise ValueError("planted")

    def teardown(self) -> None:
        self.driver.close()


class Broken(Counter):
    limit = 12


class TestAMachine:
    def test_plays_the_examples_it_was_asked_for(self) -> None:
        before = threading.active_count()
        assert machine(Counter, steps=5)(20, 1) == Outcome(20, [])
        assert threading.active_count() == before

    def test_tells_the_seed_and_the_shrunken_steps(self) -> None:
        run = machine(Broken, steps=5)
        outcome = run(100, 7)
        (failure,) = outcome.failures
        assert failure.seed == 7
        assert "ValueError: planted" in failure.steps
        assert failure.steps.count("state.sleep(") == 2
        assert run(100, 7) == outcome


class TestTheCommand:
    @pytest.fixture(autouse=True)
    def _runs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Stress:
            SUITE = 300

            @staticmethod
            def run(examples: int, seed: int) -> Outcome:
                return Outcome(examples, [Failure(seed, "state.step()")] if seed else [])

        def stress(name: str) -> type[Stress]:
            return Stress

        monkeypatch.setattr(command, "load", stress)

    def test_prints_the_count_last(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert command.main(["waits", "--seed", "0"]) == 0
        assert capsys.readouterr().out == "waits: 300 examples, 0 failures\n"

    def test_ends_with_1_after_a_failure(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert command.main(["waits", "--seed", "5", "--examples", "20"]) == 1
        *told, last = capsys.readouterr().out.splitlines()
        assert last == "waits: 20 examples, 1 failures"
        assert "failed, seed 5:" in told
        assert "state.step()" in told

    def test_plays_at_least_one_example(self) -> None:
        with pytest.raises(SystemExit):
            command.main(["waits", "--examples", "0"])


@pytest.mark.parametrize("name", ["no-such-run", "outcome", "driver"])
def test_a_run_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(LookupError, match="does not exist"):
        load(name)
