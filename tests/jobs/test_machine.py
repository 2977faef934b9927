"""Any sequence of starts, ends, kills, reads, waits and removals of owners, against a model of what they come to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from greenroom.actors.agent import Agent
from greenroom.actors.job import Job
from greenroom.actors.system import open_runtime
from greenroom.protocol.errors import JobError
from greenroom.protocol.jobs import JobSnapshot
from tests.clock import advance
from tests.jobs.conftest import Stage, told

NAMES = ("ada", "bob")
WHICH = st.integers(0, 12)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("start"), st.sampled_from([None, *NAMES])),
        st.tuples(st.just("finish"), WHICH, st.booleans()),
        st.tuples(st.just("kill"), WHICH),
        st.tuples(st.just("read"), WHICH, st.sampled_from(NAMES)),
        st.tuples(st.just("wait"), WHICH, st.sampled_from([0, 3, 1000]), st.booleans()),
        st.tuples(st.just("give up")),
        st.tuples(st.just("pass"), st.sampled_from([1, 5, 600])),
        st.tuples(st.just("remove"), st.sampled_from(NAMES)),
    ),
    max_size=30,
)


@dataclass
class Waiter:
    until: float
    scope: trio.CancelScope
    result: JobSnapshot | None = None
    ended: bool = False


@dataclass
class Modelled:
    """What is to be true of a job."""

    job: Job
    owner: str | None
    gate: trio.Event
    raises: bool = False
    status: str = "running"
    seen: bool = False
    waiters: list[Waiter] = field(default_factory=list)


class Model:
    def __init__(self, stage: Stage, nursery: trio.Nursery) -> None:
        self.stage = stage
        self.nursery = nursery
        self.agents = {name: stage.agent(name) for name in NAMES}
        self.jobs: list[Modelled] = []
        self.told: dict[str, list[str]] = {name: [] for name in NAMES}
        self.waiters: list[tuple[Modelled, Waiter]] = []

    def owner(self, name: str | None) -> Agent | None:
        return None if name is None else self.agents[name]

    def live(self, owner: str | None) -> list[Modelled]:
        return [each for each in self.jobs if each.owner == owner and each.status == "running"]

    def pick(self, number: int) -> Modelled | None:
        return self.jobs[number % len(self.jobs)] if self.jobs else None

    async def step(self, kind: str, *arguments: Any) -> None:
        await getattr(self, kind.replace(" ", "_"))(*arguments)
        await trio.testing.wait_all_tasks_blocked()
        self.check()

    async def start(self, owner: str | None) -> None:
        gate = trio.Event()
        entry: list[Modelled] = []

        async def run(_job: Job) -> str:
            await gate.wait()
            if entry[0].raises:
                raise LookupError("it was not found")
            return f"the output of {entry[0].job.id}"

        if len(self.live(owner)) < 10:
            job = await self.stage.start(run, owner=self.owner(owner), quiet=True)
            entry.append(Modelled(job, owner, gate))
            self.jobs.append(entry[0])
            return
        before = self.stage.called
        with pytest.raises(JobError, match="which is the most"):
            await self.stage.start(run, owner=self.owner(owner), quiet=True)
        assert self.stage.called == before

    async def finish(self, number: int, raises: bool) -> None:
        each = self.pick(number)
        if each is not None and each.status == "running":
            each.raises = raises
            each.gate.set()
            self.over(each, "failed" if raises else "completed")
            if each.owner is not None and not each.seen:
                self.told[each.owner].append(each.job.id)

    def over(self, each: Modelled, status: str) -> None:
        each.status = status
        if each.waiters:
            each.seen = True
            each.waiters.clear()

    async def kill(self, number: int) -> None:
        if (each := self.pick(number)) is not None:
            running = each.status == "running"
            assert each.job.kill("so") == ("cancellation-requested" if running else "already-finished")
            if running:
                self.over(each, "killed")

    async def read(self, number: int, by: str) -> None:
        if (each := self.pick(number)) is None:
            return
        if each.owner not in (None, by):
            with pytest.raises(JobError, match="another agent's"):
                self.stage.jobs.find(each.job.id, by=self.agents[by])
            return
        found = self.stage.jobs.find(each.job.id, by=self.agents[by])
        assert found is each.job
        expected = {"completed": f"the output of {each.job.id}", "failed": "it was not found"}.get(each.status, "")
        assert (found.read(), found.read()) == (expected, expected)
        each.seen = each.seen or each.status != "running"

    async def wait(self, number: int, timeout: float, at_end: bool) -> None:
        if (each := self.pick(number)) is None:
            return
        waiter = Waiter(trio.current_time() + min(timeout, 600), trio.CancelScope())
        self.waiters.append((each, waiter))

        async def wait() -> None:
            with waiter.scope:
                waiter.result = await each.job.wait(timeout)
            waiter.ended = True

        self.nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        if each.status != "running":
            each.seen = True
        elif timeout:
            each.waiters.append(waiter)
            if at_end:  # it is cancelled in the very step in which the job ends
                waiter.scope.cancel()
                each.waiters.remove(waiter)
                await self.finish(number, False)

    async def give_up(self) -> None:
        for each in self.jobs:
            for waiter in each.waiters:
                waiter.scope.cancel()
            each.waiters.clear()

    async def pass_(self, seconds: float) -> None:
        await advance(seconds * 1000)
        for each in self.jobs:
            each.waiters = [waiter for waiter in each.waiters if waiter.until > trio.current_time()]

    async def remove(self, name: str) -> None:
        await self.stage.runtime.agents.remove(name)
        for each in self.jobs:
            if each.owner == name:
                if each.status == "running":
                    self.over(each, "killed")
                assert each.job not in self.stage.jobs.jobs()
        self.jobs = [each for each in self.jobs if each.owner != name]
        self.agents[name] = self.stage.agent(name)
        self.told[name] = []

    def check(self) -> None:
        for each in self.jobs:
            assert each.job.status == each.status
            assert each.job.over is (each.status != "running")
        for name, agent in self.agents.items():
            assert [text.split()[2] for text in told(agent)] == self.told[name]
        waiting = sum(len(each.waiters) for each in self.jobs)
        assert sum(not waiter.ended for _, waiter in self.waiters) == waiting
        assert sum(wait.message == "job" for wait in self.stage.runtime.snapshot().waits) == waiting
        for each, waiter in self.waiters:
            if waiter.result is not None:
                assert waiter.result.id == each.job.id


setattr(Model, "pass", Model.pass_)


@given(STEPS)
@settings(max_examples=100)
def test_jobs_are_what_the_model_says(steps: list[tuple[Any, ...]]) -> None:
    async def run() -> None:
        async with open_runtime() as runtime, trio.open_nursery() as nursery:
            model = Model(Stage(runtime), nursery)
            for step in steps:
                await model.step(*step)
            nursery.cancel_scope.cancel()
            jobs = [each.job for each in model.jobs]
        assert all(job.over for job in jobs)

    trio.run(run, clock=MockClock())
