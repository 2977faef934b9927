"""What an agent is told of the ends of its jobs, and when."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from greenroom.actors.agent import Agent
from greenroom.actors.job import Job
from greenroom.actors.providers import ScriptedProvider
from greenroom.protocol.agents import MessageInput, ProviderResult
from greenroom.protocol.tools import ToolCall
from greenroom.runtime.actor import Actor
from greenroom.runtime.tools import Tool
from tests.jobs.conftest import Stage, at_once, told


def heard(agent: Agent) -> list[str]:
    """What its model was told."""
    return [message.content for message in agent.context.messages.view() if message.role == "user"]


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked()


async def test_an_idle_agent_is_woken_by_the_end_of_its_job(stage: Stage) -> None:
    ada = stage.agent("ada")
    await stage.start(at_once, owner=ada)
    await settle()
    assert heard(ada) == ["The job bash-1 (Look for it) is over, completed. Its output: job_output('bash-1')."]
    assert ada.status == "done"


async def test_a_quiet_job_is_told_of_and_wakes_nobody(stage: Stage) -> None:
    ada = stage.agent("ada")
    await stage.start(at_once, owner=ada, quiet=True)
    await settle()
    assert (len(told(ada)), ada.status) == (1, "idle")


async def test_an_agent_that_works_reads_it_at_its_next_step(stage: Stage) -> None:
    async def work(_job: Job) -> str:
        return "built"

    async def build() -> str:
        await stage.start(work, owner=ada)
        await settle()
        return "begun"

    script = [ProviderResult("", tools=(ToolCall("1", "build", {}),)), ProviderResult("It is built.")]
    ada = stage.runtime.agents.add(Agent(ScriptedProvider(script), id="ada", tools=[Tool("build", build)]))
    ada.context.messages.add(MessageInput("user", "Build it."))
    assert (await ada.generate()).content == "It is built."
    assert [message.role for message in ada.context.messages.view()] == [
        "user",
        "assistant",
        "tool",
        "user",
        "assistant",
    ]


async def test_jobs_alone_wake_an_agent_three_times_in_a_row(stage: Stage) -> None:
    ada = stage.agent("ada")

    async def one(number: int) -> None:
        await stage.start(at_once, owner=ada, kind=f"k{number}")
        await settle()

    for number in range(5):
        await one(number)
    assert len(heard(ada)) == 3
    assert len(told(ada)) == 2
    ada.inbox.followup("Go on.")
    await settle()
    assert len(heard(ada)) == 6, "a followup reads what waits"
    for number in range(5, 9):
        await one(number)
    assert len(heard(ada)) == 9
    await ada.generate()
    await one(9)
    assert len(heard(ada)) == 11


@pytest.mark.case("pipeline", 34)
async def test_an_end_that_is_waited_for_is_not_announced(stage: Stage) -> None:
    ada = stage.agent("ada")
    gate = trio.Event()

    async def work(_job: Job) -> None:
        await gate.wait()

    job = await stage.start(work, owner=ada)
    async with trio.open_nursery() as nursery:

        async def wait() -> None:
            assert (await job.wait()).status == "completed"

        nursery.start_soon(wait)
        nursery.start_soon(wait)
        await settle()
        gate.set()
    await settle()
    assert (told(ada), ada.status) == ([], "idle")


async def test_an_end_that_came_by_a_kill_is_not_announced(stage: Stage) -> None:
    ada = stage.agent("ada")
    job = await stage.start(owner=ada)
    job.kill()
    await settle()
    assert (job.status, told(ada), ada.status) == ("killed", [], "idle")


async def test_a_wait_that_gave_up_does_not_keep_the_end_secret(stage: Stage) -> None:
    ada = stage.agent("ada")
    gate = trio.Event()

    async def work(_job: Job) -> None:
        await gate.wait()

    job = await stage.start(work, owner=ada, quiet=True)
    with trio.move_on_after(0.01):
        await job.wait()
    assert (await job.wait(0)).status == "running"
    gate.set()
    await settle()
    assert len(told(ada)) == 1
    await job.wait()
    job.read()
    job.kill()
    await settle()
    assert len(told(ada)) == 1, "and it is told once"


async def test_a_full_inbox_costs_the_notice_and_nothing_else(stage: Stage) -> None:
    agent = Agent(ScriptedProvider([]), id="ada", inbox_limit=1)
    stage.runtime.agents.add(agent).inbox.inject("Full.")
    job = await stage.start(at_once, owner=agent)
    await settle()
    assert (job.status, told(agent)) == ("completed", [])


async def test_an_owner_that_is_being_stopped_is_told_nothing(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    ada = stage.agent("ada")
    gate = trio.Event()

    async def work(_job: Job) -> str:
        await gate.wait()
        return "too late"

    class Slow(Actor):
        async def on_start(self) -> None:
            try:
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    gate.set()
                    await settle()

    job = await stage.start(work, owner=ada)
    ada.spawn(Slow(), "slow")
    await settle()
    await stage.runtime.agents.remove("ada")
    assert job.status == "completed"
    assert caplog.records == []
