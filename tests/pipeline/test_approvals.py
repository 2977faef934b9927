"""Approval: one grant, one call, and everything that is not a yes is a no."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from greenroom.actors.agent import Agent
from greenroom.actors.approver import terminal_approver
from greenroom.actors.providers import ScriptedProvider
from greenroom.actors.system import Runtime, open_runtime
from greenroom.protocol.agents import MessageInput, ProviderResult
from greenroom.protocol.forms import sanitize_display_text
from greenroom.protocol.tools import ToolCall, ToolFailure, ToolResult, ToolSuccess
from greenroom.runtime.bus import Next
from greenroom.runtime.cancel import Cancel
from greenroom.runtime.context import current_actor
from greenroom.runtime.lineage import Lineage, within
from greenroom.runtime.pipeline.approvals import ApprovalRequest, Decision
from greenroom.runtime.pipeline.handling import Card, Handling
from greenroom.runtime.pipeline.invocations import Invocation
from greenroom.runtime.pipeline.outcomes import Outcome
from greenroom.runtime.pipeline.verdicts import Ask, Verdict
from greenroom.runtime.tools import Tool
from tests.pipeline.track import Log, Track, call


@pytest.fixture
def track() -> Track:
    """Every call needs approval."""
    track = Track()
    track.tool(lambda: "done")
    track.on(track.pipeline.pre_execute, lambda call: Ask("it is dear"))
    return track


def answer(track: Track, decision: Any, *, prepend: bool = False) -> list[ApprovalRequest]:
    """From now on every request is decided like that; gives the requests."""
    requests: list[ApprovalRequest] = []

    async def approve(request: ApprovalRequest, next: Next[Decision]) -> Any:
        requests.append(request)
        return decision

    track.bus.on(track.pipeline.approvals.event, approve, prepend=prepend)
    return requests


async def test_a_grant_lets_the_call_run(track: Track) -> None:
    requests = answer(track, Decision("allowed-once"))
    assert await track.value(arguments={"a": 1}) == "done"
    (request,) = requests
    assert (request.reason, request.card, request.call.arguments) == ("it is dear", Card("t", '{"a":1}'), {"a": 1})


@pytest.mark.case("pipeline", 13)
async def test_what_was_approved_may_still_be_guarded(track: Track) -> None:
    answer(track, Decision("allowed-once"))
    track.pipeline.guard(lambda call: "it is guarded")
    assert await track.error() == "The call was not run: it is guarded"


@pytest.mark.parametrize("same", [True, False])
async def test_a_grant_is_for_the_tool_that_was_asked_about(track: Track, same: bool) -> None:
    """While a person reads of one tool, another may take its name: a server that is mounted again, say."""
    ran: list[str] = []
    shown = Tool("t", lambda: ran.append("shown"))
    track.tools.add(shown)

    async def approve(request: ApprovalRequest, next: Next[Decision]) -> Decision:
        track.tools.add(shown if same else Tool("t", lambda: ran.append("other")))
        return Decision("allowed-once")

    track.bus.on(track.pipeline.approvals.event, approve)
    if same:
        await track.value()
    else:
        assert "another tool of this name" in await track.error()
        assert track.outcome.code == "TOOL_CHANGED"
    assert ran == (["shown"] if same else [])


@pytest.mark.case("pipeline", 14)
async def test_where_nobody_is_there_to_ask_the_call_is_denied(track: Track) -> None:
    assert "nobody is there to ask" in await track.error()
    assert track.log.events == ["call 1", "asked 1", "decided 1 unavailable", "result 1"]


@pytest.mark.case("pipeline", 15)
async def test_where_nobody_is_to_be_asked_nobody_is(track: Track) -> None:
    requests = answer(track, Decision("allowed-once"), prepend=True)
    track.pipeline.approvals.mode = "never"
    assert "by rule, not by a person" in await track.error()
    assert requests == []
    assert track.log.events[2] == "decided 1 rejected"


@pytest.mark.case("pipeline", 16)
@pytest.mark.parametrize("decision", ["yes", True, None, Decision("yes")])  # type: ignore[arg-type]  # no such kind
async def test_what_is_no_decision_is_none(track: Track, decision: Any) -> None:
    answer(track, decision)
    assert "no decision" in await track.error()
    assert track.log.events[2] == "decided 1 unavailable"


@pytest.mark.case("pipeline", 17)
async def test_a_stop_ends_the_question_and_no_late_answer_counts(track: Track, autojump_clock: MockClock) -> None:
    async def late(request: ApprovalRequest, next: Next[Decision]) -> Decision:
        with trio.CancelScope(shield=True):
            await trio.sleep(5)
        return Decision("allowed-once")

    track.bus.on(track.pipeline.approvals.event, late)
    stop = Cancel()
    async with trio.open_nursery() as nursery:

        async def later() -> None:
            await trio.sleep(1)
            stop.set()

        nursery.start_soon(later)
        await track.error(stop=stop)
    assert track.outcome.code == "ABORTED_BEFORE_DISPATCH"
    assert track.log.events == ["call 1", "asked 1", "decided 1 cancelled", "result 1"]


async def test_a_stop_is_one_though_a_part_of_who_decides_fails_at_it(track: Track, autojump_clock: MockClock) -> None:
    async def careless() -> None:
        try:
            await trio.sleep(9)
        finally:
            raise LookupError("there is nothing to close")

    async def approve(request: ApprovalRequest, next: Next[Decision]) -> Decision:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(careless)
            nursery.start_soon(trio.sleep, 9)
        return Decision("allowed-once")

    track.bus.on(track.pipeline.approvals.event, approve)
    stop = Cancel()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(track.execute, stop=stop))
        await trio.testing.wait_all_tasks_blocked()
        stop.set()
    assert track.log.events == ["call 1", "asked 1", "decided 1 cancelled", "result 1"]
    assert track.outcome.code == "ABORTED_BEFORE_DISPATCH"


async def test_a_granted_call_runs_once_however_often_a_policy_tries(track: Track) -> None:
    ran: list[object] = []
    answer(track, Decision("allowed-once"))

    async def twice(call: Invocation, next: Next[Outcome]) -> Outcome:
        await next()
        return await next()

    track.bus.on(track.pipeline.execute, twice)
    track.tool(lambda arguments: ran.append(arguments))
    assert "the approval was for one run" in await track.error()
    assert ran == [{}]
    assert track.outcome.code == "GRANT_SPENT"


# -------------------------------------------------------------------- at a terminal


class Desk:
    """A runtime in which calls of `press` need the approval of `ann`."""

    def __init__(self, runtime: Runtime, nursery: trio.Nursery) -> None:
        self.runtime = runtime
        self.nursery = nursery
        self.pressed: list[Any] = []
        self.results: dict[str, ToolResult] = {}
        runtime.terminals.add("ann")
        runtime.tools.add(Tool("press", self.press, handling=Handling(concurrent=True)))
        runtime.tools.add(Tool("look", lambda: "nothing", handling=Handling(concurrent=True)))
        runtime.bus.on("tools/pre-execute", self.gate)

    async def press(self, arguments: dict[str, Any]) -> str:
        self.pressed.append(arguments["button"])
        return "pressed"

    async def gate(self, call: Invocation, next: Next[Verdict]) -> Verdict:
        return Ask("a button is pressed") if call.name.endswith("press") else await next()

    def approve(self, **options: Any) -> None:
        self.runtime.bus.on("approval/request", terminal_approver(self.runtime.terminals, "ann", **options))

    def start(self, *calls: ToolCall) -> None:
        async def run() -> None:
            results = await self.runtime.tools.execute(calls)
            self.results.update({result.id: result for result in results})

        self.nursery.start_soon(run)

    async def answer(self, **values: Any) -> str:
        """Answers the one form that is there; gives what it says."""
        await trio.testing.wait_all_tasks_blocked()
        (record,) = self.runtime.terminals.pending("ann")
        assert (await self.runtime.terminals.answer("ann", record.id, values)).success
        await trio.testing.wait_all_tasks_blocked()
        return str(record.schema.help)

    def error(self, id: str) -> str:
        result = self.results[id]
        assert isinstance(result, ToolFailure)
        return result.error


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with open_runtime(timeout=60.0) as runtime, trio.open_nursery() as nursery:
        yield Desk(runtime, nursery)
        nursery.cancel_scope.cancel()


def press(id: str, button: int = 1) -> ToolCall:
    return call("press", {"button": button}, id)


@pytest.mark.case("reports/pipeline", 3)
async def test_two_calls_alike_are_two_questions(desk: Desk, mock_clock: MockClock) -> None:
    desk.approve()
    desk.start(press("one"), press("two"))
    first = await desk.answer(allow=True)
    assert desk.pressed == [1]
    second = await desk.answer(allow=False)
    assert ("call one" in first, "call two" in second) == (True, True)
    assert desk.pressed == [1]
    assert desk.results["one"] == ToolSuccess(id="one", name="press", value="pressed")
    assert "a person refused it" in desk.error("two")


@pytest.mark.case("reports/pipeline", 2)
async def test_a_question_that_expires_fails_its_call_alone(desk: Desk, autojump_clock: MockClock) -> None:
    desk.approve(timeout=5)
    provider = ScriptedProvider(
        [ProviderResult("", tools=(press("t1"), call("look", id="t2"))), ProviderResult("I could not press it.")]
    )
    agent = desk.runtime.agents.add(Agent(provider, tools=desk.runtime.tools))
    agent.context.messages.add(MessageInput("user", "Press it."))
    result = await agent.generate()
    assert (result.content, result.partial) == ("I could not press it.", False)
    refused, looked = [message.content for message in agent.context.messages.view() if message.role == "tool"]
    assert "the time to answer ran out" in refused
    assert looked == '"nothing"'
    assert desk.pressed == []


@pytest.mark.case("reports/pipeline", 5)
async def test_the_ways_to_be_refused_are_told_apart_and_none_is_asked_again(desk: Desk, mock_clock: MockClock) -> None:
    desk.start(press("nobody"))
    await trio.testing.wait_all_tasks_blocked()
    desk.approve()
    desk.start(press("no"))
    await desk.answer(allow=False)
    desk.start(press("text"))
    await desk.answer(allow=False, text="not before noon")
    desk.start(press("dismissed"))
    await trio.testing.wait_all_tasks_blocked()
    terminal = desk.runtime.terminals.terminal("ann")
    assert terminal is not None
    await terminal.stop()
    await trio.testing.wait_all_tasks_blocked()
    errors = [desk.error(id) for id in ("nobody", "no", "text", "dismissed")]
    assert len(set(errors)) == 4
    assert all(error.startswith("The call was not run") for error in errors)
    assert ["a person refused it" in error for error in errors] == [False, True, True, False]
    assert "not before noon" in errors[2]
    assert "nobody refused it" in errors[0]
    assert "nobody refused it" in errors[3]
    assert (desk.pressed, desk.runtime.terminals.pending()) == ([], [])


async def test_the_form_shows_the_arguments_whatever_the_tool_makes_of_them(desk: Desk, mock_clock: MockClock) -> None:
    handling = Handling(present_call=lambda arguments: Card("the red button", "harmless"))
    desk.runtime.tools.add(Tool("press", desk.press, handling=handling))
    desk.approve(from_="machine")
    desk.start(press("one", 7))
    shown = await desk.answer(allow=True)
    assert "calls the red button (call one). a button is pressed" in shown
    assert 'harmless\n{"button":7}' in shown


async def test_a_cancelled_call_takes_its_question_from_every_screen(desk: Desk, mock_clock: MockClock) -> None:
    desk.approve()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(desk.runtime.tools.execute, press("one"))
        await trio.testing.wait_all_tasks_blocked()
        assert len(desk.runtime.terminals.pending()) == 1
        nursery.cancel_scope.cancel()
    assert desk.runtime.terminals.pending() == []


async def test_a_terminal_that_is_not_there_refuses_and_may_be_added_later(
    desk: Desk, mock_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    desk.runtime.bus.on("approval/request", terminal_approver(desk.runtime.terminals, "bob"))
    desk.start(press("one"))
    await trio.testing.wait_all_tasks_blocked()
    assert "bob was to be asked. There is no terminal bob. There is ann." in desk.error("one")
    (warned,) = [record.getMessage() for record in caplog.records if record.name == "greenroom.approvals"]
    assert warned.startswith("Nobody was asked whether press may run")
    assert "There is no terminal bob. There is ann." in warned
    await desk.runtime.tools.execute(call("\x1b[2Jpress", id="hidden"))
    assert caplog.records[-1].getMessage().startswith("Nobody was asked whether \\u001b[2Jpress may run")
    desk.runtime.terminals.add("bob")
    desk.start(press("two"))
    await trio.testing.wait_all_tasks_blocked()
    assert len(desk.runtime.terminals.pending("bob")) == 1


async def test_agents_above_that_no_tag_names_count_too(desk: Desk, mock_clock: MockClock) -> None:
    desk.approve()
    with within(Lineage(("agent:child",), unnamed=1)):
        desk.start(press("one"))
    await trio.testing.wait_all_tasks_blocked()
    assert "report to who gave you the work" in desk.error("one")
    assert desk.runtime.terminals.pending() == []


@pytest.mark.parametrize("routed", [False, True])
async def test_a_delegated_agent_has_nobody_to_ask(desk: Desk, routed: bool, mock_clock: MockClock) -> None:
    desk.runtime.pipeline.recorder = log = Log()
    desk.runtime.pipeline.approvals.delegated = routed
    desk.approve()
    child = Agent(ScriptedProvider([ProviderResult("", tools=(press("deep"),)), ProviderResult("I report.")]))
    child.context.tools.add(Tool("press", desk.press))
    child.context.messages.add(MessageInput("user", "Press it."))

    async def delegate() -> str:
        parent = current_actor()
        assert parent is not None
        place = parent.spawn(child, "child")
        try:
            return (await child.generate()).content
        finally:
            await place.stop()

    root = desk.runtime.agents.add(
        Agent(
            ScriptedProvider([ProviderResult("", tools=(call("delegate"),)), ProviderResult("Done.")]),
            tools=[Tool("delegate", delegate)],
        )
    )
    root.context.messages.add(MessageInput("user", "Have it pressed."))
    if routed:
        desk.nursery.start_soon(root.generate)
        assert "/child calls press" in await desk.answer(allow=True)
        assert desk.pressed == [1]
        return
    assert (await root.generate()).content == "Done."
    (refused,) = [message.content for message in child.context.messages.view() if message.role == "tool"]
    assert "report to who gave you the work" in refused
    assert "nobody refused it" in refused
    assert (desk.pressed, desk.runtime.terminals.pending()) == ([], [])
    assert [event for event in log.events if event.startswith("result")] == ["result deep", "result 1"]
    deep = log.settled[0].call
    assert deep.parent is None, "it is a call of the child, whose texts are its own"


HIDING = {
    "a string of the terminal": "ls \x9d; rm -rf /\x9c",
    "an override of the order": "ls \u202e/ fr- mr ;",
    "a space of no width": "ls\u200b",
    "a letter that fills a gap of Hangul": "ls \u3164rm",
    "the blank of Braille": "ls \u2800rm",
    "a joiner of graphemes": "ls\u034f",
    "a selector of variants": "ls\ufe0f",
    "a selector of further variants": "ls\U000e0100",
    "the end of a line": "ls\u2028rm -rf /",
}


@pytest.mark.parametrize("command", HIDING.values(), ids=HIDING)
async def test_no_part_of_a_call_is_hidden_from_who_is_asked(desk: Desk, command: str, mock_clock: MockClock) -> None:
    """As a console shows it, which drops what moves its cursor."""

    async def press(arguments: dict[str, Any]) -> str:
        return await desk.press(arguments)

    handling = Handling(present_call=lambda arguments: Card(arguments["button"], arguments["button"]))
    desk.runtime.tools.add(Tool("press", press, handling=handling))
    desk.approve()
    desk.start(call("press", {"button": command}, f"1). All is well.\n{command}"))
    shown = sanitize_display_text(await desk.answer(allow=True))
    assert desk.pressed == [command]
    whole = json.dumps(command)[1:-1]
    assert shown.count(whole) == 4, "the id, the title, the body, the arguments"
    assert shown.count("\n") == 0, "a console has dropped the ends of lines"
    assert json.loads(shown[shown.index("{") :]) == {"button": command}


@pytest.mark.parametrize("name", [None, "the desk"])
async def test_a_form_is_asked_in_the_name_of_the_agent_that_calls(
    desk: Desk, name: str | None, mock_clock: MockClock
) -> None:
    desk.approve(from_=name)
    provider = ScriptedProvider([ProviderResult("", tools=(press("one"),)), ProviderResult("Done.")])
    agent = desk.runtime.agents.add(Agent(provider, id="orc", tools=desk.runtime.tools))
    desk.nursery.start_soon(agent.generate)
    await trio.testing.wait_all_tasks_blocked()
    (record,) = desk.runtime.terminals.pending("ann")
    assert record.from_ == (name or agent.ref.path)
    await desk.answer(allow=True)
    assert desk.pressed == [1]


async def test_what_is_said_to_a_call_that_may_run_is_told_too(desk: Desk, mock_clock: MockClock) -> None:
    outcomes: list[Outcome] = []
    desk.runtime.bus.on("tools/result", lambda settled: outcomes.append(settled.outcome))
    desk.approve()
    desk.start(press("one"))
    await desk.answer(allow=True, text="but only today")
    assert outcomes[0].contexts == ("Whoever allowed press said: but only today",)


async def test_a_person_may_say_what_has_no_utf8_form(desk: Desk, mock_clock: MockClock) -> None:
    desk.approve()
    desk.start(press("one"))
    await desk.answer(allow=False, text="not \ud800 now.")
    assert desk.error("one") == "The call was not run: a person refused it: not \\ud800 now."
