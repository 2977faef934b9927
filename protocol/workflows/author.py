"""What a call of the workflow tool asks to be run: its arguments as a whole definition."""

from __future__ import annotations

from typing import NamedTuple

from greenroom.protocol.errors import ToolError
from greenroom.protocol.schemas.gates import NotJson, clone_json, is_array
from greenroom.protocol.workflows.definition import WorkflowDefinition
from greenroom.protocol.workflows.drafts import complete_draft, expand_steps
from greenroom.protocol.workflows.reading import (
    is_definition,
    parse_draft,
    parse_steps,
    why_no_draft,
    why_no_steps,
)

__all__ = ["Authored", "author_workflow"]


class Authored(NamedTuple):
    """The definition to run, and where arguments were dropped that mean nothing: `phases[0].tasks[1].run`."""

    definition: WorkflowDefinition
    ignored: tuple[str, ...] = ()


def author_workflow(args: object, wrapped: WorkflowDefinition) -> Authored:
    """The definition that the arguments of a call spell; `{}` is the wrapped one.

    A list under `steps` makes them flat steps, whatever stands beside it; else they are a draft. Raises `ToolError`
    TOOL, whose context names the wrapped workflow, for arguments that are neither, and for a wrapped definition that
    cannot be run as it is.
    """
    copy = clone_json(args, record=True)
    if isinstance(copy, NotJson):
        raise _refusal(wrapped, f"{copy}; call the tool with one JSON object")
    if not copy:
        if not is_definition(wrapped):
            raise _refusal(wrapped, "the workflow that the tool wraps is no whole definition")
        return Authored(wrapped)
    if is_array(copy.get("steps")):
        steps = parse_steps(copy)
        if steps is None:
            raise _refusal(wrapped, f'{why_no_steps(copy)}; a flat workflow is {{"steps": [{{"name": ...}}, ...]}}')
        return Authored(expand_steps(steps.value), steps.ignored)
    draft = parse_draft(copy)
    if draft is None:
        raise _refusal(
            wrapped,
            f'{why_no_draft(copy)}; pass {{"steps": [{{"name": ...}}, ...]}}, or a workflow with "phases" and their'
            ' "tasks"',
        )
    return Authored(complete_draft(draft.value), draft.ignored)


def _refusal(wrapped: WorkflowDefinition, reason: str) -> ToolError:
    return ToolError("TOOL", f"These arguments spell no workflow: {reason}.", {"workflow": wrapped.id})
