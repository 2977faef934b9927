"""Jobs whose agent has ended before them: the next one on its session is told, once."""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from greenroom.actors.agent import Agent
from greenroom.actors.providers import ScriptedProvider
from greenroom.actors.system import Runtime, open_runtime
from greenroom.protocol.agents import MessageInput, ProviderResult
from greenroom.protocol.errors import SessionError
from tests.cli.conftest import ROOT
from tests.jobs.conftest import at_once, forever, told
from tests.jobs.killed import SESSION


@asynccontextmanager
async def opened(data: Path, *, turns: int = 3, limit: int = 256) -> AsyncGenerator[tuple[Runtime, Agent]]:
    """A life of the agent."""
    async with open_runtime(data=data) as runtime:
        script = ScriptedProvider([ProviderResult("Well.")] * turns)
        session = await runtime.sessions.open(SESSION)
        agent = runtime.agents.add(Agent(script, session=session, inbox_limit=limit))
        await trio.testing.wait_all_tasks_blocked()
        yield runtime, agent


def notice(jobs: str) -> str:
    return (
        f"These jobs of yours are over; if they had not ended before, they ended when you were stopped: {jobs}. Their "
        "output is lost, and what they had done by then may stand: look before you begin them again."
    )


async def test_after_a_kill_an_agent_is_told_of_its_jobs_and_ids_go_on(tmp_path: Path) -> None:
    data = tmp_path / "work.db"
    command = [sys.executable, "-m", "tests.jobs.killed", str(data)]
    died = await trio.run_process(command, cwd=ROOT, check=False, capture_stderr=True)
    assert died.returncode == -signal.SIGKILL, died.stderr.decode()
    async with opened(data) as (runtime, agent):
        assert told(agent) == [notice("build-1 (build)")]
        assert agent.status == "idle", "it is told when it goes on"
        agent.context.messages.add(MessageInput("user", "Go on."))
        await agent.generate()
        view = [(message.role, message.content) for message in agent.context.messages.view()]
        assert ("tool", '{"jobId":"build-1"}') in view
        assert view[-3:] == [
            ("user", "Go on."),
            ("user", notice("build-1 (build)")),
            ("assistant", "Well."),
        ]
        assert (await runtime.jobs.start("build", "again", forever, owner=agent)).id == "build-2"
        assert (await runtime.jobs.start("bash", "other", forever, owner=agent)).id == "bash-1"
    async with opened(data) as (_, agent):
        assert told(agent) == [notice("build-2 (again), bash-1 (other)")], "an end in good order is none of theirs"
        agent.inbox.followup("Go on.")
        await trio.testing.wait_all_tasks_blocked()
    async with opened(data) as (_, agent):
        assert told(agent) == []


async def test_of_a_job_whose_end_was_told_or_known_nothing_is_told(tmp_path: Path) -> None:
    async with opened(tmp_path / "work.db") as (runtime, agent):
        await runtime.jobs.start("a", "told", at_once, owner=agent, quiet=True)
        await trio.testing.wait_all_tasks_blocked()
        assert len(told(agent)) == 1
        await agent.generate()
        killed = await runtime.jobs.start("a", "killed", forever, owner=agent)
        killed.kill()
        await trio.testing.wait_all_tasks_blocked()
        await runtime.jobs.start("a", "nobody's", forever)
    async with opened(tmp_path / "work.db") as (_, agent):
        assert told(agent) == []


async def test_what_an_inbox_had_no_room_for_is_told_by_the_next_beginning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "work.db"
    async with opened(data) as (runtime, agent):
        await runtime.jobs.start("a", "one", forever, owner=agent)
        agent.inbox.inject("Full.")
    async with opened(data, limit=1) as (_, agent):
        assert told(agent) == []
        assert "is not told of the jobs that were left" in caplog.text
    async with opened(data, limit=1) as (_, agent):
        assert told(agent) == [notice("a-1 (one)")]


async def test_an_end_that_could_not_be_told_is_told_by_the_next_beginning(tmp_path: Path) -> None:
    async with opened(tmp_path / "work.db", limit=1) as (runtime, agent):
        agent.inbox.inject("Full.")
        job = await runtime.jobs.start("a", "done", at_once, owner=agent, quiet=True)
        await job.place.ref.join()
        await trio.testing.wait_all_tasks_blocked()
    async with opened(tmp_path / "work.db") as (_, agent):
        assert told(agent) == [notice("a-1 (done)")]


async def test_a_fork_is_told_of_no_job_of_another_and_uses_no_id_of_it(tmp_path: Path) -> None:
    async with opened(tmp_path / "work.db") as (runtime, agent):
        await runtime.jobs.start("a", "one", forever, owner=agent)
        assert agent.session is not None
        last = agent.session.events()[-1].seq
        fork = await runtime.sessions.fork(SESSION, last, id="other")
        await runtime.sessions.dispose(fork)
    async with open_runtime(data=tmp_path / "work.db") as runtime:
        session = await runtime.sessions.open("other")
        other = runtime.agents.add(Agent(ScriptedProvider([]), session=session))
        await trio.testing.wait_all_tasks_blocked()
        assert told(other) == []
        assert (await runtime.jobs.start("a", "two", forever, owner=other)).id == "a-2"


@pytest.mark.parametrize("id", ["a", "a-", "a-x", "a-\u0661", f"a-{'9' * 5000}", "-5", "a--7"])
async def test_no_id_that_a_log_holds_keeps_a_job_from_beginning(id: str) -> None:
    async with open_runtime() as runtime:
        session = await runtime.sessions.open(SESSION)
        session.append("job/started", {"id": id, "label": "forged"})
        agent = runtime.agents.add(Agent(ScriptedProvider([]), session=session))
        assert (await runtime.jobs.start("a", "one", forever, owner=agent)).id == "a-1"


async def test_a_session_that_takes_no_more_keeps_no_job_from_beginning(caplog: pytest.LogCaptureFixture) -> None:
    async with open_runtime() as runtime:
        session = await runtime.sessions.open(SESSION)
        agent = runtime.agents.add(Agent(ScriptedProvider([]), session=session))
        await runtime.sessions.dispose(session)
        with pytest.raises(SessionError):
            session.append("job/ended", {"id": "a-1"})
        assert (await runtime.jobs.start("a", "one", forever, owner=agent)).id == "a-1"
        assert "a-1 of /agents/planner is not logged" in caplog.text
