"""Workflows: definitions, the live tree that a run drives, and snapshots of it. Nothing here waits or writes."""

from __future__ import annotations

from greenroom.protocol.workflows.activity import ActivityItem, ActivityReport, Progress, TaskActivity
from greenroom.protocol.workflows.author import Authored, author_workflow
from greenroom.protocol.workflows.backoff import rest_before
from greenroom.protocol.workflows.build import create_recovered_workflow, create_restored_workflow, create_workflow
from greenroom.protocol.workflows.coherence import check_coherence, read_snapshot
from greenroom.protocol.workflows.composition import AGENT_CATEGORY, WorkflowFunction, compose_functions
from greenroom.protocol.workflows.definition import (
    DEFAULT_PHASE_CONCURRENCY,
    DEFAULT_RECOVERIES,
    MAX_TIMER_MS,
    Backoff,
    PhaseDefinition,
    PhaseDraft,
    TaskDefinition,
    TaskDraft,
    WorkflowDefinition,
    WorkflowDraft,
    WorkflowStep,
    WorkflowSteps,
    definition_hash,
)
from greenroom.protocol.workflows.drafts import complete_draft, complete_phase_draft, complete_task_draft, expand_steps
from greenroom.protocol.workflows.edit import Edit, Failure, Success
from greenroom.protocol.workflows.event import WorkflowEvent
from greenroom.protocol.workflows.gate import Gate
from greenroom.protocol.workflows.node import Node
from greenroom.protocol.workflows.options import PhaseOptions, TaskOptions
from greenroom.protocol.workflows.patch import PhasePatch, TaskPatch, WorkflowPatch
from greenroom.protocol.workflows.phase import Phase
from greenroom.protocol.workflows.reader import Reading
from greenroom.protocol.workflows.reading import (
    check_definition,
    is_definition,
    parse_definition,
    parse_draft,
    parse_steps,
)
from greenroom.protocol.workflows.recovery import fork_snapshot
from greenroom.protocol.workflows.result import (
    Checkpoint,
    PersistenceFault,
    WorkflowResult,
    WorkflowSummary,
    summarize_workflow,
)
from greenroom.protocol.workflows.shared import Clock, Watcher
from greenroom.protocol.workflows.snapshot import (
    FailureOrigin,
    PhaseSnapshot,
    TaskError,
    TaskOutcome,
    TaskResult,
    TaskSnapshot,
    WorkflowSnapshot,
)
from greenroom.protocol.workflows.status import (
    TERMINAL,
    Override,
    Status,
    derive_phase_status,
    derive_workflow_status,
    is_terminal,
)
from greenroom.protocol.workflows.task import NO_MESSAGE, Task
from greenroom.protocol.workflows.workflow import Workflow

__all__ = [
    "AGENT_CATEGORY",
    "DEFAULT_PHASE_CONCURRENCY",
    "DEFAULT_RECOVERIES",
    "MAX_TIMER_MS",
    "NO_MESSAGE",
    "TERMINAL",
    "ActivityItem",
    "ActivityReport",
    "Authored",
    "Backoff",
    "Checkpoint",
    "Clock",
    "Edit",
    "Failure",
    "FailureOrigin",
    "Gate",
    "Node",
    "Override",
    "PersistenceFault",
    "Phase",
    "PhaseDefinition",
    "PhaseDraft",
    "PhaseOptions",
    "PhasePatch",
    "PhaseSnapshot",
    "Progress",
    "Reading",
    "Status",
    "Success",
    "Task",
    "TaskActivity",
    "TaskDefinition",
    "TaskDraft",
    "TaskError",
    "TaskOptions",
    "TaskOutcome",
    "TaskPatch",
    "TaskResult",
    "TaskSnapshot",
    "Watcher",
    "Workflow",
    "WorkflowDefinition",
    "WorkflowDraft",
    "WorkflowEvent",
    "WorkflowFunction",
    "WorkflowPatch",
    "WorkflowResult",
    "WorkflowSnapshot",
    "WorkflowStep",
    "WorkflowSteps",
    "WorkflowSummary",
    "author_workflow",
    "check_coherence",
    "check_definition",
    "complete_draft",
    "complete_phase_draft",
    "complete_task_draft",
    "compose_functions",
    "create_recovered_workflow",
    "create_restored_workflow",
    "create_workflow",
    "definition_hash",
    "derive_phase_status",
    "derive_workflow_status",
    "expand_steps",
    "fork_snapshot",
    "is_definition",
    "is_terminal",
    "parse_definition",
    "parse_draft",
    "parse_steps",
    "read_snapshot",
    "rest_before",
    "summarize_workflow",
]
