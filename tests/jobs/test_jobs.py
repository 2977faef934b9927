"""Jobs from their start to their end: who may start, read, await and kill them, and what is left of them."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing
from trio.testing import MockClock

import greenroom
from greenroom.actors.agent import Agent, delegate
from greenroom.actors.job import Job, job_owner
from greenroom.actors.system import open_runtime
from greenroom.protocol.errors import ActorDeadlock, ActorError, JobError
from greenroom.runtime.lineage import Lineage, beneath, current_lineage
from greenroom.runtime.patience import patient_scope
from tests.cancelling import Doomed, at_every_step
from tests.clock import advance
from tests.jobs.conftest import Stage, at_once


async def test_a_job_has_an_id_of_its_kind_and_lives_beneath_its_owner(stage: Stage) -> None:
    ada = stage.agent("ada")
    first = await stage.start(owner=ada)
    second = await stage.start(kind="a/b")
    third = await stage.start(owner=ada)
    assert [job.id for job in (first, second, third)] == ["bash-1", "a/b-1", "bash-2"]
    assert first.place.ref.path == "/agents/ada/jobs/bash-1"
    assert second.place.ref.path.startswith("/jobs/")
    assert (first.status, first.owner, second.owner) == ("running", "/agents/ada", None)


async def test_what_the_work_returns_is_its_output_the_same_at_each_read(stage: Stage) -> None:
    gate = trio.Event()

    async def work(_job: Job) -> str:
        await gate.wait()
        return "built"

    job = await stage.start(work)
    assert job.read() == ""
    gate.set()
    over = await job.wait()
    assert (over.status, over.id, over.label) == ("completed", "bash-1", "Look for it")
    assert over.finished_at is not None
    assert over.finished_at >= over.started_at
    assert (job.read(), job.read()) == ("built", "built")


async def test_what_the_work_writes_is_read_once(stage: Stage) -> None:
    gates = [trio.Event(), trio.Event()]

    async def work(job: Job) -> str:
        job.write("one ")
        job.write("two")
        await gates[0].wait()
        job.write("three")
        await gates[1].wait()
        job.write("\ud800 four")
        return "this is not read"

    job = await stage.start(work)
    await trio.testing.wait_all_tasks_blocked()
    assert (job.read(), job.read()) == ("one two", "")
    gates[0].set()
    await trio.testing.wait_all_tasks_blocked()
    assert job.read() == "three"
    gates[1].set()
    await job.wait()
    assert (job.read(), job.read()) == ("? four", "")


async def test_output_that_nobody_reads_is_kept_by_its_end(stage: Stage) -> None:
    async def work(job: Job) -> None:
        for number in range(10_000):
            job.write(f"{number:05}\n")

    job = await stage.start(work, output_limit_bytes=600)
    await job.wait()
    notice, _, rest = job.read().partition("\n")
    assert rest == "".join(f"{number:05}\n" for number in range(9_900, 10_000))
    assert notice == f"[... {6 * 9_900} characters before this were dropped ...]"


async def test_work_that_raises_has_failed(stage: Stage) -> None:
    async def work(_job: Job) -> str:
        raise OSError("the disk\nis full" + "!" * 1000)

    job = await stage.start(work)
    over = await job.wait()
    assert (over.status, over.detail) == ("failed", "the disk is full" + "!" * 181 + "...")
    assert job.read() == "the disk\nis full" + "!" * 1000


async def test_the_work_says_how_it_ends(stage: Stage) -> None:
    async def work(job: Job) -> None:
        job.note("exit code 3")
        job.note("its time\nwas over", ending="failed")

    over = await (await stage.start(work)).wait()
    assert (over.status, over.detail) == ("failed", "its time was over")


# -------------------------------------------------------------------- starting


@pytest.mark.case("pipeline", 33)
async def test_anothers_job_is_foreign_and_an_eleventh_is_refused_before_its_work_is_called(stage: Stage) -> None:
    ada, bob = stage.agent("ada"), stage.agent("bob")
    mine = [await stage.start(owner=ada) for _ in range(10)]
    with pytest.raises(JobError, match="another agent's") as foreign:
        stage.jobs.find("bash-1", by=bob)
    assert foreign.value.code == "FOREIGN"
    with pytest.raises(JobError, match="bash-1, bash-2") as refused:
        await stage.start(owner=ada)
    assert (refused.value.code, stage.called) == ("LIMIT", 10)
    assert (await stage.start(owner=bob)).id == "bash-11", "no id was used"
    mine[0].kill()
    assert mine[0].status == "stopping"
    with pytest.raises(JobError):
        await stage.start(owner=ada)
    await mine[0].wait()
    assert (await stage.start(owner=ada)).id == "bash-12"


async def test_jobs_that_are_nobodys_share_a_bucket_and_are_open_to_all(stage: Stage) -> None:
    for _ in range(10):
        await stage.start()
    with pytest.raises(JobError, match="nobody"):
        await stage.start()
    assert stage.jobs.find("bash-3", by=stage.agent("ada")) is stage.jobs.find("bash-3", by=None)


async def test_an_owner_that_does_not_live_can_start_nothing(stage: Stage) -> None:
    ada = stage.agent("ada")
    await stage.runtime.agents.remove("ada")
    nowhere = Agent(ada.provider, id="nowhere")
    for owner in (ada, nowhere):
        with pytest.raises(JobError) as refused:
            await stage.start(owner=owner)
        assert refused.value.code == "OWNER"
    assert stage.called == 0


async def test_work_that_cannot_even_be_called_leaves_nothing(stage: Stage) -> None:
    def broken(_job: Job) -> Any:
        raise LookupError("there is no such program")

    with pytest.raises(LookupError):
        await stage.start(broken)
    assert stage.jobs.jobs() == []
    assert (await stage.start()).id == "bash-1"


async def test_an_unknown_job_is_told_with_those_that_there_are(stage: Stage) -> None:
    ada, bob = stage.agent("ada"), stage.agent("bob")
    await stage.start(owner=bob)
    await stage.start(owner=ada)
    with pytest.raises(JobError, match="there are: bash-2") as unknown:
        stage.jobs.find("bash-9", by=ada)
    assert (unknown.value.code, unknown.value.context["known"]) == ("UNKNOWN", ["bash-2"])
    assert [job.id for job in stage.jobs.of(bob)] == ["bash-1"]


# -------------------------------------------------------------------- killing


async def test_a_kill_is_a_request_that_may_be_repeated(stage: Stage) -> None:
    shut = trio.Event()

    async def work(_job: Job) -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await shut.wait()

    job = await stage.start(work)
    assert job.kill("not needed") == "cancellation-requested"
    assert job.kill("again") == "cancellation-requested"
    await trio.testing.wait_all_tasks_blocked()
    assert (job.status, job.snapshot.detail) == ("stopping", "not needed")
    shut.set()
    over = await job.wait()
    assert (over.status, over.detail) == ("killed", "not needed")
    assert job.kill() == "already-finished"
    assert job.snapshot == over


async def test_a_kill_in_the_step_of_the_start_is_heard(stage: Stage) -> None:
    job = await stage.start()
    job.kill()
    assert (await job.wait()).status == "killed"


async def test_a_way_of_ending_that_raises_changes_nothing(stage: Stage) -> None:
    heard: list[str | None] = []
    ended = trio.Event()

    def ending(reason: str | None) -> None:
        heard.append(reason)
        if len(heard) == 1:
            raise ProcessLookupError("not yet")
        ended.set()

    async def work(job: Job) -> str:
        job.on_kill(ending)
        await ended.wait()
        job.note("by SIGINT", ending="killed")
        return "half of it"

    job = await stage.start(work)
    await trio.testing.wait_all_tasks_blocked()
    with pytest.raises(ProcessLookupError):
        job.kill("first")
    assert (job.status, job.snapshot.detail, job.seen) == ("running", None, False)
    assert job.kill("second") == "cancellation-requested"
    assert job.kill("third") == "cancellation-requested"
    over = await job.wait()
    assert (over.status, over.detail, job.read()) == ("killed", "by SIGINT", "half of it")
    assert heard == ["first", "second"]


async def test_work_that_was_done_when_the_kill_came_is_completed(stage: Stage) -> None:
    async def work(_job: Job) -> str:
        with trio.CancelScope(shield=True):
            await trio.testing.wait_all_tasks_blocked()
        return "done"

    job = await stage.start(work)
    job.kill()
    assert (await job.wait()).status == "completed"
    assert job.read() == "done"


# -------------------------------------------------------------------- waiting


async def test_a_wait_that_is_over_leaves_the_job_alive(stage: Stage, autojump_clock: MockClock) -> None:
    job = await stage.start()
    for timeout, seconds in ((None, 30), (5, 5), (10_000, 600)):
        began = trio.current_time()
        assert (await (job.wait() if timeout is None else job.wait(timeout))).status == "running"
        assert trio.current_time() - began == pytest.approx(seconds)
    with trio.move_on_after(1) as scope:
        await job.wait()
    assert scope.cancelled_caught
    assert job.status == "running"
    assert not [wait for wait in stage.runtime.snapshot().waits if wait.message == "job"]


@pytest.mark.parametrize("timeout", [-1.0, float("nan")])
async def test_a_wait_for_what_is_no_time_is_refused(stage: Stage, timeout: float) -> None:
    job = await stage.start()
    with pytest.raises(ValueError, match="number of seconds"):
        await job.wait(timeout)


async def test_an_end_counts_more_than_a_timeout_and_a_cancellation(stage: Stage, autojump_clock: MockClock) -> None:
    async def work(_job: Job) -> str:
        await trio.sleep(5)
        return "in time"

    assert (await (await stage.start(work)).wait(5)).status == "completed"
    job = await stage.start(at_once)
    await trio.sleep(1)
    statuses: list[str] = []
    with trio.CancelScope() as scope:
        scope.cancel()
        statuses.append((await job.wait()).status)
    assert statuses == ["completed"]


async def test_a_job_that_waits_for_its_owner_is_not_waited_for_by_it(stage: Stage) -> None:
    """What the owner's own work waits for must not wait for the owner."""
    refused: list[ActorDeadlock] = []

    async def look(_job: Job) -> None:
        await inner.wait(1)

    async def work(job: Job) -> None:
        try:
            await job.wait(1)
        except ActorDeadlock as error:
            refused.append(error)

    inner = await stage.start(work)
    await (await stage.start(look)).wait()
    assert refused[0].path == ["/jobs/bash-1", "/jobs/bash-1"]


