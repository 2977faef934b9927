"""The tool `workflow`: a model runs steps one after another, or phases of tasks side by side. And agents within them.

The tool, an agent as a function of a task, and the registry that holds both belong together: an agent that works on a
task gets a `workflow` tool of its own, whose runs can call upon the same functions and agents. Each knows the chain of
workflows and agents that it is in, and refuses to go round in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, Protocol, final, runtime_checkable

from msgspec import json

from greenroom.actors.workflow import TaskController, WorkflowRunner, WorkflowStore
from greenroom.protocol.agents import agent_result_to_json
from greenroom.protocol.errors import ToolError
from greenroom.protocol.lineage import WorkflowLineage, enter_agent, enter_workflow, normalize_lineage
from greenroom.protocol.schemas import Arguments
from greenroom.protocol.workflows import (
    AGENT_CATEGORY,
    WorkflowDefinition,
    WorkflowFunction,
    WorkflowSteps,
    author_workflow,
    compose_functions,
    summarize_workflow,
)
from greenroom.runtime.tools import RESERVED, Tool, ToolManager

__all__ = ["AgentFunction", "WorkingAgent", "agent_function", "workflow_functions", "workflow_tool"]

MAX_PARTS: Final = 1_000
"""How many phases, and how many tasks, one call may spell. A model that repeats itself spells many more."""

SUMMARY: Final = "Runs steps one after another, or phases of tasks side by side; see describe('workflow') for how."

DESCRIPTION: Final = """\
Runs a workflow and waits for its end. A workflow is work that has names here already: you say which of it is done, \
and in which order.

Usually a list of steps will do. Each `name` is that of a behaviour; the next step begins when the one before has ended:
{"name": "release", "steps": [{"name": "test"}, {"name": "build"}, {"name": "publish"}]}

When work is to be done side by side, pass phases. They run one after another, the tasks of one phase at the same \
time; ids and names may be left out:
{"name": "release", "phases": [
  {"name": "check", "tasks": [{"behavior": "test"}, {"behavior": "lint", "retries": 2}], "bail": true},
  {"name": "ship", "tasks": [{"behavior": "publish", "timeout": 60000, "input": {"channel": "beta"}}]}]}

- A task has `behavior` (what it does; without one it does nothing), and optionally `retries` (further attempts after \
a failure), `timeout` (milliseconds for each attempt) and `input` (an object for the behaviour).
- A phase has `tasks`, and optionally `concurrency` (how many of them at a time) and `bail`.
- `bail` (true or false, for the whole or for one phase; false unless given) says whether a failed task ends the rest.

A whole definition has `id` and `name` at all three levels:
{"id": "release", "name": "Release", "phases": [{"id": "ship", "name": "Ship", "tasks": [{"id": "publish", "name": \
"Publish", "behavior": "publish"}]}]}

{} runs the workflow that this tool was made for.

