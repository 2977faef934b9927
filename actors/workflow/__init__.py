"""Workflow runs: each an actor, its tasks beneath it, stored as it goes."""

from greenroom.actors.workflow.retry import Permanent, RetryAfter
from greenroom.actors.workflow.store import MemoryWorkflowStore, RecordingStore, RunRecord, StoredRun, WorkflowStore

__all__ = [
    "MemoryWorkflowStore",
    "Permanent",
    "RecordingStore",
    "RetryAfter",
    "RunRecord",
    "StoredRun",
    "WorkflowStore",
]
