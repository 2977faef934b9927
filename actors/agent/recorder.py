"""The recorder of a pipeline that serves agents with sessions: what happens to a call goes into its agent's log."""

from __future__ import annotations

from typing import final

from greenroom.actors.agent.log import TurnLog
from greenroom.actors.agent.run import current_run
from greenroom.runtime.bus import Next
from greenroom.runtime.context import as_nobody
from greenroom.runtime.pipeline.approvals import ApprovalRequest, Decision
from greenroom.runtime.pipeline.invocations import Invocation, Settled
from greenroom.runtime.pipeline.outcomes import Outcome
from greenroom.runtime.tree import Tree

__all__ = ["AgentRecorder", "record_calls"]


@final
class AgentRecorder:
    """Finds the log by the agent that calls, and writes there. A call by nobody, or by an agent without a session, is
    recorded nowhere.

    An agent with a session puts one into its runtime's pipeline, unless there is a recorder already, which then has to
    pass on what it is told: `runtime.pipeline.recorder = CheckedRecorder(AgentRecorder())`.
    """

    def called(self, call: Invocation) -> TurnLog | None:
        log = _log_of(call)
        return log if log is not None and log.called(call) is not None else None

    def asked(self, request: ApprovalRequest) -> None:
        if (log := _log_of(request.call)) is not None:
            log.asked(request)

    def decided(self, request: ApprovalRequest, decision: Decision) -> None:
        if (log := _log_of(request.call)) is not None:
            log.decided(request, decision)

    def ended(self, settled: Settled, called: TurnLog | None) -> None:
        if called is not None:
            called.ended(settled.call, settled.outcome)


def record_calls(tree: Tree) -> None:
    """Let calls of agents with sessions be recorded from now on, and no tool be entered before the record of its call
    is where it outlives the process."""
    pipeline = tree.pipeline
    if pipeline.recorder is None:
        pipeline.recorder = AgentRecorder()
    if not any(listener.call is _saved for listener in pipeline.execute.listeners):
        as_nobody(tree.bus.on, pipeline.execute, _saved, prepend=True)


async def _saved(call: Invocation, next: Next[Outcome]) -> Outcome:
    if (log := _log_of(call)) is not None:
        await log.saved()
    return await next()


def _log_of(call: Invocation) -> TurnLog | None:
    run = current_run()
    if run is None or run.settled or run.agent.ref.path != call.agent:
        return None
    return run.log
