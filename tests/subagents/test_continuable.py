"""Sub-agents that go on by themselves: their beginning, what their parent is told, and their end."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from greenroom.actors.agent import Agent
from greenroom.actors.approver import terminal_approver
from greenroom.actors.providers.scripted import ScriptedTurn
from greenroom.actors.system import open_runtime
from greenroom.actors.toolbox.subagent import subagent_tool
from greenroom.protocol.agents import ProviderResult
from greenroom.protocol.errors import AgentError, SubagentError
from greenroom.runtime.bus import Next
from greenroom.runtime.pipeline.invocations import Invocation
from greenroom.runtime.pipeline.verdicts import Ask, Verdict
from greenroom.runtime.tools import Tool
from tests.agents.conftest import GO, calling, stored
from tests.cancelling import Doomed, at_every_step
from tests.subagents.conftest import DONE, Family, beginning, request, told

FOUND = ScriptedTurn(ProviderResult("Found it."), delay=10.0)
NEVER = ScriptedTurn(DONE, delay=float("inf"))


def parent(family: Family, *turns: Any, **options: Any) -> Agent:
    tools = [subagent_tool(family.subagents, continuable=True), *options.pop("tools", ())]
    return family.agent(*(turns or (DONE,)), id="planner", tools=tools, **options)


async def begun(family: Family, parent: Agent) -> str:
    """The id of one that has begun with its first turn."""
    accepted = await family.subagents.start(request(), parent=parent)
    await trio.testing.wait_all_tasks_blocked()
    return accepted.child_id


async def test_it_is_begun_with_its_first_message_and_its_parent_is_told_of_its_end(
    family: Family, autojump_clock: trio.testing.MockClock
) -> None:
    family.offer("spawn", FOUND)
    root = parent(family, beginning(), DONE, ProviderResult("Thanks."))
    assert (await root.generate()).content == "done"
    assert trio.current_time() == 0, "it was waited for"
    child = family.only()
    assert stored(root)[-2][1] == f'{{"subagentId":"{child.id}"}}'
    assert child.ref.path == "/agents/planner/delegations/1"
    await trio.sleep(20)
    assert stored(root)[-2:] == [
        ("user", f"The sub-agent {child.id} (a task) has finished:\nFound it."),
        ("assistant", "Thanks."),
    ]
    assert [info.status for info in family.subagents.children(by=root)] == ["idle"]
    assert [each.stop_reason for each in family.ends] == ["completed"]


async def test_the_parent_is_told_before_the_end_is(family: Family, autojump_clock: trio.testing.MockClock) -> None:
    heard: list[str] = []
    family.offer("spawn", FOUND)
    root = parent(family)
    accepted = await family.subagents.start(request(), parent=root)
    family.runtime.bus.on("inbox/inserted", lambda told: heard.append(told.agent))
    family.runtime.bus.on("subagent/end", lambda told: heard.append(told.child))
    await trio.sleep(20)
    assert heard == ["/agents/planner", accepted.child_id]


@pytest.mark.parametrize(
    ("turn", "ending"),
    [
        (ScriptedTurn(failure=LookupError("hunter2")), " ended before it was done (error): it failed with LookupError"),
        (ProviderResult(""), " has finished, and said nothing."),
        (ProviderResult("half \ud800"), " has finished:\nhalf ?"),
        (calling("so far", "nothing"), "its 1 turns were used up\nWhat there is of its answer:\nso far"),
    ],
)
async def test_its_parent_is_told_however_it_ends(family: Family, turn: Any, ending: str) -> None:
    family.offer("spawn", turn, limit=1)
    root = parent(family)
    await family.subagents.start(request(), parent=root)
    await trio.testing.wait_all_tasks_blocked()
    assert told(root)[-1].endswith(ending)


async def test_a_busy_parent_is_told_at_its_next_step(family: Family, autojump_clock: trio.testing.MockClock) -> None:
    family.offer("spawn", FOUND)

    async def wait() -> None:
        await trio.sleep(30)

    root = parent(family, beginning(), calling("", "wait"), DONE, tools=[Tool("wait", wait)])
    await root.generate()
    assert [role for role, _ in stored(root)][-3:] == ["tool", "user", "assistant"]
    assert family.names.count("start") == 1


async def test_a_parent_that_is_being_stopped_is_told_and_not_woken(
    family: Family, autojump_clock: trio.testing.MockClock
) -> None:
    async def slow_to_end() -> None:
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(20)

    family.offer("spawn", FOUND)
    root = parent(family, beginning(), calling("", "wait"), tools=[Tool("wait", slow_to_end)])
    async with root.stream() as run:
        await trio.sleep(5)
        run.abort("enough")
        await run.result()
    await trio.testing.wait_all_tasks_blocked()
    assert [message.kind for message in root.inbox.messages] == ["inject"]
    assert family.names.count("start") == 1


async def test_a_parent_that_has_ended_is_not_told_and_leaves_nothing(
    family: Family, autojump_clock: trio.testing.MockClock
) -> None:
    model = family.offer("spawn", NEVER)
    root = parent(family)
    accepted = await family.subagents.start(request(), parent=root)
    await trio.testing.wait_all_tasks_blocked()
    assert model.in_flight == 1
    ended = await family.runtime.agents.remove("planner")
    assert ended == ("/agents/planner/delegations/1", "/agents/planner/delegations", "/agents/planner")
    assert model.in_flight == 0
    assert family.subagents.agent(accepted.child_id) is None
    assert [each.stop_reason for each in family.ends] == ["aborted"]


async def test_its_parent_is_told_of_one_that_was_stopped(family: Family) -> None:
    family.offer("spawn", NEVER)
    root = parent(family)
    await family.subagents.start(request(), parent=root)
    await trio.testing.wait_all_tasks_blocked()
    child = family.only()
    await child.ref.stop()
    await trio.testing.wait_all_tasks_blocked()
    assert (
        told(root)[-1]
        == f"The sub-agent {child.id} (a task) ended before it was done (aborted): it was stopped (stopped)"
    )
    assert family.subagents.children(by=root) == ()


async def test_one_that_waits_for_subagents_of_its_own_has_not_finished(
    family: Family, autojump_clock: trio.testing.MockClock
) -> None:
    family.offer("below", FOUND)
    below = subagent_tool(family.subagents, provider="below", continuable=True)
    family.offer("spawn", beginning(), DONE, ProviderResult("All found."), tools=(below,))
    root = parent(family)
    accepted = await family.subagents.start(request(), provider="spawn", parent=root)
    await trio.sleep(5)
    assert [info.status for info in family.subagents.children(by=root)] == ["running"]
    assert told(root) == ["go"]
    await trio.sleep(10)
    assert [each.child for each in family.ends][1:] == [accepted.child_id]
    assert told(root)[-1].endswith("has finished:\nAll found.")


async def test_and_it_finishes_when_they_are_stopped(family: Family, autojump_clock: trio.testing.MockClock) -> None:
    family.offer("below", NEVER)
    below = subagent_tool(family.subagents, provider="below", continuable=True)
    family.offer("spawn", beginning(), DONE, ProviderResult("It was stopped."), tools=(below,))
    root = parent(family)
    await family.subagents.start(request(), provider="spawn", parent=root)
    await trio.sleep(5)
    deepest = family.subagents.agent(family.subagents.children("descendants", by=root)[-1].id)
    assert deepest is not None
    await deepest.ref.stop()
    await trio.sleep(5)
    assert told(root)[-1].endswith("has finished:\nIt was stopped.")


async def test_an_idle_parent_whose_inbox_is_full_reads_it_and_is_told(
    family: Family, autojump_clock: trio.testing.MockClock
) -> None:
    family.offer("spawn", FOUND)
    root = parent(family, inbox_limit=2)
    await family.subagents.start(request(), parent=root)
    root.inbox.inject("one")
    root.inbox.inject("two")
    await trio.sleep(20)
    assert told(root)[-3:-1] == ["one", "two"]
    assert told(root)[-1].endswith("Found it.")
    assert len(family.ends) == 1
    assert [info.status for info in family.subagents.children(by=root)] == ["idle"]


async def test_nor_is_one_forgotten_that_has_ended_meanwhile(
    family: Family, autojump_clock: trio.testing.MockClock
) -> None:
    family.offer("spawn", NEVER)
    root = parent(family, inbox_limit=1)
    await family.subagents.start(request(), parent=root)
    root.inbox.inject("one")
    await family.only().ref.stop()
    assert family.ends == []
    await root.generate()
    await trio.testing.wait_all_tasks_blocked()
    assert "(aborted)" in told(root)[-1]
    assert len(family.ends) == 1


async def test_one_more_than_may_be_takes_the_place_of_the_longest_idle(
    family: Family, autojump_clock: trio.testing.MockClock
) -> None:
    family.subagents.max_children = 2
    family.offer("spawn", ScriptedTurn(DONE, delay=1.0), ScriptedTurn(DONE, delay=3.0), NEVER)
    root = parent(family)
    first, second = [await begun(family, root) for _ in range(2)]
    with pytest.raises(SubagentError, match="2 sub-agents of planner are at work") as refused:
        await family.subagents.start(request(), parent=root)
    assert refused.value.code == "LIMIT"
    await trio.sleep(5)
    await family.subagents.start(request(), parent=root)
    await trio.testing.wait_all_tasks_blocked()
    live = [info.id for info in family.subagents.children(by=root)]
    assert first not in live
    assert second in live
    assert len(live) == 2


@pytest.mark.parametrize("prompt", [" ", "\ud800"])
async def test_a_prompt_that_is_no_text_leaves_nothing(family: Family, prompt: str) -> None:
    family.offer("spawn", DONE)
    root = parent(family)
    with pytest.raises(AgentError) as refused:
        await family.subagents.start(request(prompt), parent=root)
    assert refused.value.code == "INPUT"
    assert family.places == ["/agents/planner"]
    await trio.testing.wait_all_tasks_blocked()
    assert told(root) == ["go"]


async def test_it_needs_an_agent_that_lives_as_its_parent(family: Family) -> None:
    family.offer("spawn", DONE)
    root = parent(family)
    await family.runtime.agents.remove("planner")
    for above in (None, root):
        with pytest.raises(SubagentError) as refused:
            await family.subagents.start(request(), parent=above)
        assert refused.value.code == "PARENT_UNAVAILABLE"


async def test_a_beginning_that_is_cancelled_has_begun_all_or_nothing(autojump_clock: trio.testing.MockClock) -> None:
    async def scenario(doomed: Doomed) -> None:
        async with open_runtime() as runtime:
            family = Family(runtime)
            family.offer("spawn", DONE)
            root = parent(family)
            ended = await doomed(lambda: family.subagents.start(request(), parent=root))
            await trio.testing.wait_all_tasks_blocked()
            assert len(family.starts) == len(family.ends) == (0 if ended.cancelled else 1)
            assert len(told(root)) == (1 if ended.cancelled else 2)

    await at_every_step(scenario)


async def test_stopping_its_parent_at_any_step_leaves_nothing_at_work(autojump_clock: trio.testing.MockClock) -> None:
    async def scenario(doomed: Doomed) -> None:
        async with open_runtime() as runtime:
            family = Family(runtime)
            model = family.offer("below", DONE)
            below = subagent_tool(family.subagents, provider="below", continuable=True)
            family.offer("spawn", beginning(), DONE, DONE, tools=(below,))
            root = family.agent(
                beginning(),
                DONE,
                id="planner",
                tools=[subagent_tool(family.subagents, provider="spawn", continuable=True)],
            )
            ended = await doomed(root.generate)
            assert ended.cancelled or ended.value.content == "done"
            await runtime.agents.remove("planner")
            assert model.in_flight == 0
            assert family.places == []
            assert family.subagents.children("descendants") == ()
            assert len(family.starts) == len(family.ends)
            assert runtime.snapshot().waits == ()

    assert await at_every_step(scenario) > 5


@pytest.mark.case("reports/delegation", 1)
@pytest.mark.parametrize("how", ["stop", "cancel"])
async def test_what_goes_on_by_itself_beneath_an_agent_ends_with_it(
    how: str, autojump_clock: trio.testing.MockClock
) -> None:
    """A begins B in the background, B begins C; C counts and has an approval open."""
    counted = 0

    async def count() -> None:
        nonlocal counted
        while True:
            counted += 1
            await trio.sleep(0.01)

    with trio.CancelScope() as scope:
        async with open_runtime() as runtime:

            async def ask_first(call: Invocation, next: Next[Verdict]) -> Verdict:
                return Ask() if call.name == "gated" else await next()

            family = Family(runtime)
            runtime.terminals.add("person")
            runtime.bus.on("tools/pre-execute", ask_first)
            runtime.bus.on("approval/request", terminal_approver(runtime.terminals, "person"))
            runtime.pipeline.approvals.delegated = True
            both = (calling("", "count", "gated"),)
            family.offer("C", *both, tools=(Tool("count", count), Tool("gated", count)))
            family.offer(
                "B", beginning(), DONE, tools=(subagent_tool(family.subagents, provider="C", continuable=True),)
            )
            tools = [subagent_tool(family.subagents, provider="B", continuable=True)]
            root = family.agent(beginning(), DONE, id="A", seed=GO, tools=tools)
            await root.generate()
            await trio.sleep(1)
            if how == "cancel":
                scope.cancel()
                await trio.sleep_forever()
            ended = await runtime.agents.remove("A")
            assert [path for path in ended if not path.endswith("delegations")] == [
                "/agents/A/delegations/1/delegations/1",
                "/agents/A/delegations/1",
                "/agents/A",
            ]
            assert runtime.terminals.pending("person") == []
    before = counted
    assert before > 0
    await trio.sleep(1)
    assert counted == before
