"""Filling in what a draft leaves out: ids by position, names from ids. Nothing that is given is changed."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET, structs

from greenroom.protocol.workflows.definition import (
    PhaseDefinition,
    PhaseDraft,
    TaskDefinition,
    TaskDraft,
    WorkflowDefinition,
    WorkflowDraft,
    WorkflowSteps,
)

__all__ = ["complete_draft", "complete_phase_draft", "complete_task_draft", "expand_steps"]

_WORKFLOW_ID: Final = "wf"


def complete_draft(draft: WorkflowDraft) -> WorkflowDefinition:
    """The draft with the id `wf` if it has none, and its phases completed.

    A name that is missing is the id; a name never becomes an id. An id made up here may clash with a given one, which
    is found when the workflow is built.
    """
    workflow_id = _WORKFLOW_ID if draft.id is UNSET else draft.id
    return WorkflowDefinition(
        id=workflow_id,
        name=workflow_id if draft.name is UNSET else draft.name,
        description=draft.description,
        phases=tuple(complete_phase_draft(phase, index) for index, phase in enumerate(draft.phases)),
        bail=draft.bail,
    )


def complete_phase_draft(draft: PhaseDraft, index: int) -> PhaseDefinition:
    """The draft of the phase at `index` (from 0), with the id `phase-<index>` if it has none."""
    phase_id = f"phase-{index}" if draft.id is UNSET else draft.id
    return PhaseDefinition(
        id=phase_id,
        name=phase_id if draft.name is UNSET else draft.name,
        description=draft.description,
        tasks=tuple(complete_task_draft(task, phase_id, index) for index, task in enumerate(draft.tasks)),
        concurrency=draft.concurrency,
        bail=draft.bail,
    )


def complete_task_draft(draft: TaskDraft, phase_id: str, index: int) -> TaskDefinition:
    """The draft of the task at `index` (from 0) of a phase, with the id `<phase_id>-task-<index>` if it has none."""
    task_id = f"{phase_id}-task-{index}" if draft.id is UNSET else draft.id
    members: dict[str, Any] = structs.asdict(draft)
    members.update(id=task_id, name=task_id if draft.name is UNSET else draft.name)
    return TaskDefinition(**members)


def expand_steps(steps: WorkflowSteps) -> WorkflowDefinition:
    """A workflow with a phase for each step, whose one task has the step's name as its behaviour.

    The name of the steps, if they have one, is both id and name of the workflow.
    """
    phases = tuple(PhaseDraft(tasks=(TaskDraft(behavior=step.name),)) for step in steps.steps)
    return complete_draft(WorkflowDraft(id=steps.name, name=steps.name, phases=phases))