# -------------------------------------------------------------------- the owner's end


async def test_an_owner_takes_its_jobs_with_it_and_their_ids_are_unknown_then(stage: Stage) -> None:
    ada = stage.agent("ada")
    cleaned: list[str] = []

    async def work(job: Job) -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.testing.wait_all_tasks_blocked()
            cleaned.append(job.id)

    running, over = await stage.start(work, owner=ada), await stage.start(at_once, owner=ada)
    await over.wait()
    ended = await stage.runtime.agents.remove("ada")
    assert ended[0] == "/agents/ada/jobs/bash-1"
    assert cleaned == ["bash-1"]
    assert (running.status, running.snapshot.detail) == ("killed", "its owner has ended")
    assert stage.jobs.jobs() == []
    again = stage.agent("ada")
    for id in ("bash-1", "bash-2"):
        with pytest.raises(JobError, match=f"no job {id}"):
            stage.jobs.find(id, by=again)
    assert again.inbox.messages == ()


async def test_the_end_of_the_runtime_is_the_end_of_every_job() -> None:
    async with open_runtime() as runtime:
        stage = Stage(runtime)
        jobs = [await stage.start(), await stage.start(owner=stage.agent("ada"))]
    assert [job.status for job in jobs] == ["killed", "killed"]
    with trio.CancelScope() as scope:
        async with open_runtime() as runtime:
            jobs = [await Stage(runtime).start()]
            scope.cancel()
            await trio.sleep_forever()
    assert [job.status for job in jobs] == ["killed"]


