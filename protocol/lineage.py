"""Lineages: who runs beneath whom in a chain of workflows and agents, and when one more is refused.

A lineage is a tuple of tags, the outermost first: `workflow:<id>` and `agent:<id>` in turn, each tag once. The text
after the first colon is the id; it is not empty, may hold further colons, and its case counts. The empty lineage stands
for a caller that nothing runs above.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, TypeGuard, cast

from greenroom.protocol.errors import ToolError

__all__ = [
    "MAX_WORKFLOW_CHAIN",
    "WorkflowLineage",
    "enter_agent",
    "enter_workflow",
    "extend_lineage",
    "is_workflow_lineage",
    "lineage_depth",
    "normalize_lineage",
    "tag_agent",
    "tag_workflow",
]

MAX_WORKFLOW_CHAIN: Final = 8
"""How many workflows may be nested beneath the outermost one."""

WorkflowLineage: TypeAlias = tuple[str, ...]

Party: TypeAlias = Literal["workflow", "agent"]

_PARTIES: Final[tuple[Party, Party]] = ("workflow", "agent")


def tag_workflow(workflow_id: str) -> str:
    """`workflow:<id>`"""
    return f"workflow:{workflow_id}"


def tag_agent(agent_id: str) -> str:
    """`agent:<id>`"""
    return f"agent:{agent_id}"


def is_workflow_lineage(value: object) -> TypeGuard[tuple[str, ...] | list[str]]:
    """Whether the value is a list or a tuple that is a lineage. Never raises, whatever the value."""
    return _fault(value) is None


def normalize_lineage(value: object, *, ending: Party | None = None) -> WorkflowLineage:
    """The lineage as a tuple of its own. With `ending`, its last tag must be of that kind, unless it is empty.

    Raises `ToolError` TOOL for anything else.
    """
    fault = _fault(value)
    if fault is not None:
        raise ToolError("TOOL", f"This is no lineage: {fault}.")
    tags = tuple(cast("tuple[str, ...] | list[str]", value))
    if ending is not None and tags and not tags[-1].startswith(f"{ending}:"):
        raise ToolError(
            "TOOL",
            f"The lineage ends with {tags[-1]!r}, and here it must end with one of kind {ending!r} or be empty:"
            " leave its last tag out, or add the missing one.",
        )
    return tags


def extend_lineage(lineage: object, tag: str) -> WorkflowLineage:
    """The lineage with `tag` as its last. Raises `ToolError` TOOL if either is malformed or they do not fit."""
    return normalize_lineage((*normalize_lineage(lineage), tag))


def lineage_depth(lineage: object) -> int:
    """How many workflows are nested beneath the outermost one: workflow tags minus one, at least 0.

    Raises `ToolError` TOOL for what is no lineage.
    """
    return max(0, (len(normalize_lineage(lineage)) + 1) // 2 - 1)


def enter_workflow(lineage: WorkflowLineage, workflow_id: str) -> WorkflowLineage:
    """The lineage inside of a workflow that an agent, or nobody, starts.

    Raises `ToolError` DEPTH if that workflow runs already in this chain, or if it would be nested too deep.
    """
    tag = tag_workflow(workflow_id)
    if tag in lineage:
        raise ToolError(
            "DEPTH",
            f"Workflow {workflow_id!r} runs already in this chain ({_shown(lineage)}) and cannot run inside itself:"
            " give the inner one another name.",
            {"workflow": workflow_id, "lineage": list(lineage)},
        )
    inside = extend_lineage(lineage, tag)
    depth = lineage_depth(inside)
    if depth > MAX_WORKFLOW_CHAIN:
        raise _too_deep("workflow", workflow_id, depth)
    return inside


def enter_agent(lineage: WorkflowLineage, agent_id: str, workflow_id: str) -> WorkflowLineage:
    """The lineage inside of an agent that a task of the workflow `workflow_id` starts; an empty one begins with it.

    Raises `ToolError` DEPTH if the lineage is that of another workflow, if the chain is too deep, or if the agent is
    in it already.
    """
    outside = lineage or (tag_workflow(workflow_id),)
    if outside[-1] != tag_workflow(workflow_id):
        raise ToolError(
            "DEPTH",
            f"Agent {agent_id!r} is bound beneath {outside[-1]!r} and was called in workflow {workflow_id!r}: compose"
            " its function for the workflow that calls it.",
            {"agent": agent_id, "workflow": workflow_id, "lineage": list(outside)},
        )
    depth = lineage_depth(outside)
    if depth > MAX_WORKFLOW_CHAIN:
        raise _too_deep("agent", agent_id, depth)
    if tag_agent(agent_id) in outside:
        raise ToolError(
            "DEPTH",
            f"Agent {agent_id!r} is at work already in this chain ({_shown(outside)}) and cannot wait for itself: give"
            " the task to another agent.",
            {"agent": agent_id, "lineage": list(outside)},
        )
    return extend_lineage(outside, tag_agent(agent_id))


def _too_deep(party: Party, name: str, depth: int) -> ToolError:
    return ToolError(
        "DEPTH",
        f"{party.capitalize()} {name!r} would run {depth} workflows deep, and {MAX_WORKFLOW_CHAIN} are allowed: do the"
        " work here instead of nesting it further.",
        {party: name, "depth": depth, "max": MAX_WORKFLOW_CHAIN},
    )


def _fault(value: object) -> str | None:
    """What keeps the value from being a lineage. Exact types only, so that no foreign code runs."""
    if type(value) is not tuple and type(value) is not list:
        return "it must be a list or a tuple of tags"
    seen: set[str] = set()
    for position, tag in enumerate(cast("tuple[object, ...] | list[object]", value)):
        party = _PARTIES[position % 2]
        if type(tag) is not str or not tag.startswith(f"{party}:") or len(tag) == len(party) + 1:
            return f"the tag at position {position} must be '{party}:' and an id"
        if tag in seen:
            return f"{tag!r} stands in it twice"
        seen.add(tag)
    return None


def _shown(lineage: WorkflowLineage) -> str:
    return " > ".join(lineage)
