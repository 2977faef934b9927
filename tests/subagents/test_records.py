"""Sub-agents that are stored: they go on where they were, by their parent and nobody else, also after a kill."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from greenroom.actors.agent import Agent, AgentRegistry
from greenroom.actors.providers.scripted import ScriptedProvider, ScriptedTurn
from greenroom.actors.subagent import ChildSpec, SpawnProvider
from greenroom.actors.system import open_runtime
from greenroom.actors.toolbox.list_agents import list_agents_tool
from greenroom.actors.toolbox.subagent import subagent_tool
from greenroom.protocol.agents import AgentJob, ChildInfo, ChildUnreadable, MessageInput, ProviderResult
from greenroom.protocol.errors import AgentError, SeamError, SubagentError, ToolError
from greenroom.protocol.sessions import SessionEvent, SessionHeader
from tests.agents.conftest import calling, stored
from tests.cancelling import Doomed, at_every_step
from tests.killing import said_before_its_kill
from tests.subagents.conftest import DONE, Family, beginning, request, told

NEVER = ScriptedTurn(DONE, delay=float("inf"))


async def root_of(family: Family, *turns: Any, id: str = "planner", **options: Any) -> Agent:
    session = await family.runtime.sessions.open(id)
    return family.agent(*(turns or (DONE,)), session=session, seed=None, **options)


async def begun(family: Family, root: Agent, provider: str | None = None) -> Agent:
    accepted = await family.subagents.start(request(), provider=provider, parent=root)
    await trio.testing.wait_all_tasks_blocked()
    agent = family.subagents.agent(accepted.child_id)
    assert agent is not None
    return agent


def living(family: Family, id: str) -> Agent:
    agent = family.subagents.agent(id)
    assert agent is not None
    return agent


async def test_one_that_has_ended_goes_on_with_what_it_remembers(family: Family) -> None:
    model = family.offer("spawn", ProviderResult("one"), ProviderResult("two"))
    root = await root_of(family)
    child = await begun(family, root)
    assert child.session is not None
    header = child.session.header
    assert (header.id, header.parent_session, header.delegation_depth, header.agent_preset, header.origin) == (
        child.id,
        "planner",
        1,
        "spawn",
        "subagent",
    )
    await child.ref.stop()
    assert family.subagents.children(by=root) == ()
    ready = ChildInfo(id=child.id, label="a task", status="ready")
    assert await family.subagents.all_children(by=root) == (ready,)
    await family.subagents.send(child.id, "More.", parent=root)
    await trio.testing.wait_all_tasks_blocked()
    again = living(family, child.id)
    assert again is not child
    assert [message.content for message in model.calls[-1].messages] == ["Do it.", "one", "More."]
    assert told(root)[-1].endswith("has finished:\ntwo")
    assert [info.status for info in await family.subagents.all_children(by=root)] == ["idle"]  # type: ignore[union-attr]


async def test_one_that_is_begun_anew_with_a_full_inbox_reads_it_and_takes_more_then(family: Family) -> None:
    model = ScriptedProvider([NEVER, DONE, DONE])

    class Narrow:
        capabilities = frozenset({"session"})

        def build(self, spec: ChildSpec) -> Agent:
            return Agent(model, id=spec.id, session=spec.session, inbox_limit=1)

    family.subagents.add("narrow", Narrow())
    root = await root_of(family)
    child = await begun(family, root)
    await family.subagents.send(child.id, "One.", parent=root)
    await child.ref.stop()
    with pytest.raises(AgentError, match="wait until it has"):
        await family.subagents.send(child.id, "Two.", parent=root)
    await trio.testing.wait_all_tasks_blocked()
    await family.subagents.send(child.id, "Two.", parent=root)
    await trio.testing.wait_all_tasks_blocked()
    assert told(living(family, child.id)) == ["Do it.", "One.", "Two."]
    assert [info.status for info in family.subagents.children(by=root)] == ["idle"]


async def test_one_whose_place_was_taken_is_stored_and_takes_another_s(family: Family) -> None:
    family.subagents.max_children = 1
    family.offer("spawn", DONE)
    root = await root_of(family)
    first, second = await begun(family, root), await begun(family, root)
    await trio.testing.wait_all_tasks_blocked()
    assert {info.id: info.status for info in await family.subagents.all_children(by=root)} == {  # type: ignore[union-attr]
        first.id: "ready",
        second.id: "idle",
    }
    await family.subagents.send(first.id, "More.", parent=root)
    await trio.testing.wait_all_tasks_blocked()
    assert [info.id for info in family.subagents.children(by=root)] == [first.id]


async def test_what_it_had_not_read_it_reads_then(family: Family) -> None:
    family.offer("spawn", NEVER, DONE)
    root = await root_of(family)
    child = await begun(family, root)
    await family.subagents.send(child.id, "Then this.", parent=root)
    await child.ref.stop()
    await family.subagents.send(child.id, "And that.", parent=root)
    await trio.testing.wait_all_tasks_blocked()
    assert told(living(family, child.id)) == ["Do it.", "Then this.", "And that."]


async def test_only_its_parent_has_it_begun_anew(family: Family) -> None:
    family.offer("spawn", DONE)
    root, other = await root_of(family), await root_of(family, id="other")
    child = await begun(family, root)
    await child.ref.stop()
    with pytest.raises(SubagentError) as refused:
        await family.subagents.send(child.id, "More.", parent=other)
    assert refused.value.code == "UNAUTHORIZED"
    with pytest.raises(SubagentError) as nobody:
        await family.subagents.send(child.id, "More.")
    assert nobody.value.code == "PERSISTENCE_UNAVAILABLE"
    assert await family.subagents.all_children(by=other) == ()


@pytest.mark.parametrize("id", ["never-was", "other"])
async def test_what_is_no_subagent_is_not_begun(family: Family, id: str) -> None:
    root, _ = await root_of(family), await root_of(family, id="other")
    with pytest.raises(SubagentError) as refused:
        await family.subagents.send(id, "More.", parent=root)
    assert refused.value.code in ("NOT_RESUMABLE", "UNAUTHORIZED")
    assert family.places == ["/agents/other", "/agents/planner"]


async def test_it_is_begun_by_who_has_built_it_and_not_deeper_than_may_be(family: Family) -> None:
    family.offer("other", DONE)
    remove = family.subagents.add(
        "spawn", SpawnProvider(AgentRegistry({"m": ScriptedProvider([DONE])}), AgentJob(provider="m", messages=()))
    )
    root = await root_of(family)
    child = await begun(family, root, "spawn")
    await child.ref.stop()
    family.subagents.max_depth = 0
    with pytest.raises(ToolError) as deep:
        await family.subagents.send(child.id, "More.", parent=root)
    family.subagents.max_depth = 3
    remove()
    with pytest.raises(SeamError) as gone:
        await family.subagents.send(child.id, "More.", parent=root)
    with pytest.raises(AgentError) as blank:
        await family.subagents.send(child.id, " ", parent=root)
    assert [each.value.code for each in (deep, gone, blank)] == ["DEPTH", "NO_PROVIDER", "INPUT"]
    assert family.places == ["/agents/planner"]
    family.offer("spawn", DONE)
    await family.subagents.send(child.id, "More.", parent=root)
    await trio.testing.wait_all_tasks_blocked()
    assert told(living(family, child.id)) == ["Do it.", "More."]


async def test_the_depth_that_is_stored_counts(family: Family) -> None:
    family.offer("spawn", DONE)
    session = await family.runtime.sessions.open("deep", delegation_depth=2)
    deep = family.agent(DONE, session=session, seed=None)
    child = await begun(family, deep)
    assert child.session is not None
    assert child.session.header.delegation_depth == 3
    with pytest.raises(ToolError) as refused:
        await family.subagents.start(request(), parent=child)
    assert refused.value.code == "DEPTH"
    assert [header.id for header in await family.runtime.sessions.list()] == sorted(["deep", child.id])


async def test_messages_of_its_job_are_told_once(family: Family) -> None:
    model = ScriptedProvider([DONE])
    job = AgentJob(provider="m", messages=(MessageInput("user", "Rules."),))
    family.subagents.add("spawn", SpawnProvider(AgentRegistry({"m": model}), job))
    root = await root_of(family)
    child = await begun(family, root)
    await child.ref.stop()
    await family.subagents.send(child.id, "More.", parent=root)
    await trio.testing.wait_all_tasks_blocked()
    assert told(living(family, child.id)) == ["Rules.", "Do it.", "More."]


async def test_all_beneath_an_agent_are_listed_with_what_cannot_be_read(family: Family) -> None:
    family.offer("below", DONE)
    family.offer("spawn", NEVER)
    root = await root_of(family, calling("", "list_agents", scope="descendants"), DONE)
    root.context.tools.add(list_agents_tool(family.subagents))
    child = await begun(family, root, "spawn")
    grandchild = await begun(family, child, "below")
    await grandchild.ref.stop()
    alien = SessionHeader(id="alien", created_at=0, origin="subagent", parent_session="planner")
    event = SessionEvent(type="alien/event", seq=0, time=0, data={})
    await family.runtime.sessions.persistence.append(alien, [event])
    listed = await family.subagents.all_children("descendants", by=root)
    assert [each.id for each in listed] == [child.id, "alien", grandchild.id]
    assert listed[1] == ChildUnreadable(id="alien", reason="unsupported")
    assert listed[2] == ChildInfo(id=grandchild.id, label="a task", status="ready", parent=child.id, depth=2)
    with pytest.raises(SubagentError) as refused:
        await family.subagents.send("alien", "More.", parent=root)
    assert refused.value.code == "NOT_RESUMABLE"
    await root.generate()
    assert '{"id":"alien","reason":"unsupported"}' in stored(root)[-2][1]


async def test_an_agent_without_a_session_stores_nothing(family: Family) -> None:
    family.offer("spawn", DONE)
    child = await begun(family, family.agent(DONE, id="planner"))
    assert child.session is None
    assert await family.runtime.sessions.list() == []


async def test_two_that_send_at_once_have_one_begun(family: Family) -> None:
    family.offer("spawn", DONE)
    root = await root_of(family)
    child = await begun(family, root)
    await child.ref.stop()

    async def send(text: str) -> None:
        await family.subagents.send(child.id, text, parent=root)

    async with trio.open_nursery() as nursery:
        for text in ("one", "two", "three"):
            nursery.start_soon(send, text)
    await trio.testing.wait_all_tasks_blocked()
    assert sorted(told(living(family, child.id))) == ["Do it.", "one", "three", "two"]
    assert len(family.places) == 2


@pytest.mark.parametrize("what", ["start", "send"])
async def test_cancelled_at_any_step_it_was_begun_wholly_or_not_at_all(
    what: str, autojump_clock: trio.testing.MockClock
) -> None:
    async def scenario(doomed: Doomed) -> None:
        async with open_runtime() as runtime:
            family = Family(runtime)
            family.offer("spawn", DONE)
            root = await root_of(family)
            child = await begun(family, root) if what == "send" else None
            if child is not None:
                await child.ref.stop()
            before = len(family.starts)

            async def act() -> object:
                if child is not None:
                    return await family.subagents.send(child.id, "More.", parent=root)
                return await family.subagents.start(request(), parent=root)

            ended = await doomed(act)
            await trio.testing.wait_all_tasks_blocked()
            assert len(family.starts) - before == (0 if ended.cancelled else 1)
            assert len(family.starts) == len(family.ends)
            if child is not None:
                await family.subagents.send(child.id, "Again.", parent=root)
                await trio.testing.wait_all_tasks_blocked()
                assert told(living(family, child.id))[-1] == "Again."

    assert await at_every_step(scenario) > 1


async def test_a_parent_begins_and_goes_on_by_its_tools(family: Family) -> None:
    family.offer("spawn", ProviderResult("one"))
    tools = [subagent_tool(family.subagents, continuable=True)]
    root = await root_of(family, beginning(), DONE, tools=tools)
    root.inbox.followup("go")
    await trio.testing.wait_all_tasks_blocked()
    assert told(root)[-1].endswith("has finished:\none")


KILLED = textwrap.dedent(
    """
    import sys
    import trio
    import greenroom
    from greenroom import AgentJob, ChildRequest, ProviderResult, ScriptedProvider, ScriptedTurn, SpawnProvider

    async def main() -> None:
        async with greenroom.open_runtime(data=sys.argv[1]) as runtime:
            never = ScriptedProvider([ScriptedTurn(ProviderResult(""), delay=1000)])
            registry = greenroom.AgentRegistry({"m": never})
            runtime.subagents.add("spawn", SpawnProvider(registry, AgentJob(provider="m", messages=())))
            session = await runtime.sessions.open("planner")
            root = runtime.agents.add(greenroom.Agent(never, session=session))
            session.append("user/message", {"content": "go"})
            await runtime.sessions.flush(session)
            request = ChildRequest(description="a task", prompt="Do it.")
            child = (await runtime.subagents.start(request, parent=root)).child_id
            await runtime.subagents.send(child, "Then this.", parent=root)
            print(child, flush=True)
            await trio.sleep_forever()

    trio.run(main)
    """
)


async def test_what_it_was_given_outlives_a_kill(tmp_path: Path) -> None:
    data = tmp_path / "data.db"
    id = await said_before_its_kill(KILLED, str(data))
    async with open_runtime(data=data) as runtime:
        family = Family(runtime)
        family.offer("spawn", DONE)
        root = await root_of(family)
        assert await family.subagents.all_children(by=root) == (ChildInfo(id=id, label="a task", status="ready"),)
        settled = trio.Event()
        runtime.bus.on("subagent/end", lambda _: settled.set())
        await family.subagents.send(id, "And that.", parent=root)
        with trio.fail_after(30):
            await settled.wait()
        assert told(living(family, id)) == ["Do it.", "Then this.", "And that."]