async def test_what_a_job_has_started_is_gone_when_it_is_over(stage: Stage) -> None:
    agents: list[Agent] = []

    async def work(_job: Job) -> str:
        agents.append(Agent(stage.agent("model").provider, id="helper"))
        greenroom.current_actor().spawn(agents[0], "helper")  # type: ignore[union-attr]
        return (await delegate(Agent(stage.agent("other").provider, id="delegated"))).content

    job = await stage.start(work)
    assert (await job.wait()).status == "completed"
    assert job.read() == "other 0"
    with pytest.raises(ActorError):
        agents[0].inbox.inject("Are you there?")


async def test_only_so_many_are_known_after_their_end(stage: Stage) -> None:
    jobs = [await stage.start(at_once, kind="k") for _ in range(1)]
    for _ in range(102):
        jobs.append(await stage.start(at_once, kind="k"))
        await jobs[-1].wait()
    assert [job.id for job in stage.jobs.jobs()] == [f"k-{number}" for number in range(4, 104)]


async def test_whoever_is_beneath_an_agent_works_for_that_agent(stage: Stage) -> None:
    ada = stage.agent("ada")
    owners: list[Agent | None] = [job_owner()]

    async def work(_job: Job) -> None:
        owners.append(job_owner())

    await (await stage.start(work)).wait()
    await (await stage.start(work, owner=ada)).wait()
    assert owners == [None, None, ada]


