"""A runtime with jobs in it, and agents that own them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import trio

from greenroom.actors.agent import Agent
from greenroom.actors.job import Job, JobManager
from greenroom.actors.providers import ScriptedProvider
from greenroom.actors.system import Runtime, open_runtime
from greenroom.protocol.agents import ProviderResult

__all__ = ["Stage"]


class Stage:
    """Starts jobs whose work ends when the test says so."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.jobs: JobManager = runtime.jobs
        self.called = 0
        """How often a `run` was called."""

    def agent(self, id: str, *, turns: int = 20) -> Agent:
        script = [ProviderResult(f"{id} {number}") for number in range(turns)]
        return self.runtime.agents.add(Agent(ScriptedProvider(script), id=id))

    async def start(
        self, run: Callable[[Job], Awaitable[str | None]] | None = None, *, kind: str = "bash", **options: Any
    ) -> Job:
        def counted(job: Job) -> Awaitable[str | None]:
            self.called += 1
            return run(job) if run is not None else forever(job)

        return await self.jobs.start(kind, "Look for it", counted, **options)


async def forever(_job: Job) -> str | None:
    await trio.sleep_forever()
    raise AssertionError("for ever is over")


async def at_once(_job: Job) -> str | None:
    await trio.lowlevel.checkpoint()
    return "all of it"


def told(agent: Agent) -> list[str]:
    """What waits in its inbox of the ends of jobs."""
    return [message.text for message in agent.inbox.messages if message.source == "job"]


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with open_runtime() as runtime:
        yield Stage(runtime)
