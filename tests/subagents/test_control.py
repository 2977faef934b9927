"""Who may give a sub-agent more, stop it, list it and be told by it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
import trio.testing

from greenroom.actors.agent import Agent
from greenroom.actors.approver import terminal_approver
from greenroom.actors.providers.scripted import ScriptedTurn
from greenroom.actors.toolbox.ask import ask_tool
from greenroom.actors.toolbox.interrupt_agent import interrupt_agent_tool
from greenroom.actors.toolbox.list_agents import list_agents_tool
from greenroom.actors.toolbox.report import report_tool
from greenroom.actors.toolbox.send_message import send_message_tool
from greenroom.actors.toolbox.subagent import subagent_tool
from greenroom.protocol.agents import ProviderResult
from greenroom.protocol.errors import AgentError, SubagentError
from greenroom.protocol.tools import ToolCall
from greenroom.runtime.bus import Next
from greenroom.runtime.pipeline.invocations import Invocation
from greenroom.runtime.pipeline.verdicts import Ask, Verdict
from greenroom.runtime.tools import Tool
from tests.agents.conftest import calling, stored
from tests.subagents.conftest import DONE, Family, beginning, request, told

NEVER = ScriptedTurn(DONE, delay=float("inf"))


async def begun(family: Family, parent: Agent, provider: str | None = None) -> Agent:
    """One that has begun with its first turn."""
    accepted = await family.subagents.start(request(), provider=provider, parent=parent)
    await trio.testing.wait_all_tasks_blocked()
    agent = family.subagents.agent(accepted.child_id)
    assert agent is not None
    return agent


async def calls(agent: Agent, tool: Tool, **arguments: Any) -> Any:
    """What a call of the tool comes to in a run of the agent."""
    agent.context.tools.add([tool, Tool("leave", lambda: None)])
    provider: Any = agent.provider
    provider._turns[provider._next :] = [calling("", tool.name, **arguments), DONE]
    await agent.generate()
    text = stored(agent)[-2][1]
    try:
        return json.loads(text)
    except ValueError:
        return text


# -------------------------------------------------------------------- send_message


async def test_more_is_done_in_order_each_in_a_turn_of_its_own(
    family: Family, autojump_clock: trio.testing.MockClock
) -> None:
    model = family.offer("spawn", *(ScriptedTurn(ProviderResult(text), delay=1.0) for text in ("one", "two", "three")))
    root = family.agent(DONE, id="planner")
    child = await begun(family, root)
    sent = await calls(root, send_message_tool(family.subagents), subagent_id=child.id, message="Then this.")
    assert [message.id for message in child.inbox.messages] == [sent["messageId"]]
    await family.subagents.send(child.id, "And that.", parent=root)
    await trio.sleep(10)
    assert stored(child) == [
        ("user", "Do it."),
        ("assistant", "one"),
        ("user", "Then this."),
        ("assistant", "two"),
        ("user", "And that."),
        ("assistant", "three"),
    ]
    assert model.max_in_flight == 1
    assert [text for text in told(root) if "finished" in text] == [
        f"The sub-agent {child.id} (a task) has finished:\nthree"
    ]


async def test_what_has_finished_can_be_given_more_and_finishes_again(family: Family) -> None:
    family.offer("spawn", ProviderResult("one"), ProviderResult("two"))
    root = family.agent(DONE, id="planner")
    child = await begun(family, root)
    await family.subagents.send(child.id, "More.", parent=root)
    assert [info.status for info in family.subagents.children(by=root)] == ["running"]
    await trio.testing.wait_all_tasks_blocked()
    assert told(root)[-2:] == [f"The sub-agent {child.id} (a task) has finished:\n{text}" for text in ("one", "two")]
    assert [start.run_id for start in family.starts] == [end.run_id for end in family.ends]
    assert len({end.run_id for end in family.ends}) == 2


async def test_only_its_parent_gives_it_more(family: Family) -> None:
    family.offer("below", NEVER)
    family.offer("spawn", NEVER)
    root, other = family.agent(DONE, id="planner"), family.agent(DONE, id="other")
    child = await begun(family, root, "spawn")
    grandchild = await begun(family, child, "below")
    sibling = await begun(family, root, "spawn")
    for caller, id in ((other, child.id), (sibling, child.id), (root, grandchild.id), (child, child.id)):
        with pytest.raises(SubagentError) as refused:
            await family.subagents.send(id, "More.", parent=caller)
        assert refused.value.code == "UNAUTHORIZED"
    with pytest.raises(SubagentError) as nobody:
        await family.subagents.send(child.id, "More.")
    assert nobody.value.code == "UNAUTHORIZED"
    assert child.inbox.messages == ()
    await family.subagents.send(grandchild.id, "More.", parent=child)


async def test_one_that_has_ended_is_not_there_any_more(family: Family) -> None:
    family.offer("spawn", NEVER)
    root = family.agent(DONE, id="planner")
    child = await begun(family, root)
    await child.ref.stop()
    with pytest.raises(SubagentError, match="nothing is stored") as refused:
        await family.subagents.send(child.id, "More.", parent=root)
    assert refused.value.code == "PERSISTENCE_UNAVAILABLE"


async def test_one_that_is_ending_takes_nothing(family: Family) -> None:
    family.offer("spawn", NEVER)
    root = family.agent(DONE, id="planner")
    child = await begun(family, root)
    child.ref.stop_soon()
    with pytest.raises(SubagentError) as refused:
        await family.subagents.send(child.id, "More.", parent=root)
    assert refused.value.code in ("ACTIVATION_CLOSING", "PERSISTENCE_UNAVAILABLE")


async def test_one_with_a_single_task_takes_no_other(family: Family) -> None:
    family.offer("spawn", NEVER)
    root = family.agent(beginning(), DONE, id="planner", tools=[subagent_tool(family.subagents)])
    async with root.stream() as run:
        await trio.testing.wait_all_tasks_blocked()
        (info,) = family.subagents.children(by=root)
        with pytest.raises(SubagentError) as refused:
            await family.subagents.send(info.id, "More.", parent=root)
        assert refused.value.code == "NOT_RESUMABLE"
        run.abort()


@pytest.mark.parametrize("text", ["", " ", "\ud800"])
async def test_what_is_no_text_is_not_sent(family: Family, text: str) -> None:
    family.offer("spawn", DONE)
    root = family.agent(DONE, id="planner")
    child = await begun(family, root)
    with pytest.raises(AgentError) as refused:
        await family.subagents.send(child.id, text, parent=root)
    assert refused.value.code == "INPUT"
    assert [info.status for info in family.subagents.children(by=root)] == ["idle"]


# -------------------------------------------------------------------- interrupt_agent


async def test_an_agent_above_stops_what_one_beneath_it_does_and_what_waits_goes_on(
    family: Family, autojump_clock: trio.testing.MockClock
) -> None:
    family.offer("below", NEVER, DONE)
    family.offer("spawn", NEVER)
    root = family.agent(DONE, id="planner")
    child = await begun(family, root, "spawn")
    grandchild = await begun(family, child, "below")
    await family.subagents.send(grandchild.id, "More.", parent=child)
    assert await calls(root, interrupt_agent_tool(family.subagents), agent_id=grandchild.id) == {"accepted": True}
    await trio.testing.wait_all_tasks_blocked()
    assert stored(grandchild) == [("user", "Do it."), ("user", "More."), ("assistant", "done")]
    assert child.status == "running", "it was stopped as well"
    assert child.inbox.messages[-1].text.endswith("has finished:\ndone")


@pytest.mark.case("pipeline", 37)
async def test_nobody_stops_itself_or_an_agent_that_is_not_beneath_it(family: Family) -> None:
    family.offer("spawn", NEVER)
    root, other = family.agent(DONE, id="planner"), family.agent(DONE, id="other")
    child, sibling = await begun(family, root), await begun(family, root)
    for caller, id in ((sibling, child.id), (child, child.id), (other, child.id), (root, "planner")):
        with pytest.raises(SubagentError) as refused:
            family.subagents.interrupt(id, by=caller)
        assert refused.value.code == "UNAUTHORIZED"
    assert child.status == "running"
    text = await calls(sibling, interrupt_agent_tool(family.subagents), agent_id=child.id)
    assert "can be stopped by the agents above it only" in text


@pytest.mark.case("pipeline", 37)
async def test_stopping_one_that_does_nothing_or_has_ended_is_accepted(family: Family) -> None:
    family.offer("spawn", DONE)
    root = family.agent(DONE, id="planner")
    child = await begun(family, root)
    interrupt = interrupt_agent_tool(family.subagents)
    assert await calls(root, interrupt, agent_id=child.id) == {"accepted": True}
    await child.ref.stop()
    for id in (child.id, "never-was"):
        assert await calls(root, interrupt, agent_id=id) == {"accepted": True}


async def test_an_agent_that_has_ended_stops_nobody(family: Family) -> None:
    family.offer("spawn", NEVER)
    root = family.agent(DONE, id="planner")
    child = await begun(family, root)
    await family.runtime.agents.remove("planner")
    with pytest.raises(SubagentError) as refused:
        family.subagents.interrupt(child.id, by=root)
    assert refused.value.code == "UNAUTHORIZED"


async def test_a_program_stops_any(family: Family, autojump_clock: trio.testing.MockClock) -> None:
    family.offer("spawn", NEVER)
    root = family.agent(DONE, id="planner")
    child = await begun(family, root)
    family.subagents.interrupt(child.id)
    await trio.testing.wait_all_tasks_blocked()
    assert told(root)[-1].endswith("(aborted): it was stopped (interrupted)")


# -------------------------------------------------------------------- list_agents


async def test_an_agent_sees_those_beneath_it_and_no_others(family: Family) -> None:
    family.offer("below", DONE)
    family.offer("spawn", NEVER)
    root, other = family.agent(DONE, id="planner"), family.agent(DONE, id="other")
    child = await begun(family, root, "spawn")
    grandchild = await begun(family, child, "below")
    strange = await begun(family, other, "below")
    tool = list_agents_tool(family.subagents)
    mine = {"id": child.id, "label": "a task", "status": "running"}
    assert await calls(root, tool) == [mine]
    assert await calls(root, tool, scope="descendants") == [
        mine | {"parent": "planner", "depth": 1},
        {"id": grandchild.id, "label": "a task", "status": "idle", "parent": child.id, "depth": 2},
    ]
    assert {info.id for info in family.subagents.children()} == {child.id, strange.id}
    assert len(family.subagents.children("descendants")) == 3


# -------------------------------------------------------------------- report


async def test_who_works_for_nobody_has_nobody_to_report_to(family: Family) -> None:
    root = family.agent(DONE, id="planner")
    assert "No agent gave this work" in await calls(root, report_tool(family.subagents), output="hello")
    with pytest.raises(SubagentError) as refused:
        family.subagents.report("hello")
    assert refused.value.code == "PARENT_UNAVAILABLE"


async def test_a_report_wakes_an_idle_parent_with_a_turn(
    family: Family, autojump_clock: trio.testing.MockClock
) -> None:
    family.offer("spawn", calling("", "report", output="Which one?"), NEVER)
    root = family.agent(ProviderResult("The second."), id="planner")
    child = await begun(family, root)
    assert stored(root)[-2:] == [
        ("user", f"The sub-agent {child.id} (a task) reports:\nWhich one?"),
        ("assistant", "The second."),
    ]
    assert json.loads(stored(child)[-1][1]).keys() == {"messageId"}


@pytest.mark.case("reports/delegation", 3)
@pytest.mark.parametrize("continuable", [False, True])
async def test_a_grandchild_asks_nobody_and_reports_what_it_would_have_asked(family: Family, continuable: bool) -> None:
    """A person looks at the root's terminal only."""
    terminals = family.runtime.terminals
    terminals.add("person")
    ran: list[str] = []

    async def ask_first(call: Invocation, next: Next[Verdict]) -> Verdict:
        return Ask("it deletes") if call.name == "gated" else await next()

    family.runtime.bus.on("tools/pre-execute", ask_first)
    family.runtime.bus.on("approval/request", terminal_approver(terminals, "person"))
    form = {"fields": [{"control": "confirm", "name": "go"}]}
    both = (ToolCall("1", "ask", {"to": "person", "schema": form}), ToolCall("2", "gated", {}))
    reporting = ToolCall("3", "report", {"output": "May I delete it?"})
    grandchild = family.offer(
        "grandchild",
        ProviderResult("", tools=both),
        ProviderResult("", tools=(reporting,)),
        ProviderResult("It is not deleted."),
        tools=(ask_tool(terminals, None, delegated=False), Tool("gated", lambda: ran.append("gated"))),
    )
    below = subagent_tool(family.subagents, provider="grandchild", continuable=continuable)
    child = family.offer("child", beginning(), *(DONE,) * 4, tools=(below,))
    above = subagent_tool(family.subagents, provider="child", continuable=continuable)
    root = family.agent(beginning(), *(DONE,) * 3, id="planner", tools=[above])
    await root.generate()
    await trio.testing.wait_all_tasks_blocked()
    asked, approved = (message.content for message in grandchild.calls[1].messages if message.role == "tool")
    assert "nobody was asked" in asked
    assert "nobody decided" in approved
    assert not any("a person refused" in text for text in (asked, approved))
    assert (ran, terminals.pending("person")) == ([], [])
    heard = [message.content for message in child.calls[-1].messages]
    assert any(text.endswith("reports:\nMay I delete it?") for text in heard)
    assert any("It is not deleted." in text for text in heard)
    assert family.runtime.snapshot().waits == ()
