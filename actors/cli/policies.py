"""The policies on tool calls that a configuration asks for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection

from msgspec import UNSET

from greenroom.actors.approver import terminal_approver
from greenroom.actors.cli.naming import NamedTools
from greenroom.actors.cli.providers import Providers
from greenroom.actors.config import Config
from greenroom.actors.system import Runtime
from greenroom.runtime.bus import Next
from greenroom.runtime.pipeline.invocations import Invocation
from greenroom.runtime.pipeline.outcomes import Outcome
from greenroom.runtime.policies import (
    CheckedRecorder,
    RepeatReminder,
    approval_policy,
    measure_tools,
    retry_policy,
    spill_policy,
    timeout_policy,
)

__all__ = ["set_policies"]


def set_policies(runtime: Runtime, config: Config, providers: Providers, others: Collection[str] = ()) -> None:
    """Register them. Around a call stand, from without: figures, the deadline of all attempts, the attempts, the
    deadline of each. `others` are names of tools that are not in the runtime's registry."""
    policies, approvals, bus, pipeline = config.policies, config.approvals, runtime.bus, runtime.pipeline
    pipeline.max_parallel = config.agent_loop.max_parallel_tool_calls
    pipeline.approvals.mode = approvals.mode
    pipeline.approvals.delegated = approvals.delegated
    if approvals.tools:
        bus.on(pipeline.pre_execute, approval_policy(NamedTools(approvals.tools, runtime.tools, others)))
    if approvals.terminal is not None:
        timeout = UNSET if approvals.timeout is None else approvals.timeout or None
        bus.on(pipeline.approvals.event, terminal_approver(runtime.terminals, approvals.terminal, timeout=timeout))
    if policies.metrics is not None and providers.meter is not None:
        runtime.telemetry.provide(policies.metrics.meter, providers.meter)
        measure_tools(bus, runtime.telemetry.choose())
    around: list[Callable[[Invocation, Next[Outcome]], Awaitable[Outcome]]] = []
    if policies.retry is not None:
        retry = policies.retry
        around.append(
            retry_policy(frozenset(retry.tools), attempts=retry.attempts, delay=retry.delay, factor=retry.factor)
        )
    if policies.timeout is not None:
        bound = policies.timeout
        tools = None if bound.tools is None else NamedTools(bound.tools, runtime.tools, others)
        within = timeout_policy(bound.seconds, patience=bound.patience, tools=tools)
        around.insert(len(around) if bound.each_attempt else 0, within)
    for policy in around:
        bus.on(pipeline.execute, policy)
    if policies.repeats is not None:
        RepeatReminder(exclude=frozenset(policies.repeats.exclude)).follow(bus)
    if policies.spill is not None and providers.spill is not None:
        runtime.spill.provide(policies.spill.store, providers.spill)
        spill = spill_policy(
            runtime.spill.choose(), max_inline_bytes=policies.spill.max_inline_bytes, skip=policies.spill.skip
        )
        bus.on(pipeline.post_execute, spill, prepend=True)
    if policies.invariants:
        pipeline.recorder = CheckedRecorder(pipeline.recorder)
