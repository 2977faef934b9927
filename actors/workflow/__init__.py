"""Workflow runs: each an actor, its tasks beneath it, stored as it goes."""

from greenroom.actors.workflow.controller import TaskController
from greenroom.actors.workflow.events import RunEvents
from greenroom.actors.workflow.journal import RUN_TABLES, JournalWorkflowStore
from greenroom.actors.workflow.manager import Recovered, WorkflowManager
from greenroom.actors.workflow.options import Bounds, BuildOptions, RunOptions
from greenroom.actors.workflow.persistence import WorkflowPersistence
from greenroom.actors.workflow.retry import Permanent, RetryAfter
from greenroom.actors.workflow.run import Run
from greenroom.actors.workflow.runner import WorkflowRunner
from greenroom.actors.workflow.store import MemoryWorkflowStore, RecordingStore, RunRecord, StoredRun, WorkflowStore

__all__ = [
    "RUN_TABLES",
    "Bounds",
    "BuildOptions",
    "JournalWorkflowStore",
    "MemoryWorkflowStore",
    "Permanent",
    "RecordingStore",
    "Recovered",
    "RetryAfter",
    "Run",
    "RunEvents",
    "RunOptions",
    "RunRecord",
    "StoredRun",
    "TaskController",
    "WorkflowManager",
    "WorkflowPersistence",
    "WorkflowRunner",
    "WorkflowStore",
]
