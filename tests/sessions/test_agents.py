"""An agent with a session: what it does is logged, and what it knows is read out of the log."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from typing import Any

import pytest
import trio

import greenroom
from greenroom.actors.agent import Agent, ConversationManager
from greenroom.actors.providers.scripted import ScriptedProvider, ScriptedTurn
from greenroom.actors.session import MemoryPersistence, Session
from greenroom.actors.system import open_runtime
from greenroom.protocol.agents import Authority, MessageInput, ProviderResult, Rule
from greenroom.protocol.errors import AgentError, ConversationError, InvariantError, ProviderError, SessionError
from greenroom.protocol.sessions import SessionEvent, SessionHeader, repair
from greenroom.protocol.tools import ToolCall
from greenroom.runtime.bus import Next
from greenroom.runtime.pipeline.approvals import ApprovalRequest, Decision
from greenroom.runtime.pipeline.handling import Handling
from greenroom.runtime.pipeline.invocations import Invocation
from greenroom.runtime.pipeline.verdicts import Ask, Verdict
from greenroom.runtime.policies import CheckedRecorder
from greenroom.runtime.tools import Tool
from tests.cancelling import Doomed, at_every_step
from tests.clock import settle
from tests.sessions.conftest import Desk, session_of, shown, told

DONE = ProviderResult("done")


def calling(*names: str, id: str = "1", **arguments: Any) -> ProviderResult:
    """An answer whose calls all have the same id."""
    return ProviderResult("", tools=tuple(ToolCall(id, name, arguments) for name in names))


def tools(*names: str, concurrent: bool = False) -> list[Tool]:
    def named(name: str) -> Tool:
        return Tool(name, lambda: f"{name} did", handling=Handling(concurrent=concurrent))

    return list(map(named, names))


class Disk(MemoryPersistence):
    """One that outlives the process, and may be full."""

    durable = True

    def __init__(self) -> None:
        super().__init__()
        self.full = False

    async def append(self, header: SessionHeader, events: Sequence[SessionEvent]) -> None:
        if self.full:
            raise OSError("no space left")
        await super().append(header, events)


async def test_a_turn_is_logged_from_its_beginning_to_its_end(desk: Desk) -> None:
    agent = await desk.agent(calling("look", "look"), DONE, tools=tools("look"))
    assert (await agent.generate()).content == "done"
    assert shown(agent) == [
        "user go",
        "turn/start",
        "step/start",
        "assistant ",
        "call look 0",
        'result look 0 "look did"',
        "call look 1",
        'result look 1 "look did"',
        "step/end",
        "step/start",
        "assistant done",
        "step/end",
        "turn/end completed",
    ]
    log = session_of(agent)
    assert [event.source_event_seqs for event in log.events()][4:8] == [(3,), (4,), (3,), (6,)]
    assert desk.recorder.open == 0


async def test_an_agent_on_a_session_that_is_opened_again_goes_on_where_it_was(desk: Desk) -> None:
    agent = await desk.agent(calling("look"), DONE, tools=tools("look"))
    await agent.generate()
    before = told(agent)
    log = session_of(agent).events()
    agent = await desk.again(agent, ProviderResult("more"))
    await agent.generate()
    assert told(agent) == [*before, ("assistant", "done"), ("user", "go on")]
    assert session_of(agent).events()[: len(log)] == log
    assert agent.context.messages.count == 6


async def test_the_conversation_is_the_log(desk: Desk) -> None:
    agent = await desk.agent(DONE, say=None)
    conversation = agent.context.messages
    (first, _) = conversation.add([MessageInput("user", "one", images=("aGk=",)), MessageInput("user", "two")])
    assert conversation.message(first.id) == first == conversation.messages()[0]
    session_of(agent).append("user/message", {"content": "three"})
    assert [message.content for message in conversation.view()] == ["one", "two", "three"]
    assert conversation.search("TWO")
    for refused in (conversation.clear, lambda: conversation.remove(first.id)):
        with pytest.raises(ConversationError, match="read out of a log") as refusal:
            refused()
        assert refusal.value.code == "LOGGED"
    with pytest.raises(ConversationError, match="add what the user says"):
        conversation.add(MessageInput("tool", "x"))
    assert session_of(agent).count == 3


async def test_a_session_is_the_log_of_the_agent_of_its_id(desk: Desk) -> None:
    agent = await desk.agent(DONE)
    assert agent.id == session_of(agent).id == "a"
    with pytest.raises(AgentError, match="open one of its own"):
        Agent(ScriptedProvider([DONE]), id="b", session=agent.session)


async def test_two_runs_do_not_share_a_session(desk: Desk) -> None:
    agent = await desk.agent(ScriptedTurn(DONE, delay=10), DONE)
    async with agent.stream():
        with pytest.raises(AgentError, match="share its session"):
            await agent.generate()
        other = desk.runtime.spawn(twin := Agent(ScriptedProvider([DONE]), session=agent.session), "twin")
        with pytest.raises(SessionError, match="a turn is open"):
            await twin.generate()
        await other.stop()
    assert shown(agent) == ["user go", "turn/start", "step/start", "step/end", "turn/end aborted left"]


async def test_what_was_seen_of_an_answer_that_was_stopped_is_logged_as_interrupted(
    desk: Desk, mock_clock: trio.testing.MockClock
) -> None:
    agent = await desk.agent(ScriptedTurn(ProviderResult("never whole"), deltas=("par", "tial"), pause=5), DONE)
    async with agent.stream() as run:
        await settle()
        mock_clock.jump(5)
        await settle()
        run.abort("enough")
    assert shown(agent)[3:] == ["assistant partial ...", "step/end", "turn/end aborted enough"]
    await agent.generate()
    assert told(agent) == [("user", "go"), ("assistant", "partial")]


async def test_an_answer_that_fails_ends_the_turn_as_an_error(desk: Desk) -> None:
    failure = ProviderError("SERVER", "it \ud800 broke")
    agent = await desk.agent(ScriptedTurn(ProviderResult("half"), failure=failure))
    with pytest.raises(ProviderError):
        await agent.generate()
    assert shown(agent)[3:] == ["assistant half ...", "step/end", "turn/end error"]
    end = session_of(agent).event(session_of(agent).last)
    assert (end.data.error.code, end.data.error.message) == ("SERVER", "it \\ud800 broke")


async def test_a_turn_that_uses_up_its_steps_says_so(desk: Desk) -> None:
    agent = await desk.agent(calling("look"), tools=tools("look"), limit=2)
    await agent.generate()
    assert shown(agent)[-1] == "turn/end aborted limit"


async def test_calls_that_may_not_run_have_their_results_in_place(desk: Desk) -> None:
    authority = Authority([Rule("danger", lambda call: call.name == "never", allowed=False, reason="not today")])
    agent = await desk.agent(
        calling("look", "never", "unknown", "look"), DONE, tools=tools("look", "never"), authority=authority
    )
    await agent.generate()
    assert [content for role, content in told(agent) if role == "tool"] == [
        '"look did"',
        "Error: denied: not today",
        "Error: tool not found: unknown",
        '"look did"',
    ]
    assert shown(agent)[4:8] == ["call never 1", "result never 1 DENIED", "call unknown 2", "result unknown 2 DENIED"]


async def test_calls_that_overlap_are_logged_in_the_order_of_the_answer(desk: Desk) -> None:
    gate = trio.Event()

    async def slow() -> str:
        await gate.wait()
        return "slow"

    def quick() -> str:
        gate.set()
        return "quick"

    handling = Handling(concurrent=True)
    both = [Tool("slow", slow, handling=handling), Tool("quick", quick, handling=handling)]
    agent = await desk.agent(calling("slow", "quick"), DONE, tools=both)
    await agent.generate()
    assert shown(agent)[4:8] == ["call slow 0", "call quick 1", 'result slow 0 "slow"', 'result quick 1 "quick"']


async def test_a_call_within_a_tool_is_logged_beneath_it_and_not_told_to_the_model(desk: Desk) -> None:
    inner = greenroom.ToolManager()
    inner.add(tools("look"))

    async def outer() -> str:
        return str((await inner.execute(ToolCall("x", "look", {}))).success)

    agent = await desk.agent(calling("outer"), DONE, tools=[Tool("outer", outer)])
    await agent.generate()
    assert shown(agent)[4:8] == [
        "call outer 0",
        "call look None",
        'result look None "look did"',
        'result outer 0 "True"',
    ]
    assert [role for role, _ in told(agent)] == ["user", "assistant", "tool"]


async def test_a_call_that_outlives_its_step_is_closed_there(desk: Desk) -> None:
    gate, begun = trio.Event(), trio.Event()

    async def hang() -> None:
        begun.set()
        await gate.wait()

    inner = greenroom.ToolManager()
    inner.add(Tool("hang", hang))

    async def leave() -> str:
        agent.start_soon(inner.execute, ToolCall("x", "hang", {}))
        await begun.wait()
        return "left"

    agent = await desk.agent(calling("leave"), DONE, tools=[Tool("leave", leave)])
    await agent.generate()
    gate.set()
    await settle()
    assert "result hang None TOOL_OUTCOME_UNKNOWN" in shown(agent)
    assert shown(agent)[-1] == "turn/end completed"


async def test_calls_of_nobody_and_of_agents_without_a_session_are_recorded_nowhere(desk: Desk) -> None:
    agent = await desk.agent(DONE)
    await agent.generate()
    count = session_of(agent).count
    other = desk.runtime.agents.add(Agent(ScriptedProvider([calling("look"), DONE]), tools=tools("look")))
    await other.generate()
    desk.runtime.tools.add(tools("look"))
    await desk.runtime.tools.execute(ToolCall("1", "look", {}))
    assert session_of(agent).count == count


async def test_what_an_agent_has_delegated_is_not_in_its_log(desk: Desk) -> None:
    child = ScriptedProvider([calling("look"), ProviderResult("found")])
    registry = greenroom.AgentRegistry({"child": child}, tools={"look": tools("look")[0]})
    tool = greenroom.agent_tool(registry, provider="child", tools=["look"])
    agent = await desk.agent(calling("agent", task="look"), DONE, tools=[tool])
    await agent.generate()
    assert shown(agent)[4:6] == ["call agent 0", 'result agent 0 "found"']


async def test_an_approval_is_logged_with_what_was_decided(desk: Desk) -> None:
    async def ask(call: Invocation, next: Next[Verdict]) -> Verdict:
        return Ask("it is dear")

    async def allow(request: ApprovalRequest, next: Next[Decision]) -> Decision:
        return Decision("rejected", "too dear", person=True)

    desk.runtime.bus.on("tools/pre-execute", ask)
    desk.runtime.bus.on("approval/request", allow)
    agent = await desk.agent(calling("look"), DONE, tools=tools("look"))
    await agent.generate()
    assert shown(agent)[4:8] == ["call look 0", "approval/asked", "decided rejected", "result look 0 DENIED"]
    asked = session_of(agent).event(5)
    assert (asked.data.name, asked.data.reason, asked.source_event_seqs) == ("look", "it is dear", (4,))


async def test_a_stopped_batch_has_a_result_for_each_call_also_for_those_that_never_began(desk: Desk) -> None:
    async def stop() -> None:
        agent.abort("enough")
        await trio.sleep_forever()

    agent = await desk.agent(calling("look", "stop", "look", "look"), tools=[*tools("look"), Tool("stop", stop)])
    assert (await agent.generate()).partial
    assert shown(agent)[4:] == [
        "call look 0",
        'result look 0 "look did"',
        "call stop 1",
        "result stop 1 ABORTED",
        "call look 2",
        "result look 2 ABORTED_BEFORE_DISPATCH",
        "call look 3",
        "result look 3 ABORTED_BEFORE_DISPATCH",
        "step/end",
        "turn/end aborted enough",
    ]


@pytest.mark.parametrize("durable", [False, True])
async def test_a_run_that_is_cancelled_at_any_step_leaves_a_log_that_needs_no_repair(
    autojump_clock: trio.testing.MockClock, durable: bool
) -> None:
    async def scenario(doomed: Doomed) -> None:
        disk = Disk() if durable else MemoryPersistence()
        async with open_runtime(session_persistence=disk) as runtime:
            desk = Desk(runtime)
            inner = greenroom.ToolManager()
            inner.add(tools("look"))

            async def outer() -> str:
                await trio.sleep(1)
                return str((await inner.execute(ToolCall("x", "look", {}))).success)

            agent = await desk.agent(calling("outer", "look"), DONE, tools=[*tools("look"), Tool("outer", outer)])
            await doomed(agent.generate)
            log = session_of(agent)
            assert repair(log.order, log.events()) == []
            again = Session(log.header, log.events())
            roles = [message.role for message in again.history()]
            assert roles.count("tool") in (0, 2)
            assert desk.recorder.open == 0
        kept = await disk.read("a")
        assert kept is not None
        assert tuple(kept.events) == log.events(), "what was logged is kept"

    await at_every_step(scenario)


async def test_an_agent_that_is_stopped_logs_its_turn_to_the_end(desk: Desk) -> None:
    begun = trio.Event()

    async def hang() -> None:
        begun.set()
        await trio.sleep_forever()

    agent = await desk.agent(calling("hang"), tools=[Tool("hang", hang)])
    async with trio.open_nursery() as nursery:
        run = await nursery.start(_running, agent)
        await begun.wait()
        await desk.runtime.agents.remove("a")
        assert run.settled
    assert shown(agent)[4:] == ["call hang 0", "result hang 0 ABORTED", "step/end", "turn/end aborted stopped"]


async def _running(agent: Agent, *, task_status: trio.TaskStatus[Any] = trio.TASK_STATUS_IGNORED) -> None:
    async with agent.stream() as run:
        task_status.started(run)
        with pytest.raises(greenroom.ActorError):
            await run.result()


@pytest.mark.parametrize("arguments", [{"n": 2**60}, {"n": math.inf}, {"\ud800": 1}, {"s": "\ud800"}])
async def test_what_a_model_says_is_logged_whatever_it_is(desk: Desk, arguments: dict[str, Any]) -> None:
    call = ToolCall("\ud800", "look", arguments)
    agent = await desk.agent(ProviderResult("half \udfff", tools=(call,)), DONE, tools=tools("look"))
    await agent.generate()
    assert shown(agent)[3:6] == ["assistant half \\udfff", "call look 0", "result look 0 INVALID_ARGS"]


async def test_what_a_policy_tells_the_model_is_logged_as_context(desk: Desk) -> None:
    def look() -> str:
        greenroom.defer_context("mind the gap")
        return "did"

    agent = await desk.agent(calling("look"), DONE, tools=[Tool("look", look)])
    await agent.generate()
    (context,) = [event.data for event in session_of(agent).events() if getattr(event.data, "source", None)]
    assert (context.content, context.source) == ("mind the gap", "context")
    assert told(agent)[-1] == ("user", "mind the gap")


async def test_a_folded_conversation_is_folded_for_good_and_the_log_keeps_it_all(desk: Desk) -> None:
    async def summarize(messages: Any) -> str:
        return f"{len(messages)} messages"

    conversations = ConversationManager(summarize=summarize, keep=1)
    agent = await desk.agent(calling("look", "look"), DONE, tools=tools("look"), conversations=conversations)
    await agent.generate()
    conversation = agent.context.messages
    assert await conversation.compact(keep=2) is None or conversation.count
    section = await conversation.compact()
    assert section is not None
    assert section.summary
    contents = [message.content for message in conversation.view()]
    assert contents[0].startswith("[Summary of earlier messages] ")
    assert contents[-1] == "done"
    assert len(session_of(agent).events()) > 10
    agent = await desk.again(agent, ProviderResult("more"))
    await agent.generate()
    assert [content for _, content in told(agent)] == [*contents, "go on"]


async def test_a_fold_takes_no_answer_from_its_results(desk: Desk) -> None:
    async def summarize(messages: Any) -> str:
        return f"{len(messages)} messages"

    agent = await desk.agent(
        calling("look", "look"), DONE, tools=tools("look"), conversations=ConversationManager(summarize=summarize)
    )
    await agent.generate()
    conversation = agent.context.messages
    section = await conversation.compact(keep=2)  # would keep one of the two results
    assert section is not None
    assert [message.content for message in section.messages] == ["go"]
    assert [message.role for message in conversation.view()] == ["assistant", "assistant", "tool", "tool", "assistant"]
    assert await conversation.compact(keep=4) is None, "an earlier summary is not folded alone"


async def test_a_recorder_that_passes_nothing_on_is_found_out(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    desk.runtime.pipeline.recorder = CheckedRecorder()
    agent = await desk.agent(calling("look"), DONE, tools=tools("look"))
    with pytest.raises(InvariantError, match="wrap it"):
        await agent.generate()
    assert shown(agent)[-1] == "turn/end error"


async def test_calls_of_others_take_no_notice_of_a_session() -> None:
    async with open_runtime() as runtime:
        session, provider = await runtime.sessions.open("a"), ScriptedProvider([calling("look"), DONE])
        agent = runtime.agents.add(Agent(provider, tools=tools("look"), session=session))
        await agent.generate()
        assert [event.type for event in session.events()].count("tool/result") == 1
        together = trio.Event()
        waiting = 0

        async def meet() -> str:
            nonlocal waiting
            waiting += 1
            if waiting == 2:
                together.set()
            await together.wait()
            return "met"

        other = runtime.agents.add(Agent(ScriptedProvider([calling("meet", "meet"), DONE]), tools=[Tool("meet", meet)]))
        with trio.fail_after(5):
            assert (await other.generate()).content == "done", "its calls overlap, as without any policy"
        assert runtime.pipeline.idle


async def test_an_agent_whose_session_was_disposed_of_fails_and_stays(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    agent = await desk.agent(DONE)
    await desk.runtime.sessions.dispose(session_of(agent))
    for _ in range(2):
        with pytest.raises(SessionError, match="disposed"):
            await agent.generate()
    assert agent.status == "error"


async def test_a_session_that_is_disposed_of_in_a_turn_ends_the_run_with_an_error(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    async def dispose() -> None:
        await desk.runtime.sessions.dispose(session_of(agent))

    agent = await desk.agent(calling("dispose"), DONE, tools=[Tool("dispose", dispose)])
    with caplog.at_level(logging.CRITICAL, "greenroom.agents"), pytest.raises(SessionError, match="disposed"):
        await agent.generate()
    assert agent.status == "error"
    again = await desk.runtime.sessions.open("a")
    assert [event.type for event in again.events()][-3:] == ["tool/result", "step/end", "turn/end"]


async def test_no_tool_runs_and_no_model_is_asked_while_the_record_cannot_be_kept(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ran: list[str] = []
    async with open_runtime(session_persistence=(disk := Disk())) as runtime:

        def fill(messages: Any, offered: Any) -> ProviderResult:
            disk.full = True
            return calling("look")

        desk = Desk(runtime)
        agent = await desk.agent(fill, DONE, tools=[Tool("look", lambda: ran.append("look"))])
        for _ in range(2):
            with pytest.raises(OSError, match="no space left"):
                await agent.generate()
        assert ran == []
        assert "result look 0 TOOL" in shown(agent)
        assert isinstance(agent.provider, ScriptedProvider)
        assert agent.provider.started == 1
        disk.full = False
        await agent.generate()
        await runtime.sessions.flush(session_of(agent))
        kept = await disk.read("a")
        assert kept is not None
        assert tuple(kept.events) == session_of(agent).events()


async def test_an_agent_with_a_session_of_no_runtime_is_logged_in_memory(desk: Desk) -> None:
    session = Session(SessionHeader(id="alone", created_at=0))
    agent = desk.runtime.agents.add(
        Agent(ScriptedProvider([calling("look"), DONE]), tools=tools("look"), session=session)
    )
    await agent.generate()
    assert shown(agent)[-1] == "turn/end completed"
    await session.flush()
