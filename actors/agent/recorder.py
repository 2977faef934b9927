"""The recorder of a pipeline that serves agents with sessions: what happens to a call goes into its agent's log."""

from __future__ import annotations

from typing import final

from greenroom.actors.agent.log import TurnLog
from greenroom.actors.agent.run import current_run
from greenroom.runtime.context import current_actor
from greenroom.runtime.pipeline.approvals import ApprovalMode, ApprovalRequest, Decision
from greenroom.runtime.pipeline.invocations import Invocation, Settled

__all__ = ["AgentRecorder"]


@final
class AgentRecorder:
    """Finds the log by the agent that calls, and writes there. A call by nobody, or by an agent without a session, is
    recorded nowhere. Every runtime has one in its pipeline.

    No tool is entered before the record of its call is where it outlives the process, if the session does.
    """

    def hears(self) -> bool:
        actor = current_actor()
        return actor is not None and _log_of(actor.ref.path) is not None

    def called(self, call: Invocation) -> TurnLog | None:
        log = _log_of(call.agent)
        return log if log is not None and log.called(call) is not None else None

    def approval_mode(self, call: Invocation) -> ApprovalMode | None:
        return None if (log := _log_of(call.agent)) is None else log.approval_mode

    async def saved(self, call: Invocation) -> None:
        if (log := _log_of(call.agent)) is not None:
            await log.saved()

    def asked(self, request: ApprovalRequest) -> None:
        if (log := _log_of(request.call.agent)) is not None:
            log.asked(request)

    def decided(self, request: ApprovalRequest, decision: Decision) -> None:
        if (log := _log_of(request.call.agent)) is not None:
            log.decided(request, decision)

    def ended(self, settled: Settled, called: TurnLog | None) -> None:
        if called is not None:
            called.ended(settled.call, settled.outcome)


def _log_of(path: str | None) -> TurnLog | None:
    """The log of the agent at that path, in one of whose runs the code is."""
    run = current_run()
    if run is None or run.settled or run.log.session is None or run.agent.ref.path != path:
        return None
    return run.log
