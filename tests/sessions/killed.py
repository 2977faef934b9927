"""The process that ends in the middle of a batch of calls: `python -m tests.sessions.killed`, in the project's root.

See `tests.journal.killed` for how it is driven; the number of a stage stands in the place of the seed. An agent makes a
turn with three calls of one id, and in its next turn three more of the same id; at the stage it kills itself. Each run
of a tool is a line of `PATH.presses`. What is recorded is `PATH`, or, if that ends in `.logs`, a folder of JSONL files.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from greenroom import Agent, JsonlPersistence, MessageInput, Next, ScriptedProvider, Tool, ToolCall, open_runtime
from greenroom.actors.session import SessionAppended
from greenroom.actors.system import Runtime
from greenroom.protocol.agents import ProviderResult
from greenroom.runtime.pipeline.approvals import ApprovalRequest, Decision
from greenroom.runtime.pipeline.invocations import Invocation, Settled
from greenroom.runtime.pipeline.verdicts import Ask, Review, Verdict
from tests.journal.killed import obey, say

__all__ = ["STAGES", "kept", "presses", "pressing", "three"]

STAGES: Final = ("before", "policy", "approval", "granted", "body", "after", "result")
"""The second call of the second turn: not yet begun, in a policy before it runs, in its approval, allowed and not yet
run, in its tool, behind its tool, and with its result in memory and not on the disk."""


def kept(path: Path) -> dict[str, Any]:
    """How a runtime is opened on what is recorded there."""
    return {"session_persistence": JsonlPersistence(path)} if path.suffix == ".logs" else {"data": path}


def three(turn: int) -> ProviderResult:
    """Three calls of one id."""
    return ProviderResult("", tools=tuple(ToolCall("same", "press", {"key": f"{turn}.{at}"}) for at in range(3)))


def presses(path: Path) -> list[str]:
    """Which calls have run, in order."""
    return Path(f"{path}.presses").read_text("utf-8").split()


def pressing(path: Path, within: Callable[[str], object] = lambda key: None) -> Tool:
    """A tool that leaves a trace."""

    def press(arguments: dict[str, str]) -> str:
        with open(f"{path}.presses", "a", encoding="utf-8") as file:
            file.write(f"{arguments['key']}\n")
        within(arguments["key"])
        return arguments["key"]

    return Tool("press", press)


def _die(stage: str) -> None:
    say("dying", stage)
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)


def _hook(runtime: Runtime, stage: str) -> Callable[[str], object]:
    """Let the process end at that stage of the call `2.1`; what is called within the tool."""

    def here(call: Invocation) -> bool:
        return bool(call.arguments["key"] == "2.1")

    async def saved() -> None:
        session = runtime.sessions.get("planner")
        assert session is not None
        await runtime.sessions.flush(session)

    async def pre(call: Invocation, next: Next[Verdict]) -> Verdict:
        if stage == "policy" and here(call):
            await saved()
            _die(stage)
        return Ask("press it?") if stage in ("approval", "granted") and here(call) else await next()

    async def approve(request: ApprovalRequest, next: Next[Decision]) -> Decision:
        if stage == "approval":
            await saved()
            _die(stage)
        return Decision("allowed-once")

    async def around(call: Invocation, next: Next[Any]) -> Any:
        if stage == "granted" and here(call):
            await saved()
            _die(stage)
        return await next()

    async def post(settled: Settled, next: Next[Review]) -> Review:
        if stage == "after" and here(settled.call):
            await saved()
            _die(stage)
        return await next()

    def appended(told: SessionAppended) -> None:
        event = told.event
        at = {"before": 0, "result": 1}.get(stage)
        if event.type == "tool/result" and event.data.position == at and told.session.order.turn != 1:
            _die(stage)

    runtime.bus.on("tools/pre-execute", pre)
    runtime.bus.on("approval/request", approve)
    runtime.bus.on("tools/execute", around)
    runtime.bus.on("tools/post-execute", post)
    runtime.bus.on("session/event", appended)
    return lambda key: _die(stage) if stage == "body" and key == "2.1" else None


async def live(number: str, path: str) -> None:
    """Up to the stage of that number."""
    place = Path(path)
    async with open_runtime(**kept(place)) as runtime:
        session = await runtime.sessions.open("planner")
        provider = ScriptedProvider([three(1), ProviderResult("done"), three(2)])
        within = _hook(runtime, STAGES[int(number)])
        agent = runtime.agents.add(Agent(provider, session=session, tools=[pressing(place, within)]))
        for text in ("go", "again"):
            agent.context.messages.add(MessageInput("user", text))
            await agent.generate()


if __name__ == "__main__":
    obey(live)
