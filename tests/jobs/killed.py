"""A process whose agent begins a job and is killed in the step behind: `python -m tests.jobs.killed FILE`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

import trio

from greenroom import Agent, ChatMessage, MessageInput, ScriptedProvider, Tool, ToolCall, open_runtime
from greenroom.protocol.agents import ProviderResult

__all__ = ["SESSION"]

SESSION = "planner"


def model(messages: Sequence[ChatMessage], _tools: object) -> ProviderResult:
    """What is answered here was written before it was asked."""
    if messages[-1].role == "tool":
        os.kill(os.getpid(), signal.SIGKILL)
    return ProviderResult("", tools=(ToolCall("1", "build", {"run_in_background": True}),))


async def live(path: str) -> None:
    async with open_runtime(data=path) as runtime:
        build = Tool("build", trio.sleep_forever, background=runtime.jobs)
        session = await runtime.sessions.open(SESSION)
        agent = runtime.agents.add(Agent(ScriptedProvider([model]), session=session, tools=[build]))
        agent.context.messages.add(MessageInput("user", "Build it."))
        await agent.generate()


if __name__ == "__main__":
    trio.run(live, sys.argv[1])
