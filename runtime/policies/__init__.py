"""Policies that come with the pipeline. Each is a module of its own, needs nothing but public names, and is registered
by whoever wants it::

    runtime.bus.on("tools/execute", retry_policy(["fetch"]))
    runtime.bus.on("tools/execute", timeout_policy(60.0))
    runtime.bus.on("tools/post-execute", spill_policy(LocalSpill(), max_inline_bytes=16_384), prepend=True)

The one that is registered first is outermost: here the minute is for each attempt.
"""

from greenroom.runtime.policies.approving import approval_policy
from greenroom.runtime.policies.invariants import CheckedRecorder
from greenroom.runtime.policies.metrics import Meter, measure_tools
from greenroom.runtime.policies.observation import observation_policy
from greenroom.runtime.policies.repeats import RepeatReminder
from greenroom.runtime.policies.retry import retry_policy
from greenroom.runtime.policies.spill import SpillStore, spill_policy
from greenroom.runtime.policies.spill_files import LocalSpill
from greenroom.runtime.policies.timeout import timeout_policy

__all__ = [
    "CheckedRecorder",
    "LocalSpill",
    "Meter",
    "RepeatReminder",
    "SpillStore",
    "approval_policy",
    "measure_tools",
    "observation_policy",
    "retry_policy",
    "spill_policy",
    "timeout_policy",
]
