"""Policies that look on: reminders, invariants, figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from greenroom.actors.agent import Agent
from greenroom.actors.providers import ScriptedProvider
from greenroom.actors.system import open_runtime
from greenroom.protocol.agents import MessageInput, ProviderResult
from greenroom.protocol.errors import InvariantError
from greenroom.protocol.tools import ToolCall
from greenroom.runtime.pipeline.approvals import ApprovalRequest, Decision
from greenroom.runtime.pipeline.handling import Card
from greenroom.runtime.pipeline.invocations import Invocation, Settled
from greenroom.runtime.pipeline.outcomes import ToolOk
from greenroom.runtime.pipeline.verdicts import Ask, Block, Deny
from greenroom.runtime.policies import CheckedRecorder, RepeatReminder, measure_tools
from greenroom.runtime.tools import Tool
from tests.pipeline.track import Log, Track

# -------------------------------------------------------------------- the same call in a row


async def reminded(reminder: RepeatReminder, *calls: tuple[str, dict[str, Any]]) -> list[int]:
    """Makes an agent's model make these calls, one a turn; after which of them it was reminded, counted from 1."""
    answers = [ProviderResult("", tools=(ToolCall("1", *each),)) for each in calls]
    async with open_runtime() as runtime:
        runtime.bus.on("tools/post-execute", reminder)
        provider = ScriptedProvider([*answers, ProviderResult("Enough.")])
        tools = [Tool(name, lambda: None) for name in ("look", "wait")]
        agent = runtime.agents.add(Agent(provider, id="ada", tools=tools))
        agent.context.messages.add(MessageInput("user", "Go."))
        await agent.generate(limit=99)
        texts = [message for message in agent.context.messages.view() if message.role in ("tool", "user")][1:]
    after = 0
    found: list[int] = []
    for message in texts:
        if message.role == "tool":
            after += 1
        else:
            assert "times in a row" in message.content
            found.append(after)
    return found


async def test_a_model_is_reminded_at_the_third_fifth_and_eighth_same_call() -> None:
    assert await reminded(RepeatReminder(), *[("look", {"a": 1, "b": 2}), ("look", {"b": 2, "a": 1})] * 5) == [3, 5, 8]


async def test_another_call_begins_a_new_row_and_an_excluded_one_does_not() -> None:
    look: tuple[str, dict[str, Any]] = ("look", {"a": 1})
    wait: tuple[str, dict[str, Any]] = ("wait", {})
    assert await reminded(RepeatReminder(), look, look, wait, look, look) == []
    assert await reminded(RepeatReminder(exclude=["wait"]), look, look, wait, look) == [4]


async def test_input_of_a_user_begins_a_new_row_and_a_notice_of_the_runtime_does_not() -> None:
    look = ProviderResult("", tools=(ToolCall("1", "look", {}),))
    done = ProviderResult("Done.")
    async with open_runtime() as runtime:
        close = RepeatReminder().follow(runtime.bus)
        provider = ScriptedProvider([look, look, done, look, look, done, look, done, done])
        agent = runtime.agents.add(Agent(provider, id="ada", tools=[Tool("look", lambda: None)]))
        reminders: list[int] = []
        for source in (None, None, "job"):
            agent.inbox.followup("Go on.", source=source)
            await trio.testing.wait_all_tasks_blocked()
            reminders.append(sum("times in a row" in message.content for message in agent.context.messages.view()))
        assert reminders == [0, 0, 1], "two, two, and one more after a notice"
        close()
        assert not runtime.pipeline.post_execute.listeners


async def test_a_denied_call_counts_and_a_word_of_a_person_begins_anew() -> None:
    reminder = RepeatReminder()
    look = ("look", {"a": 1})
    assert await reminded(reminder, look, look) == []
    assert await reminded(reminder, look) == [1], "it counts on, by the agent's path"
    reminder.reset("/agents/ada")
    assert await reminded(reminder, look, look) == []
    track = Track()
    track.on(track.pipeline.pre_execute, lambda call: Deny("no"))
    track.bus.on("tools/post-execute", reminder)
    for _ in range(3):
        await track.error()
    assert all(settled.outcome.contexts == () for settled in track.results), "no agent, no reminder"


async def test_what_a_tool_calls_by_itself_is_no_call_of_the_model() -> None:
    """It neither comes between the model's calls nor counts as one, however often the tool makes it."""
    async with open_runtime() as runtime:
        runtime.bus.on("tools/post-execute", RepeatReminder())

        async def look() -> None:
            for _ in range(3):
                await agent.context.tools.execute(ToolCall("inner", "peek", {}))

        tools = [Tool("look", look), Tool("peek", lambda: None)]
        calling = ProviderResult("", tools=(ToolCall("1", "look", {}),))
        provider = ScriptedProvider([*[calling] * 4, ProviderResult("Enough.")])
        agent = runtime.agents.add(Agent(provider, id="ada", tools=tools))
        agent.context.messages.add(MessageInput("user", "Go."))
        await agent.generate(limit=99)
        said = [message.content for message in agent.context.messages.view() if message.role == "user"][1:]
    (reminder,) = said
    assert "the same call of look 3 times" in reminder


# -------------------------------------------------------------------- invariants


