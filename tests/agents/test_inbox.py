"""The inbox of an agent: what is read when, what it wakes, and that nothing put into it is lost or read twice."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from greenroom.actors.agent import Agent, ConversationManager
from greenroom.actors.providers.scripted import ScriptedProvider, ScriptedTurn
from greenroom.actors.system import open_runtime
from greenroom.protocol.agents import AgentResult, ProviderResult, Window
from greenroom.protocol.errors import ActorError, AgentError, GreenroomError, ToolError
from greenroom.runtime.cancel import Cancel
from greenroom.runtime.inbox import InboxInserted
from greenroom.runtime.lineage import beneath, current_lineage
from greenroom.runtime.pipeline.execution import conclude_turn
from greenroom.runtime.tools import Tool
from tests.agents.conftest import Stage, calling, stored
from tests.cancelling import Doomed, at_every_step

SLOW = ScriptedTurn(ProviderResult("slow"), delay=10.0)
DONE = ProviderResult("done")


class Inboxes:
    """What the bus told of the inboxes of a runtime: the texts, each time."""

    def __init__(self, stage: Stage) -> None:
        self.events: list[tuple[str, Any]] = []
        bus = stage.runtime.bus
        bus.on("inbox/inserted", lambda told: self.events.append((told.message.kind, told.message.text)))
        bus.on("inbox/claimed", lambda told: self.events.append(("claimed", [each.text for each in told.messages])))
        bus.on("inbox/discarded", lambda told: self.events.append((told.reason, [each.text for each in told.messages])))


async def test_a_followup_wakes_an_idle_agent_for_a_run_whose_end_is_told(stage: Stage) -> None:
    agent, told = stage.agent(DONE, seed=None), Inboxes(stage)
    id = agent.inbox.followup("hello")
    assert [message.id for message in agent.inbox.messages] == [id]
    await trio.testing.wait_all_tasks_blocked()
    assert stored(agent) == [("user", "hello"), ("assistant", "done")]
    assert stage.names == ["start", "turn", "finish"]
    assert told.events == [("followup", "hello"), ("claimed", ["hello"])]
    assert agent.inbox.messages == ()
    assert agent.status == "done"


async def test_followups_have_turns_of_their_own_in_order(stage: Stage) -> None:
    agent, told = stage.agent(ProviderResult("a"), ProviderResult("b"), seed=None), Inboxes(stage)
    agent.inbox.followup("one")
    agent.inbox.followup("two")
    await trio.testing.wait_all_tasks_blocked()
    assert stored(agent) == [("user", "one"), ("assistant", "a"), ("user", "two"), ("assistant", "b")]
    assert [event for event in told.events if event[0] == "claimed"] == [("claimed", ["one"]), ("claimed", ["two"])]


async def test_an_inject_waits_for_whatever_comes_next(stage: Stage) -> None:
    agent = stage.agent(DONE, seed=None)
    agent.inbox.inject("by the way")
    await trio.testing.wait_all_tasks_blocked()
    assert stored(agent) == []
    agent.inbox.followup("go")
    await trio.testing.wait_all_tasks_blocked()
    assert stored(agent) == [("user", "by the way"), ("user", "go"), ("assistant", "done")]


async def test_what_steers_has_a_turn_without_the_followup(stage: Stage) -> None:
    agent = stage.agent(ProviderResult("a"), ProviderResult("b"), seed=None)
    agent.inbox.followup("later")
    agent.inbox.steer("now")
    await trio.testing.wait_all_tasks_blocked()
    assert stored(agent) == [("user", "now"), ("assistant", "a"), ("user", "later"), ("assistant", "b")]


@pytest.mark.parametrize("kind", ["steer", "inject"])
async def test_a_busy_agent_reads_it_before_its_next_step(stage: Stage, kind: str) -> None:
    agent: Agent

    def say() -> None:
        getattr(agent.inbox, kind)("hear")

    agent = stage.agent(calling("", "say"), DONE, tools=[Tool("say", say)])
    assert (await agent.generate()).content == "done"
    assert stored(agent)[-3:] == [("tool", "null"), ("user", "hear"), ("assistant", "done")]


@pytest.mark.parametrize("kind", ["steer", "inject"])
async def test_a_turn_does_not_end_before_what_is_for_its_next_step_was_read(
    stage: Stage, kind: str, autojump_clock: trio.testing.MockClock
) -> None:
    agent = stage.agent(SLOW, DONE)
    async with agent.stream() as run:
        await trio.sleep(5)
        getattr(agent.inbox, kind)("hear")
        assert (await run.result()).content == "done"
    assert stored(agent) == [("user", "go"), ("assistant", "slow"), ("user", "hear"), ("assistant", "done")]
    assert stage.names.count("start") == 1


async def test_nor_if_a_tool_has_concluded_it(stage: Stage) -> None:
    agent: Agent

    def conclude() -> None:
        conclude_turn()
        agent.inbox.inject("hear")

    stage.runtime.bus.on("tools/result", lambda _: None)
    agent = stage.agent(calling("", "conclude"), DONE, tools=[Tool("conclude", conclude)])
    assert (await agent.generate()).content == "done"
    assert stored(agent)[-2:] == [("user", "hear"), ("assistant", "done")]


async def test_a_run_without_a_turn_left_leaves_it_to_the_next_one(
    stage: Stage, autojump_clock: trio.testing.MockClock
) -> None:
    agent = stage.agent(SLOW, DONE)
    async with agent.stream(limit=1) as run:
        await trio.sleep(5)
        agent.inbox.steer("hear")
        assert (await run.result()) == AgentResult(content="slow", partial=False)
    await trio.testing.wait_all_tasks_blocked()
    assert stored(agent)[-2:] == [("user", "hear"), ("assistant", "done")]
    assert stage.names.count("start") == 2


async def test_a_followup_waits_for_the_run_that_somebody_awaits(
    stage: Stage, autojump_clock: trio.testing.MockClock
) -> None:
    agent = stage.agent(SLOW, DONE)
    async with agent.stream() as run:
        agent.inbox.followup("next")
        assert (await run.result()).content == "slow"
        assert stored(agent)[-1] == ("assistant", "slow")
    await trio.testing.wait_all_tasks_blocked()
    assert stored(agent)[-2:] == [("user", "next"), ("assistant", "done")]


@pytest.mark.parametrize("keep", [False, True])
async def test_a_stop_clears_the_inbox_unless_it_is_kept(
    stage: Stage, keep: bool, autojump_clock: trio.testing.MockClock
) -> None:
    agent, told = stage.agent(SLOW, DONE), Inboxes(stage)
    async with agent.stream() as run:
        await trio.sleep(5)
        agent.inbox.followup("queued")
        agent.abort("enough", keep_inbox=keep)
        agent.inbox.followup("meanwhile")
        assert (await run.result()).partial
    await trio.testing.wait_all_tasks_blocked()
    read = [text for role, text in stored(agent) if role == "user"]
    assert read == (["go", "queued", "meanwhile"] if keep else ["go", "meanwhile"])
    assert (("enough", ["queued"]) in told.events) is not keep


async def test_a_stop_of_an_idle_agent_clears_nothing(stage: Stage) -> None:
    agent = stage.agent(DONE, seed=None)
    agent.inbox.inject("kept")
    agent.abort()
    assert [message.text for message in agent.inbox.messages] == ["kept"]


async def test_a_run_that_was_woken_and_fails_tells_so_and_what_waits_goes_on(stage: Stage) -> None:
    failing = ScriptedTurn(failure=LookupError("no such model"))
    agent = stage.agent(failing, DONE, seed=None)
    agent.inbox.followup("one")
    agent.inbox.followup("two")
    await trio.testing.wait_all_tasks_blocked()
    assert stage.names == ["start", "turn", "error", "start", "turn", "finish"]
    assert stored(agent) == [("user", "one"), ("user", "two"), ("assistant", "done")]
    assert agent.ref.alive


@pytest.mark.parametrize("limit", [0, 1])
async def test_what_wakes_an_agent_that_may_do_nothing_wakes_it_once(stage: Stage, limit: int) -> None:
    cancel = Cancel()
    cancel.set("for good")
    agent = stage.agent(DONE, seed=None, limit=limit, cancel=cancel)
    agent.inbox.followup("one")
    agent.inbox.steer("two")
    await trio.testing.wait_all_tasks_blocked()
    assert stage.names.count("start") == 2
    assert agent.inbox.messages == ()
    assert stored(agent) == [("user", "two"), ("user", "one")]


async def test_a_woken_run_that_would_be_nested_too_deep_fails_once(stage: Stage) -> None:
    with beneath("agent:same"):
        agent = stage.agent(DONE, seed=None, id="same")
    agent.inbox.followup("one")
    await trio.testing.wait_all_tasks_blocked()
    (error,) = stage.told("error")
    assert isinstance(error, ToolError)
    assert error.code == "DEPTH"
    assert agent.inbox.messages == ()


async def test_a_woken_run_is_beneath_its_agent_and_not_beneath_who_woke_it(stage: Stage) -> None:
    seen: list[tuple[str, ...]] = []
    waker: Agent
    tools = [Tool("look", lambda: seen.append(current_lineage().tags))]
    woken = stage.agent(calling("", "look"), DONE, seed=None, id="woken", tools=tools)
    waker = stage.agent(calling("", "wake"), DONE, id="waker", tools=[Tool("wake", lambda: woken.inbox.followup("go"))])
    await waker.generate()
    await trio.testing.wait_all_tasks_blocked()
    assert seen == [("agent:woken",)]


async def test_what_is_read_counts_for_the_window(stage: Stage, autojump_clock: trio.testing.MockClock) -> None:
    async def short(_: object) -> str:
        return "recap"

    agent = stage.agent(
        SLOW, DONE, seed=None, window=Window(30), conversations=ConversationManager(summarize=short, keep=1)
    )
    agent.inbox.followup("x" * 40)
    await trio.sleep(5)
    agent.inbox.steer("y" * 80)
    await trio.sleep(10)
    last = agent.provider.calls[-1].messages  # type: ignore[attr-defined]
    assert [message.content[:30] for message in last] == ["[Summary of earlier messages] ", "y" * 30]


@pytest.mark.parametrize("text", ["", "  \n", "\ud800", 5, None])
async def test_what_is_no_text_is_refused_and_changes_nothing(stage: Stage, text: Any) -> None:
    agent, told = stage.agent(DONE), Inboxes(stage)
    with pytest.raises(AgentError, match="reads text") as refused:
        agent.inbox.steer(text)
    assert refused.value.code == "INPUT"
    assert told.events == []


async def test_an_inbox_is_bounded(stage: Stage) -> None:
    agent = stage.agent(DONE, seed=None, inbox_limit=2)
    agent.inbox.inject("one")
    agent.inbox.followup("two")
    with pytest.raises(AgentError, match="wait until it has") as refused:
        agent.inbox.inject("three")
    assert (refused.value.code, refused.value.context["limit"]) == ("INBOX_FULL", 2)
    await trio.testing.wait_all_tasks_blocked()
    agent.inbox.inject("three")
    with pytest.raises(ValueError, match="at least one"):
        Agent(ScriptedProvider([DONE]), inbox_limit=0)


async def test_an_idle_agent_reads_what_does_not_wake_it_if_that_keeps_others_out(stage: Stage) -> None:
    agent = stage.agent(DONE, DONE, seed=None, inbox_limit=2)
    agent.inbox.inject("one")
    agent.inbox.inject("two")
    await trio.testing.wait_all_tasks_blocked()
    assert agent.status == "idle"
    with pytest.raises(AgentError, match="wait until it has"):
        agent.inbox.followup("three")
    await trio.testing.wait_all_tasks_blocked()
    agent.inbox.followup("three")
    await trio.testing.wait_all_tasks_blocked()
    assert [content for role, content in stored(agent) if role == "user"] == ["one", "two", "three"]


async def test_an_agent_that_lives_nowhere_or_has_ended_takes_nothing(stage: Stage) -> None:
    with pytest.raises(AgentError) as homeless:
        Agent(ScriptedProvider([DONE])).inbox.followup("hello")
    assert homeless.value.code == "PLACE"
    agent, told = stage.agent(DONE, id="gone"), Inboxes(stage)
    agent.inbox.inject("unread")
    await stage.runtime.agents.remove("gone")
    with pytest.raises(ActorError) as stopped:
        agent.inbox.followup("hello")
    assert stopped.value.code == "STOPPED"
    assert told.events == [("inject", "unread"), ("removed", ["unread"])]


async def test_a_listener_that_clears_or_puts_in_is_no_trouble(stage: Stage) -> None:
    agent, again = stage.agent(DONE, seed=None), ["two", "one"]

    def clear(told: InboxInserted) -> None:
        if told.message.text == "clear":
            agent.inbox.clear()

    stage.runtime.bus.on("inbox/claimed", lambda _: again and agent.inbox.followup(again.pop()))
    stage.runtime.bus.on("inbox/inserted", clear)
    agent.inbox.followup("clear")
    agent.inbox.followup("zero")
    await trio.testing.wait_all_tasks_blocked()
    assert [text for role, text in stored(agent) if role == "user"] == ["zero", "one", "two"]


@pytest.mark.parametrize("keep", [False, True])
async def test_a_stop_at_any_step_loses_and_repeats_nothing(keep: bool, autojump_clock: trio.testing.MockClock) -> None:
    async def scenario(doomed: Doomed) -> None:
        async with open_runtime() as runtime:
            stage = Stage(runtime)
            told = Inboxes(stage)
            agent: Agent
            tools = [Tool("steer", lambda: agent.inbox.steer("s"))]
            agent = stage.agent(calling("", "steer"), DONE, tools=tools)
            agent.inbox.inject("i")
            agent.inbox.followup("f")
            ended = await doomed(agent.generate)
            agent.abort("stop", keep_inbox=keep)
            agent.inbox.followup("last")
            assert ended.cancelled or ended.value.content == "done"
            await trio.testing.wait_all_tasks_blocked()
            assert agent.inbox.messages == ()
            assert stored(agent)[-1] == ("assistant", "done")
            put_in = [text for what, text in told.events if what in ("followup", "steer", "inject")]
            read = [text for what, texts in told.events if what == "claimed" for text in texts]
            dropped = [text for what, texts in told.events if what == "stop" for text in texts]
            assert sorted(put_in) == sorted(read + dropped)
            assert read == [text for role, text in stored(agent) if role == "user" and text != "go"]
            assert runtime.snapshot().waits == ()

    assert await at_every_step(scenario) > 5


async def test_the_failure_of_a_run_that_nobody_began_or_listens_to_is_a_warning(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    agent = stage.runtime.agents.add(Agent(ScriptedProvider([])))
    agent.inbox.followup("go")
    await trio.testing.wait_all_tasks_blocked()
    assert agent.status == "error"
    (warned,) = caplog.records
    assert (warned.name, warned.levelname) == ("greenroom.agents", "WARNING")
    assert warned.getMessage().startswith(f"{agent.ref.path} was woken by its inbox, and its run has failed: ")
    unheard = agent.emitter.on("error", lambda error: None)
    agent.inbox.followup("again")
    await trio.testing.wait_all_tasks_blocked()
    assert caplog.records == [warned]
    unheard()
    with pytest.raises(GreenroomError):  # who began it has been told
        await agent.generate()
    assert caplog.records == [warned]
