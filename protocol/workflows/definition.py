"""Workflow definitions: phases that run one after another, the tasks of each running side by side.

These structs are the wire shape. A draft is a definition whose ids and names may be missing, flat steps are the
shortest way to say one. Members that are not given are `UNSET`, and left out on the wire; durations are whole
milliseconds. A struct checks nothing when it is made in Python: `reading.check_definition` does.
"""

# Members are keyword-only, so that a definition may require what a draft leaves open.
# pyright: reportGeneralTypeIssues=false

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

__all__ = [
    "DEFAULT_PHASE_CONCURRENCY",
    "DEFAULT_RECOVERIES",
    "MAX_TIMER_MS",
    "Backoff",
    "Count",
    "Identifier",
    "Milliseconds",
    "PhaseDefinition",
    "PhaseDraft",
    "TaskDefinition",
    "TaskDraft",
    "Width",
    "WorkflowDefinition",
    "WorkflowDraft",
    "WorkflowStep",
    "WorkflowSteps",
    "definition_hash",
]

MAX_TIMER_MS: Final = 2_147_483_647
"""The longest duration on a wire, a little under 25 days: what a timer of 32 bits can count."""

DEFAULT_PHASE_CONCURRENCY: Final = 1024
"""How many tasks of a phase run at a time if it does not say."""

DEFAULT_RECOVERIES: Final = 1
"""How often a task whose attempts are used up runs once more because the process died in the last of them."""

Identifier: TypeAlias = Annotated[str, Meta(min_length=1)]
Milliseconds: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_TIMER_MS)]
Count: TypeAlias = Annotated[int, Meta(ge=0)]
Width: TypeAlias = Annotated[int, Meta(ge=1)]


class Backoff(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """How long a task rests between a failed attempt and the next: `initial`, times `factor` for each further one."""

    initial: Milliseconds
    factor: Annotated[float, Meta(ge=1)] | UnsetType = UNSET
    """2 if it is not given."""
    max: Milliseconds | UnsetType = UNSET
    """No rest is longer, jitter included."""
    jitter: Annotated[float, Meta(ge=0, le=1)] | UnsetType = UNSET
    """The share of the rest by which chance may lengthen or shorten it; none if it is not given."""


class TaskDraft(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A task whose id and name may be missing."""

    id: Identifier | UnsetType = UNSET
    name: Identifier | UnsetType = UNSET
    description: str | UnsetType = UNSET
    behavior: Identifier | UnsetType = UNSET
    """The name under which the host knows what to do. A task without one completes with null."""
    retries: Count | UnsetType = UNSET
    """Attempts beyond the first."""
    timeout: Milliseconds | UnsetType = UNSET
    """For each attempt; 0 is none."""
    input: dict[str, Any] | UnsetType = UNSET
    """What the behaviour is given; `{}` if there is none."""
    backoff: Backoff | UnsetType = UNSET
    heartbeat: Milliseconds | UnsetType = UNSET
    """An attempt fails that reports nothing for so long; 0 is none."""
    patience: bool | UnsetType = UNSET
    """Whether the timeout stands still while a person is being asked."""
    recoveries: Count | UnsetType = UNSET
    """Runs granted beyond the attempts when the process died in the last one; `DEFAULT_RECOVERIES` if not given."""


class TaskDefinition(TaskDraft, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One piece of work. Its id is unique within its phase."""

    id: Identifier
    name: Identifier


class PhaseDraft(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A phase whose id and name may be missing, and those of its tasks."""

    id: Identifier | UnsetType = UNSET
    name: Identifier | UnsetType = UNSET
    description: str | UnsetType = UNSET
    tasks: tuple[TaskDraft, ...]
    concurrency: Width | UnsetType = UNSET
    """How many tasks run at a time; `DEFAULT_PHASE_CONCURRENCY` if not given."""
    bail: bool | UnsetType = UNSET
    """Whether a failed task ends the run; as the workflow has it if not given."""


class PhaseDefinition(PhaseDraft, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Tasks that run side by side, once the phase before is over. Its id is unique within its workflow."""

    id: Identifier
    name: Identifier
    tasks: tuple[TaskDefinition, ...]


class WorkflowDraft(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A workflow whose ids and names may be missing, at every level."""

    id: Identifier | UnsetType = UNSET
    name: Identifier | UnsetType = UNSET
    description: str | UnsetType = UNSET
    phases: tuple[PhaseDraft, ...]
    bail: bool | UnsetType = UNSET
    """What holds for phases that say nothing of their own; false if not given."""


class WorkflowDefinition(WorkflowDraft, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A whole workflow, ready to be built."""

    id: Identifier
    name: Identifier
    phases: tuple[PhaseDefinition, ...]


class WorkflowStep(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One step of a flat workflow. Its name is that of a behaviour, no label."""

    name: Identifier


class WorkflowSteps(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A flat workflow: steps one after another."""

    name: Identifier | UnsetType = UNSET
    """The id of the workflow as well."""
    steps: tuple[WorkflowStep, ...]


def definition_hash(definition: WorkflowDefinition) -> str:
    """A fingerprint that equal definitions share: SHA-256, in hex, of the definition as JSON with sorted keys."""
    return hashlib.sha256(msgspec.json.encode(definition, order="sorted")).hexdigest()