async def test_a_checked_recorder_passes_on_what_is_sound() -> None:
    track = Track()
    track.pipeline.recorder = checked = CheckedRecorder(log := Log())
    track.on(track.pipeline.pre_execute, lambda call: Ask())
    track.on(track.pipeline.approvals.event, lambda request: Decision("allowed-once"))
    track.tool(lambda: {"a": [1]})
    assert await track.value() == {"a": [1]}
    assert log.events == ["call 1", "asked 1", "decided 1 allowed-once", "result 1"]
    assert checked.open == 0


def test_a_checked_recorder_raises_what_cannot_be() -> None:
    checked = CheckedRecorder()
    one = Invocation(call_id="1", name="t", arguments={})
    request = ApprovalRequest(id="r", call=one, card=Card("t"))
    done = Settled(one, ToolOk(1, content="1"))
    early: list[Callable[[], object]] = [
        lambda: checked.ended(done, None),
        lambda: checked.asked(request),
        lambda: checked.decided(request, Decision("rejected")),
    ]
    for impossible in early:
        with pytest.raises(InvariantError):
            impossible()
    checked.called(one)
    checked.asked(request)
    twice: list[Callable[[], object]] = [
        lambda: checked.called(one),
        lambda: checked.asked(request),
        lambda: checked.ended(done, None),
    ]
    for impossible in twice:
        with pytest.raises(InvariantError):
            impossible()
    checked = CheckedRecorder()
    for outcome in (ToolOk(1), ToolOk([1], content="[1]"), ToolOk(float("nan"), content="NaN")):
        call = Invocation(call_id="1", name="t", arguments={})
        checked.called(call)
        with pytest.raises(InvariantError):
            checked.ended(Settled(call, outcome), None)


async def test_what_could_not_be_recorded_is_not_open(monkeypatch: pytest.MonkeyPatch) -> None:
    track = Track()
    track.pipeline.recorder = checked = CheckedRecorder(log := Log())
    track.on(track.pipeline.pre_execute, lambda call: Ask())
    track.tool(lambda: None)
    log.full = "call"
    with pytest.raises(OSError, match="full"):
        await track.execute()
    assert checked.open == 0
    log.full = "asked"
    assert await track.error() == "the disk is full"
    assert (log.events, checked.open) == (["call 1", "result 1"], 0)


# -------------------------------------------------------------------- figures


class Instrument:
    def __init__(self, name: str, unit: str) -> None:
        self.name = name
        self.unit = unit
        self.measured: list[tuple[float, dict[str, str]]] = []

    def add(self, amount: float, attributes: Any) -> None:
        self.measured.append((amount, dict(attributes)))

    record = add


class Meter:
    """A meter that keeps what it is told."""

    def __init__(self) -> None:
        self.made: dict[str, Instrument] = {}

    def create_counter(self, name: str, unit: str = "", description: str = "") -> Instrument:
        self.made[name] = Instrument(name, unit)
        return self.made[name]

    create_histogram = create_counter


async def test_calls_are_counted_and_timed_and_nothing_of_their_arguments_told(autojump_clock: MockClock) -> None:
    track, meter = Track(), Meter()

    async def work(arguments: dict[str, Any]) -> None:
        await trio.sleep(2)
        if arguments["password"] == "wrong":
            raise LookupError("hunter2")

    track.tool(work)
    close = measure_tools(track.bus, meter)
    await track.value(arguments={"password": "hunter2"})
    await track.error(arguments={"password": "wrong"})
    await track.error("invented-by-a-model")
    close()
    await track.value(arguments={"password": "hunter2"})
    names = [
        {"gen_ai.tool.name": "t"},
        {"gen_ai.tool.name": "t", "error.type": "TOOL"},
        {"gen_ai.tool.name": "unknown", "error.type": "UNKNOWN_TOOL"},
    ]
    assert meter.made["greenroom.tool.calls"].measured == [(1, each) for each in names]
    assert meter.made["greenroom.tool.duration"].measured == list(zip([2, 2, 0], names, strict=True))
    assert meter.made["greenroom.tool.duration"].unit == "s"


async def test_a_name_that_a_model_has_invented_is_no_attribute_however_its_call_ended() -> None:
    track, meter = Track(), Meter()
    measure_tools(track.bus, meter)
    await track.tools.execute(ToolCall("1", "unreadable", {"a": float("nan")}))
    track.on(track.pipeline.post_execute, lambda settled: Block("no"))
    await track.error("blocked")
    track.on(track.pipeline.pre_execute, lambda call: Deny("no"), prepend=True)
    await track.error("denied")
    told = [attributes["gen_ai.tool.name"] for _, attributes in meter.made["greenroom.tool.calls"].measured]
    assert told == ["unknown"] * 3


async def test_a_tool_that_is_there_is_named_whatever_it_raises() -> None:
    track, meter = Track(), Meter()
    measure_tools(track.bus, meter)
    track.tool(lambda: track.tools.run("not-there", {}))
    await track.error()
    (_, (_, attributes)) = meter.made["greenroom.tool.calls"].measured
    assert attributes == {"gen_ai.tool.name": "t", "error.type": "UNKNOWN_TOOL"}
