"""Definitions, drafts and flat steps, checked as they stand or parsed as they may have been meant.

A misspelt `behavior` would be a task that silently does nothing, so that parsing tells which members it dropped.
Neither looks at whether ids are unique; building the workflow does.
"""

from __future__ import annotations

from greenroom.protocol.workflows.definition import (
    PhaseDefinition,
    TaskDefinition,
    WorkflowDefinition,
    WorkflowDraft,
    WorkflowSteps,
)
from greenroom.protocol.workflows.reader import Reader, Reading

__all__ = [
    "check_definition",
    "check_phase",
    "check_task",
    "is_definition",
    "parse_definition",
    "parse_draft",
    "parse_steps",
    "why_no_draft",
    "why_no_steps",
]

_DEFINITION = Reader(WorkflowDefinition, "workflow definition")
_PHASE = Reader(PhaseDefinition, "phase")
_TASK = Reader(TaskDefinition, "task")
_DRAFT = Reader(WorkflowDraft, "workflow draft")
_STEPS = Reader(WorkflowSteps, "list of steps")


def is_definition(value: object) -> bool:
    """Whether the value, JSON or a struct, is a definition as it stands. Never raises."""
    return _DEFINITION.fits(value)


def check_definition(value: object) -> WorkflowDefinition:
    """The definition that the value, JSON or a struct, is as it stands, with nothing shared between the two.

    Raises `WorkflowError` MUTATION that names the members at fault.
    """
    return _DEFINITION.checked(value)


def check_phase(value: object) -> PhaseDefinition:
    """The same for a phase."""
    return _PHASE.checked(value)


def check_task(value: object) -> TaskDefinition:
    """The same for a task."""
    return _TASK.checked(value)


def parse_definition(value: object) -> Reading[WorkflowDefinition] | None:
    """The definition that the value may be read as, or `None`. Never raises."""
    return _DEFINITION.parse(value)


def parse_draft(value: object) -> Reading[WorkflowDraft] | None:
    """The draft that the value may be read as, or `None`. Never raises."""
    return _DRAFT.parse(value)


def parse_steps(value: object) -> Reading[WorkflowSteps] | None:
    """The flat steps that the value may be read as, or `None`. Never raises."""
    return _STEPS.parse(value)


def why_no_draft(value: object) -> str:
    """What keeps a value from being read as a draft, as a clause for whoever wrote it."""
    return "; ".join(_DRAFT.faults(value)[:5])


def why_no_steps(value: object) -> str:
    """What keeps a value from being read as flat steps, as a clause for whoever wrote it."""
    return "; ".join(_STEPS.faults(value)[:5])
