"""Runs of random scripts, stopped at random moments or not at all, against what must hold of every run."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from greenroom.actors.agent import Agent
from greenroom.actors.providers.scripted import ScriptedTurn
from greenroom.actors.system import open_runtime
from greenroom.protocol.agents import AgentResult, Authority, Budget, ProviderResult, Rule, TokenChunk, ToolChunk, Usage
from greenroom.protocol.errors import ActorError
from greenroom.protocol.tools import ToolCall, ToolSuccess
from greenroom.runtime.cancel import Cancel
from greenroom.runtime.tools import Tool
from tests.agents.conftest import Stage

ANSWERS = {
    "quick": '"quick"',
    "slow": '"slow"',
    "fails": "it fails",
    "denied": "denied: no",
    "ghost": "tool not found: ghost",
}
"""What the model is told of each kind of call, unless the run is stopped first."""


@dataclass
class Turn:
    deltas: list[str]
    calls: list[str]
    usage: int | None
    pause: float


@dataclass
class Stop:
    kind: str
    after: float


@dataclass
class Seen:
    """What a run's reader and its waiter saw."""

    chunks: list[Any] = field(default_factory=list)
    outcome: AgentResult | ActorError | None = None


turns = st.builds(
    Turn,
    deltas=st.lists(st.sampled_from(["a", "bc", "😀"]), max_size=3),
    calls=st.lists(st.sampled_from(list(ANSWERS)), min_size=1, max_size=3),
    usage=st.none() | st.integers(0, 50),
    pause=st.sampled_from([0.0, 1.0]),
)
stops = st.builds(
    Stop, st.sampled_from(["abort", "token", "timeout", "agent", "leave"]), st.sampled_from([0.0, 0.5, 1.0, 2.5, 6.0])
)


def scripted(turn: Turn, last: bool) -> ScriptedTurn:
    usage = None if turn.usage is None else Usage(turn.usage, turn.usage, 2 * turn.usage)
    calls = () if last else tuple(ToolCall(str(number), name, {}) for number, name in enumerate(turn.calls))
    return ScriptedTurn(ProviderResult("".join(turn.deltas), None, calls, usage), tuple(turn.deltas), pause=turn.pause)


async def slow() -> str:
    await trio.sleep(3)
    return "slow"


def fails() -> str:
    raise RuntimeError("it fails")


TOOLS = [Tool("quick", lambda: "quick"), Tool("slow", slow), Tool("fails", fails), Tool("denied", lambda: "no")]
AUTHORITY = Authority([Rule("closed", lambda call: call.name == "denied", allowed=False, reason="no")])


async def read(agent: Agent, seen: Seen, options: dict[str, Any], leave: trio.Event) -> None:
    try:
        async with agent.stream(**options) as run, trio.open_nursery() as nursery:
            nursery.start_soon(_leave, leave, nursery.cancel_scope)
            try:
                async for chunk in run.events:
                    seen.chunks.append(chunk)
                seen.outcome = await run.result()
            except ActorError as error:
                seen.outcome = error
            nursery.cancel_scope.cancel()
        seen.outcome = seen.outcome or run.outcome()
    except ActorError as error:
        seen.outcome = error


async def _leave(leave: trio.Event, scope: trio.CancelScope) -> None:
    await leave.wait()
    scope.cancel()


async def play(script: list[Turn], stop: Stop | None) -> tuple[Stage, Agent, Seen, Budget]:
    async with open_runtime() as runtime:
        stage, seen, budget = Stage(runtime), Seen(), Budget()
        cancel, leave = Cancel(), trio.Event()
        provider = stage.script(*(scripted(turn, turn is script[-1]) for turn in script))
        agent = stage.agent(provider, id="a", tools=TOOLS, authority=AUTHORITY, budget=budget)
        options: dict[str, Any] = {"cancel": cancel}
        if stop is not None and stop.kind == "timeout":
            options["timeout"] = stop.after
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read, agent, seen, options, leave)
            if stop is not None and stop.kind != "timeout":
                await trio.sleep(stop.after)
                match stop.kind:
                    case "abort":
                        agent.abort("abort")
                    case "token":
                        cancel.set("token")
                    case "agent":
                        await runtime.agents.remove("a")
                    case _:
                        leave.set()
        await trio.testing.wait_all_tasks_blocked()
        assert [wait for wait in runtime.snapshot().waits if "/agents" in wait.to] == []
        return stage, agent, seen, budget


@settings(max_examples=150)
@given(script=st.lists(turns, min_size=1, max_size=4), stop=st.none() | stops)
def test_what_holds_of_every_run(script: list[Turn], stop: Stop | None) -> None:
    stage, agent, seen, budget = trio.run(
        partial(play, script, stop), clock=trio.testing.MockClock(autojump_threshold=0)
    )
    messages = agent.context.messages.messages()
    told = stage.told("tool")
    results = stage.told("finish")

    # Every call has its answer, in place, in the conversation, among the events and among the pieces.
    place = 1
    answered: list[tuple[ToolCall, str]] = []
    while place < len(messages):
        assert messages[place].role == "assistant"
        calls = messages[place].calls
        answers = messages[place + 1 : place + 1 + len(calls)]
        assert [answer.role for answer in answers] == ["tool"] * len(calls)
        answered += [(call, answer.content) for call, answer in zip(calls, answers, strict=True)]
        place += 1 + len(calls)
    assert [call for call, _ in told] == [call for call, _ in answered]
    for call, content in answered:
        assert content == ANSWERS[call.name] or (stop is not None and content == "cancelled")
    for (_, result), (call, content) in zip(told, answered, strict=True):
        assert isinstance(result, ToolSuccess) is (call.name in ("quick", "slow") and content != "cancelled")

    # A run starts and ends once, and says how.
    assert stage.names.count("start") == len(results) <= 1
    if not results:
        assert stop is not None
        assert isinstance(seen.outcome, ActorError)
        return
    (result,) = results
    assert stage.names.count("abort") == (1 if result.partial else 0)
    assert agent.status == "done"
    if stop is None or (seen.outcome is not None and not isinstance(seen.outcome, ActorError)):
        assert seen.outcome == result
    if not result.partial:
        assert result.content == "".join(script[-1].deltas)
        assert len(messages) == 1 + sum(1 + len(turn.calls) for turn in script[:-1]) + 1
        assert stage.names.count("turn") == len(script)
    if stop is None:
        assert not result.partial
        assert [chunk.call for chunk in seen.chunks if isinstance(chunk, ToolChunk)] == [call for call, _ in told]
        written = [chunk.content for chunk in seen.chunks if isinstance(chunk, TokenChunk)]
        assert written == [delta for turn in script for delta in turn.deltas]
        used = [turn.usage for turn in script if turn.usage is not None]
        assert result.usage == (Usage(sum(used), sum(used), 2 * sum(used)) if used else None)
        assert budget.used.prompt == sum(used)
        assert budget.used.completion >= sum(used)
