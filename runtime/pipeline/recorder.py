"""What is recorded of calls, as far as the pipeline knows: a session's log fills this in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from greenroom.runtime.pipeline.approvals import ApprovalMode, ApprovalRequest, Decision
    from greenroom.runtime.pipeline.invocations import Invocation, Settled

__all__ = ["Recorder"]


class Recorder(Protocol):
    """Takes down what happens to calls. No method waits but `saved`; what one raises ends the call, since nothing may
    happen that is not recorded.
    """

    def hears(self) -> bool:
        """Whether it would take down a call that is made here and now. If not, and if there is no policy, the call is
        just run."""
        ...

    def called(self, call: Invocation) -> Any:
        """The call begins. What comes back is handed to `ended`: the record's number, say."""

    def approval_mode(self, call: Invocation) -> ApprovalMode | None:
        """What the record says about asking for approval of this call, in place of what holds for the whole runtime.
        None: nothing."""

    async def saved(self, call: Invocation) -> None:
        """The tool is about to be entered: wait until the call's record outlives the process, if it is to. What this
        raises becomes the outcome, and the tool is not run."""

    def asked(self, request: ApprovalRequest) -> None:
        """Somebody is about to be asked for approval."""

    def decided(self, request: ApprovalRequest, decision: Decision) -> None:
        """What was decided. Once for each `asked`, also if nobody answered."""

    def ended(self, settled: Settled, called: Any) -> None:
        """The call is over. Once for each `called`, also if it was cancelled."""