The result is {"status": "completed" | "failed" | "stopped" | "skipped", "count": how many tasks completed or failed}, \
with `failed` (how many of them failed) and `ignored` (members of your call that mean nothing here) if there are any. \
A workflow that failed is a result too: look at `status` and `failed`. The call itself fails, and nothing runs, if the \
arguments spell no workflow, if a behaviour has no such name, or if the workflow would run inside itself.
"""

STEPS: Final = Arguments[WorkflowSteps](WorkflowSteps)


def workflow_tool(
    definition: WorkflowDefinition,
    runner: WorkflowRunner,
    *,
    lineage: object = (),
    functions: Mapping[str, object] | None = None,
    agents: Mapping[str, WorkingAgent] | None = None,
    store: WorkflowStore | None = None,
) -> Tool:
    """The tool `workflow`. Called with nothing it runs `definition`, else what the call spells: steps, or a draft.

    `lineage` is the chain that the caller of the tool is in. `functions` and `agents` stand behind the names of
    behaviours, `store` keeps the runs. Each call is one run of the runner, beneath the actor that calls, in whose task
    it is waited for: cancelling the call stops the run and all beneath it.

    The tool returns a `WorkflowSummary` as JSON; that a workflow failed is no failure of the call. It raises
    `ToolError`: TOOL for arguments that spell no workflow, or one of more than `MAX_PARTS`, and for registries that
    cannot be composed, DEPTH for a workflow that runs already in its chain or would be nested too deep; and
    `WorkflowError` as the runner does. Raises `ToolError` TOOL here for a lineage that is none, or that does not end
    with an agent.
    """
    chain = normalize_lineage(lineage, ending="agent")
    functions = None if functions is None else dict(functions)
    agents = None if agents is None else dict(agents)

    async def workflow(args: Any) -> dict[str, Any]:
        authored = author_workflow(args, definition)
        if authored.definition is not definition:
            _check_size(authored.definition)
        inside = enter_workflow(chain, authored.definition.id)
        composed = (
            workflow_functions(runner, lineage=inside, functions=functions, agents=agents, store=store)
            if functions is not None or agents is not None
            else None
        )
        result = await runner.execute(authored.definition, functions=composed, store=store)
        summary: dict[str, Any] = json.decode(json.encode(summarize_workflow(result, authored.ignored)))
        return summary

    return Tool(RESERVED, workflow, summary=SUMMARY, description=DESCRIPTION, parameters=STEPS.advertised)


def _check_size(definition: WorkflowDefinition) -> None:
    phases = definition.phases
    for what, count in (("phases", len(phases)), ("tasks", sum(len(phase.tasks) for phase in phases))):
        if count > MAX_PARTS:
            raise ToolError(
                "TOOL",
                f"One call may run up to {MAX_PARTS:,} {what}, and these are {count:,}: run them in several calls.",
                {"workflow": definition.id, what: count},
            )


# -------------------------------------------------------------------- agents that work on tasks


class HasTools(Protocol):
    """What an agent goes by, as far as a workflow adds to it."""

    @property
    def tools(self) -> ToolManager: ...


class WorkingAgent(Protocol):
    """What can work on a task: anything with an id that generates a result. `Agent` is one."""

    @property
    def id(self) -> str: ...

    async def generate(self) -> Any: ...


@runtime_checkable
class Equipped(Protocol):
    """An agent whose tools can be added to, and that says whether it is at work."""

    @property
    def status(self) -> str: ...

    @property
    def context(self) -> HasTools: ...


@final
class AgentFunction:
    """An agent as what a task does. Made by `agent_function`; it does not change."""

    __slots__ = ("_agent", "_agents", "_functions", "_lineage", "_runner", "_store")

    category: Final[Literal["agent"]] = AGENT_CATEGORY

    def __init__(
        self,
        agent: WorkingAgent,
        runner: WorkflowRunner | None,
        lineage: WorkflowLineage,
        functions: Mapping[str, object] | None,
        agents: Mapping[str, WorkingAgent] | None,
        store: WorkflowStore | None,
    ) -> None:
        self._agent = agent
        self._runner = runner
        self._lineage = lineage
        self._functions = functions
        self._agents = agents
        self._store = store

    @property
    def lineage(self) -> WorkflowLineage:
        """The chain that it is bound beneath; empty if that is known only when it is called."""
        return self._lineage

    async def __call__(self, controller: TaskController) -> dict[str, Any]:
        workflow = controller.task.workflow
        inside = enter_agent(self._lineage, self._agent.id, workflow.id)
        if self._runner is not None:
            self._equip(self._runner, inside, workflow.id, workflow.name)
        result = agent_result_to_json(await self._agent.generate())
        if result is None:
            raise ToolError(
                "TOOL",
                f"The agent {self._agent.id!r} came to nothing that is a result: `generate` has to return an object "
                "with `content` and `partial`.",
                {"agent": self._agent.id},
            )
        return result

    def _equip(self, runner: WorkflowRunner, inside: WorkflowLineage, id: str, name: str) -> None:
        """Give the agent a workflow tool for what is nested beneath its task."""
        agent = self._agent
        if not isinstance(agent, Equipped):
            raise ToolError(
                "TOOL",
                f"The agent {agent.id!r} has no tools to add to; bind it without a runner.",
                {"agent": agent.id},
            )
        if agent.status == "running":
            raise ToolError(
                "TOOL",
                f"The agent {agent.id!r} is at work already, and has one workflow tool at a time: wait for it, or give "
                "the task to another agent.",
                {"agent": agent.id},
            )
        nested = workflow_tool(
            WorkflowDefinition(id=id, name=name, phases=()),
            runner,
            lineage=inside,
            functions=self._functions,
            agents=self._agents,
            store=self._store,
        )
        agent.context.tools.add(nested)


def agent_function(
    agent: WorkingAgent,
    *,
    runner: WorkflowRunner | None = None,
    lineage: object = (),
    functions: Mapping[str, object] | None = None,
    agents: Mapping[str, WorkingAgent] | None = None,
    store: WorkflowStore | None = None,
) -> AgentFunction:
    """An agent as a function of a workflow: the task is one `generate()` of it, on the conversation as it stands.

    With a `runner` the agent is given a `workflow` tool, which stays with it, with the other options for the runs
    beneath. `lineage` is the chain in which the function is called; an empty one begins with the workflow that calls.

    What it comes to is the result as JSON: `{content, partial, thinking?, usage?}`. A call raises `ToolError`, before
    the agent does anything: DEPTH for another workflow than the chain ends with, for a chain that is too deep, and for
    an agent that is in it already; TOOL for an agent that is at work, if there is a runner. What `generate` raises
    passes. Raises `ToolError` TOOL here for a lineage that is none, or that does not end with a workflow.
    """
    chain = normalize_lineage(lineage, ending="workflow")
    return AgentFunction(
        agent,
        runner,
        chain,
        None if functions is None else dict(functions),
        None if agents is None else dict(agents),
        store,
    )


def workflow_functions(
    runner: WorkflowRunner,
    *,
    lineage: object = (),
    functions: Mapping[str, object] | None = None,
    agents: Mapping[str, WorkingAgent] | None = None,
    store: WorkflowStore | None = None,
) -> Mapping[str, WorkflowFunction]:
    """A read-only registry of functions and of agents, for runs in the chain `lineage`.

    Workflows that an agent nests find the same names. Both mappings are copied. Raises `ToolError` TOOL for a lineage
    that is none or ends with an agent, for what is no function, for an agent function among the functions, and for a
    name that stands in both.
    """
    functions, agents = dict(functions or {}), dict(agents or {})

    def adapt(agent: WorkingAgent, chain: WorkflowLineage) -> WorkflowFunction:
        return AgentFunction(agent, runner, chain, functions, agents, store)

    return compose_functions(functions, agents, adapt, lineage=lineage)
