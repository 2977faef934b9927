"""One registry of behaviours, composed of plain functions and of agents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias, TypeVar

from greenroom.protocol.errors import ToolError
from greenroom.protocol.lineage import WorkflowLineage, normalize_lineage

__all__ = ["AGENT_CATEGORY", "WorkflowFunction", "compose_functions"]

AGENT_CATEGORY: Final = "agent"
"""What the attribute `category` of a function says that runs an agent."""

WorkflowFunction: TypeAlias = Callable[[Any], Any]
"""What a task does: called with its controller, plain or async; what it returns must be JSON."""

Agent = TypeVar("Agent")


def compose_functions(
    functions: Mapping[str, object],
    agents: Mapping[str, Agent],
    adapt: Callable[[Agent, WorkflowLineage], WorkflowFunction],
    *,
    lineage: object = (),
) -> Mapping[str, WorkflowFunction]:
    """A read-only registry: the functions first, then each agent as what `adapt` makes of it beneath `lineage`.

    Both mappings are copied; a mapping that makes entries up on demand gives none. Raises `ToolError` TOOL for a
    lineage that ends with an agent, a function that cannot be called, one that runs an agent (those come as agents, so
    that the chain they run in is known), and a name that stands in both.
    """
    chain = normalize_lineage(lineage, ending="workflow")
    composed: dict[str, WorkflowFunction] = {}
    for name, function in dict(functions).items():
        if not callable(function):
            raise ToolError(
                "TOOL", f"The function {name!r} cannot be called: register a function under it.", {"function": name}
            )
        if getattr(function, "category", None) == AGENT_CATEGORY:
            raise ToolError(
                "TOOL",
                f"The function {name!r} runs an agent of a chain of its own: pass the agent itself under `agents`.",
                {"function": name},
            )
        composed[name] = function
    for name, agent in dict(agents).items():
        if name in composed:
            raise ToolError(
                "TOOL", f"{name!r} is both a function and an agent: rename one of the two.", {"function": name}
            )
        composed[name] = adapt(agent, chain)
    return MappingProxyType(composed)
