"""The process that is killed while an agent makes calls: `python -m tests.sessions.lives`, in the project's root.

See `tests.journal.killed` for how it is driven. Every stage of a call takes a moment, so that it is killed in each of
them. It says:

- `pressing KEY`, when a tool is entered, and `pressed KEY` at its end;
- `refused KEY`, when a policy or a person has refused a call;
- `kept COUNT`, when so many events were acknowledged as written;
- `wrong REASON`, if the model is given a call without its result in place.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import count
from typing import Any

import trio

from greenroom import Agent, ChatMessage, MessageInput, Next, ScriptedProvider, Tool, ToolCall, open_runtime
from greenroom.actors.system import Runtime
from greenroom.protocol.agents import ProviderResult
from greenroom.runtime.pipeline.approvals import ApprovalRequest, Decision
from greenroom.runtime.pipeline.handling import Handling
from greenroom.runtime.pipeline.invocations import Invocation, Settled
from greenroom.runtime.pipeline.verdicts import Ask, Deny, Review, Verdict
from tests.journal.killed import obey, say
from tests.workflows.lives import die_at

__all__ = ["SESSION"]

SESSION = "planner"
STATEMENTS = 60
MOMENT = 0.004


async def live(seed: str, path: str) -> None:
    """Go on with what earlier lives have left, turn after turn, for ever."""
    random_, numbers = random.Random(seed), count()

    async def pause() -> None:
        await trio.sleep(random_.random() * MOMENT)

    def model(messages: Sequence[ChatMessage], _tools: object) -> ProviderResult:
        _look(messages)
        if messages[-1].role == "tool":
            return ProviderResult("done")
        calls = [ToolCall("same", "press", {"key": f"{seed}.{next(numbers)}"}) for _ in range(3)]
        return ProviderResult("", tools=tuple(calls))

    async def press(arguments: dict[str, str]) -> str:
        say("pressing", arguments["key"])
        await pause()
        say("pressed", arguments["key"])
        return arguments["key"]

    async with open_runtime(data=path) as runtime:
        if random_.random() < 0.5:
            die_at(runtime, random_.randrange(STATEMENTS))
        _hinder(runtime, random_, pause)
        session = await runtime.sessions.open(SESSION)
        say("kept", session.count if await runtime.sessions.flush(session) else 0)
        handling = Handling(concurrent=lambda _: random_.random() < 0.5)
        tools = [Tool("press", press, handling=handling)]
        agent = runtime.agents.add(Agent(ScriptedProvider([model], record=False), session=session, tools=tools))
        while True:
            agent.context.messages.add(MessageInput("user", "go on"))
            await agent.generate()
            if random_.random() < 0.5:
                number = session.count
                await runtime.sessions.flush(session)
                say("kept", number)


def _hinder(runtime: Runtime, random_: random.Random, pause: Any) -> None:
    """Let every stage take a moment, and some calls be refused."""

    async def pre(call: Invocation, next: Next[Verdict]) -> Verdict:
        await pause()
        if (chance := random_.random()) < 0.1:
            say("refused", call.arguments["key"])
            return Deny("not this one")
        return Ask() if chance < 0.5 else await next()

    async def approve(request: ApprovalRequest, next: Next[Decision]) -> Decision:
        await pause()
        if random_.random() < 0.2:
            say("refused", request.call.arguments["key"])
            return Decision("rejected")
        return Decision("allowed-once")

    async def around(call: Invocation, next: Next[Any]) -> Any:
        await pause()
        outcome = await next()
        await pause()
        return outcome

    async def post(settled: Settled, next: Next[Review]) -> Review:
        await pause()
        return await next()

    runtime.bus.on("tools/pre-execute", pre)
    runtime.bus.on("approval/request", approve)
    runtime.bus.on("tools/execute", around)
    runtime.bus.on("tools/post-execute", post)


def _look(messages: Sequence[ChatMessage]) -> None:
    """Say so if a call has no result behind its answer, or a result no call."""
    owed = 0
    for message in messages:
        if (message.role == "tool") != (owed > 0):
            say("wrong", f"a {message.role} message where {owed} results are owed")
        owed = len(message.calls) if message.role == "assistant" else owed - (message.role == "tool")


if __name__ == "__main__":
    obey(live)