async def test_a_start_that_is_cancelled_at_any_moment_leaves_no_job_running() -> None:
    async def scenario(doomed: Doomed) -> None:
        async with open_runtime() as runtime:
            stage = Stage(runtime)
            ada = stage.agent("ada")
            ended = await doomed(lambda: stage.start(owner=ada))
            await trio.testing.wait_all_tasks_blocked()
            alive = [job for job in stage.jobs.jobs() if not job.over]
            assert alive == ([] if ended.cancelled else [ended.value])

    await at_every_step(scenario)


async def test_a_wait_that_is_cancelled_at_any_moment_leaves_no_trace() -> None:
    async def scenario(doomed: Doomed) -> None:
        async with open_runtime() as runtime, trio.open_nursery() as nursery:
            stage = Stage(runtime)
            ada = stage.agent("ada")
            gate = trio.Event()

            async def work(_job: Job) -> None:
                await gate.wait()

            job = await stage.start(work, owner=ada, quiet=True)

            async def open_gate() -> None:
                gate.set()

            nursery.start_soon(open_gate)
            ended = await doomed(job.wait)
            await trio.testing.wait_all_tasks_blocked()
            assert job.status == "completed"
            assert len(ada.inbox.messages) == (1 if ended.cancelled else 0)
            assert not [wait for wait in runtime.snapshot().waits if wait.message == "job"]

    await at_every_step(scenario)


# -------------------------------------------------------------------- what is around it


@pytest.mark.parametrize("waits", [True, False])
async def test_a_patient_deadline_stands_still_for_a_job_that_is_waited_for_and_for_no_other(
    stage: Stage, waits: bool, mock_clock: MockClock
) -> None:
    terminals = stage.runtime.terminals
    terminals.add("reviewer")
    form = {"fields": [{"control": "confirm", "name": "go"}]}
    ended: list[bool] = []

    async def asking(_job: Job) -> str:
        return str(await stage.runtime.ask("reviewer", form, timeout=None))

    async def work() -> None:
        with patient_scope(5.0) as scope:
            job = await stage.start(asking, owner=ada)
            if waits:
                await job.wait(100)
            else:
                await trio.sleep_forever()
        ended.append(scope.cancelled_caught)

    ada = stage.agent("ada")
    await trio.testing.wait_all_tasks_blocked()
    ada.start_soon(work)
    await advance(60_000)
    assert ended == ([] if waits else [True])
    (pending,) = terminals.pending("reviewer")
    await terminals.answer("reviewer", pending.id, {"go": True})
    await trio.testing.wait_all_tasks_blocked()
    assert ended == [not waits]
    assert stage.jobs.jobs()[0].read() == "{'go': True}"


async def test_a_job_is_beneath_what_its_starter_is_beneath(stage: Stage) -> None:
    lineages: list[Lineage] = []

    async def work(_job: Job) -> None:
        lineages.append(current_lineage())

    with beneath("agent:planner"):
        job = await stage.start(work)
    await job.wait()
    assert lineages[0].tags == ("agent:planner",)
