"""Sub-agents for one task: what comes of them, what keeps them from being begun, and that nothing is left of them."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from greenroom.actors.agent import Agent
from greenroom.actors.providers.scripted import ScriptedProvider, ScriptedTurn
from greenroom.actors.subagent import ChildSpec, ForkProvider
from greenroom.actors.system import open_runtime
from greenroom.actors.toolbox.subagent import subagent_tool
from greenroom.protocol.agents import MAX_DIAGNOSTIC, MessageInput, ProviderResult, Scope
from greenroom.protocol.errors import AgentError, GreenroomError, SeamError, SubagentError, ToolError
from greenroom.runtime.lineage import Lineage, current_lineage, within
from greenroom.runtime.tools import Tool
from tests.agents.conftest import calling, stored, value_tool
from tests.cancelling import Doomed, at_every_step
from tests.subagents.conftest import DONE, Family, beginning, request

SLOW = ScriptedTurn(ProviderResult("part of it"), deltas=("part", " of it"), pause=10.0)


async def test_a_program_has_a_task_done(family: Family) -> None:
    model = family.offer("spawn", ProviderResult("Found it."))
    result = await family.subagents.run(request("Look for it."))
    assert (result.output, result.stop_reason, result.diagnostic) == (("Found it.",), "completed", None)
    assert [message.content for message in model.calls[0].messages] == ["Look for it."]
    (start,), (end,) = family.starts, family.ends
    assert start.run_id == end.run_id == result.run_id
    assert (start.provider, start.label, start.parent, end.stop_reason) == ("spawn", "a task", None, "completed")
    assert family.places == []


async def test_an_agent_has_it_done_by_the_tool(family: Family) -> None:
    family.offer("spawn", ProviderResult("Found it."))
    root = family.agent(beginning(), DONE, id="planner", tools=[subagent_tool(family.subagents)])
    assert (await root.generate()).content == "done"
    assert stored(root)[-2][1] == f'{{"runId":"{family.ends[0].run_id}","output":["Found it."]}}'
    assert family.starts[0].parent == "planner"
    assert family.places == ["/agents/planner"]


async def test_it_goes_on_as_a_job_of_the_agent_that_is_told_of_its_end(family: Family) -> None:
    jobs = family.runtime.jobs
    model = family.offer("spawn", ScriptedTurn(ProviderResult("Found it."), delay=10.0))
    call = beginning(description="Look for it", prompt="Look.", run_in_background=True)
    tools = [subagent_tool(family.subagents, background=jobs)]
    root = family.agent(call, DONE, DONE, id="planner", tools=tools)
    await root.generate()
    assert stored(root)[-2][1] == '{"jobId":"subagent-1"}'
    job = jobs.find("subagent-1", by=root)
    assert (job.label, job.status) == ("Look for it", "running")
    assert family.places == ["/agents/planner", "/agents/planner/jobs/subagent-1/delegations/1"]
    job.kill("not needed")
    await job.wait()
    assert (job.status, family.places, model.started) == ("killed", ["/agents/planner"], 1)


async def test_a_job_that_a_subagent_does_not_complete_has_failed_with_all_there_is(family: Family) -> None:
    family.offer("spawn", calling("looking " * 50, "look"), tools=(value_tool("look"),), limit=1)
    tool = subagent_tool(family.subagents, background=family.runtime.jobs)
    started = await tool.execute({"description": "Look for it", "prompt": "Look.", "run_in_background": True})
    job = family.runtime.jobs.find(started["jobId"], by=None)
    assert (await job.wait()).status == "failed"
    assert job.read().endswith("looking " * 50)


async def test_tasks_that_are_begun_together_are_done_together(
    family: Family, autojump_clock: trio.testing.MockClock
) -> None:
    family.runtime.bus.on("tools/result", lambda _: None)
    model = family.offer("spawn", ScriptedTurn(DONE, delay=10.0))
    tools = [subagent_tool(family.subagents)]
    root = family.agent(beginning("subagent", "subagent", "subagent"), DONE, id="planner", tools=tools)
    await root.generate()
    assert trio.current_time() == 10.0
    assert model.max_in_flight == 3


@pytest.mark.parametrize(
    ("turn", "reason", "diagnostic", "output"),
    [
        (ScriptedTurn(failure=LookupError("key=hunter2")), "error", "it failed with LookupError", ()),
        (ScriptedTurn(failure=GreenroomError("X", "y" * 9000)), "error", "y" * MAX_DIAGNOSTIC, ()),
        (ProviderResult(""), "completed", None, ()),
        (calling("looking", "look"), "error", "its 2 turns were used up", ("looking",)),
    ],
)
async def test_what_a_subagent_fails_with_is_its_result(
    family: Family, turn: ScriptedTurn | ProviderResult, reason: str, diagnostic: str | None, output: tuple[str, ...]
) -> None:
    family.offer("spawn", turn, tools=(value_tool("look"),), limit=2)
    result = await family.subagents.run(request())
    assert (result.stop_reason, result.diagnostic, result.output) == (reason, diagnostic, output)
    assert family.places == []


async def test_a_budget_that_is_used_up_is_told_apart(family: Family) -> None:
    family.offer("spawn", ScriptedTurn(ProviderResult("x" * 400), deltas=("x" * 40,) * 10), budget=20)
    result = await family.subagents.run(request())
    assert (result.stop_reason, result.diagnostic) == ("max-tokens", "its budget was used up")
    assert result.output != ()


async def test_the_tool_fails_with_the_reason_and_what_there_is(
    family: Family, autojump_clock: trio.testing.MockClock
) -> None:
    family.offer("spawn", SLOW)
    root = family.agent(beginning(), DONE, id="planner", tools=[subagent_tool(family.subagents)])
    async with root.stream() as run:
        await trio.sleep(5)
        (info,) = family.subagents.children(by=root)
        family.subagents.interrupt(info.id)
        await run.result()
    text = stored(root)[-2][1]
    assert "ended before it was done (aborted): it was stopped (interrupted)" in text
    assert text.endswith("part")


async def test_a_cancelled_task_is_stopped_before_its_cancellation_is_raised(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def scenario(doomed: Doomed) -> None:
        async with open_runtime() as runtime:
            family = Family(runtime)
            below = family.offer("below", DONE)
            family.offer("spawn", beginning(), DONE, tools=(subagent_tool(family.subagents, provider="below"),))
            ended = await doomed(lambda: family.subagents.run(request(), provider="spawn"))
            assert ended.cancelled or ended.value.stop_reason == "completed"
            assert family.places == []
            assert below.in_flight == 0
            assert family.subagents.children("descendants") == ()
            assert len(family.starts) == len(family.ends)
            assert runtime.snapshot().waits == ()

    assert await at_every_step(scenario) > 5


# -------------------------------------------------------------------- what keeps one from being begun


async def test_a_provider_is_chosen_by_name_unless_there_is_one_alone(family: Family) -> None:
    with pytest.raises(SeamError, match="no provider") as missing:
        await family.subagents.run(request())
    family.offer("a", DONE)
    family.offer("b", DONE)
    with pytest.raises(SeamError, match="a, b") as several:
        await family.subagents.run(request())
    with pytest.raises(SeamError) as twice:
        family.offer("a", DONE)
    assert [each.value.code for each in (missing, several, twice)] == [
        "NO_PROVIDER",
        "PROVIDER_AMBIGUOUS",
        "DUPLICATE_PROVIDER",
    ]
    assert (await family.subagents.run(request(), provider="b")).output == ("done",)
    assert family.subagents.providers == ("a", "b")


async def test_providers_come_and_go_with_an_event_each(family: Family) -> None:
    heard: list[str] = []
    family.runtime.bus.on("subagent/provider-added", lambda told: heard.append(f"+{told.name}"))
    family.runtime.bus.on("subagent/provider-removed", lambda told: heard.append(f"-{told.name}"))
    remove = family.subagents.add("fork", ForkProvider())
    remove()
    remove()
    again = family.subagents.add("fork", ForkProvider())
    remove()
    assert family.subagents.providers == ("fork",)
    again()
    assert heard == ["+fork", "-fork", "+fork", "-fork"]


class Plain:
    """Builds agents that can be asked for nothing in particular."""

    capabilities = frozenset[str]()

    def __init__(self, id: str | None = None) -> None:
        self.built = 0
        self._id = id

    def build(self, spec: ChildSpec) -> Agent:
        self.built += 1
        return Agent(ScriptedProvider([DONE]), id=self._id or spec.id)


@pytest.mark.parametrize(("asked", "value"), [("persona", "a poet"), ("tools", ())])
async def test_what_a_provider_cannot_do_is_refused_before_anything_is_built(
    family: Family, asked: str, value: Any
) -> None:
    family.subagents.add("plain", plain := Plain())
    with pytest.raises(SubagentError, match=asked) as refused:
        await family.subagents.run(request(**{asked: value}))
    assert refused.value.code == "UNSUPPORTED_CAPABILITY"
    assert plain.built == 0
    assert (await family.subagents.run(request())).stop_reason == "completed"


async def test_an_agent_of_another_id_than_its_provider_was_given_is_none(family: Family) -> None:
    family.subagents.add("plain", Plain("mine"))
    with pytest.raises(ValueError, match="not mine"):
        await family.subagents.run(request())
    assert family.places == []


async def test_persona_and_tools_are_followed(family: Family) -> None:
    model = family.offer("spawn", DONE, tools=(value_tool("a"), value_tool("b")), system="usual")
    await family.subagents.run(request(persona="a poet", tools=("b",)))
    (call,) = model.calls
    assert call.messages[0].content == "a poet"
    assert call.tools is not None
    assert [tool.name for tool in call.tools] == ["b", "report"]
    with pytest.raises(AgentError, match="a, b") as refused:
        await family.subagents.run(request(tools=("c",)))
    assert refused.value.code == "UNKNOWN"


async def test_a_fork_knows_what_its_parent_knows_but_for_what_is_still_asked(family: Family) -> None:
    models: list[list[str]] = []

    def look(messages: object, _tools: object) -> ProviderResult:
        models.append([message.content for message in messages])  # type: ignore[attr-defined]
        return DONE

    family.subagents.add("fork", ForkProvider(tools=["a"]))
    tools = [subagent_tool(family.subagents, name="subagent_fork"), value_tool("a")]
    first = calling("first", "a")
    root = family.agent(first, beginning("subagent_fork"), look, look, id="planner", system="Be brief.", tools=tools)
    await root.generate()
    assert models[0] == ["Be brief.", "go", "first", "5", "Do it."]
    assert stored(root)[:4] == [("user", "go"), ("assistant", "first"), ("tool", "5"), ("assistant", "")]


async def test_there_is_nothing_to_fork_where_no_agent_asks(family: Family) -> None:
    family.subagents.add("fork", ForkProvider())
    with pytest.raises(SubagentError) as refused:
        await family.subagents.run(request())
    assert refused.value.code == "PARENT_UNAVAILABLE"


# -------------------------------------------------------------------- depth


def nesting(family: Family, depths: list[int]) -> None:
    """Sub-agents that begin a further one each, and note how deep they are."""

    def look() -> None:
        depths.append(current_lineage().delegations)

    def decide(messages: object, _tools: object) -> ProviderResult:
        last = messages[-1]  # type: ignore[index]
        return beginning("look", "subagent") if last.role == "user" else ProviderResult(last.content)

    family.offer("spawn", *(decide,) * 20, tools=(Tool("look", look), subagent_tool_for(family)))


def subagent_tool_for(family: Family) -> Tool:
    return subagent_tool(family.subagents, provider="spawn")


@pytest.mark.case("pipeline", 36)
async def test_a_subagent_at_the_greatest_depth_begins_none(family: Family) -> None:
    depths: list[int] = []
    nesting(family, depths)
    root = family.agent(beginning(), DONE, id="planner", tools=[subagent_tool_for(family)])
    await root.generate()
    assert depths == [1, 2, 3]
    assert len(family.starts) == 3
    assert "3 are allowed" in stored(root)[-2][1]


@pytest.mark.parametrize(("most", "deepest"), [(0, 0), (1, 1), (20, 8)])
async def test_the_depth_is_what_is_configured_and_never_more_than_of_any_chain(
    family: Family, most: int, deepest: int
) -> None:
    depths: list[int] = []
    nesting(family, depths)
    family.subagents.max_depth = most
    root = family.agent(beginning(), DONE, id="planner", tools=[subagent_tool_for(family)])
    await root.generate()
    assert depths == list(range(1, deepest + 1))


async def test_a_request_may_allow_less_and_who_is_above_counts(family: Family) -> None:
    family.offer("spawn", DONE)
    with pytest.raises(ToolError) as refused:
        await family.subagents.run(request(max_depth=0), parent=family.agent(DONE, id="planner"))
    assert refused.value.code == "DEPTH"
    assert {"depth": 1, "max": 0}.items() <= refused.value.context.items()
    with within(Lineage.of(["workflow:w", "agent:a", "agent:b", "agent:c"])), pytest.raises(ToolError):
        await family.subagents.run(request())
    assert family.starts == []


# -------------------------------------------------------------------- what it has


async def test_every_subagent_can_report_whatever_hides_its_tools(family: Family) -> None:
    class Narrow:
        capabilities = frozenset[str]()

        def build(self, spec: ChildSpec) -> Agent:
            return Agent(
                model, id=spec.id, tools=[value_tool("a"), value_tool("report")], scope=Scope("none", tools=())
            )

    model = ScriptedProvider([calling("", "report", output="Is it v1?"), DONE])
    family.subagents.add("narrow", Narrow())
    root = family.agent(beginning(), DONE, id="planner", tools=[subagent_tool(family.subagents)])
    await root.generate()
    assert model.calls[0].tools is not None
    assert [tool.name for tool in model.calls[0].tools] == ["report"]
    (role, text), answer = stored(root)[-2:]
    assert role == "user"
    assert text.endswith("reports:\nIs it v1?")
    assert answer == ("assistant", "done")


async def test_a_subagent_shares_no_registry_of_tools_with_its_parent(family: Family) -> None:
    family.subagents.add("fork", ForkProvider())
    root = family.agent(beginning(), DONE, DONE, id="planner", tools=[subagent_tool(family.subagents)])
    root.context.messages.add(MessageInput("user", "more"))
    await root.generate()
    assert [tool.name for tool in root.context.tools.tools()] == ["subagent"]
