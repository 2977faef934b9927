"""What is recorded of calls, as far as the pipeline knows: a session's log fills this in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from greenroom.runtime.pipeline.approvals import ApprovalRequest, Decision
    from greenroom.runtime.pipeline.invocations import Invocation, Settled

__all__ = ["Recorder"]


class Recorder(Protocol):
    """Takes down what happens to calls. No method waits; what one raises ends the call, since nothing may happen that
    is not recorded.
    """

    def called(self, call: Invocation) -> Any:
        """The call begins. What comes back is handed to `ended`: the record's number, say."""

    def asked(self, request: ApprovalRequest) -> None:
        """Somebody is about to be asked for approval."""

    def decided(self, request: ApprovalRequest, decision: Decision) -> None:
        """What was decided. Once for each `asked`, also if nobody answered."""

    def ended(self, settled: Settled, called: Any) -> None:
        """The call is over. Once for each `called`, also if it was cancelled."""
