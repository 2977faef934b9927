"""What must be true of every record of calls, checked as it is made."""

from __future__ import annotations

from typing import Any, final

from greenroom.protocol.errors import InvariantError
from greenroom.runtime.pipeline.approvals import ApprovalMode, ApprovalRequest, Decision
from greenroom.runtime.pipeline.invocations import Invocation, Settled
from greenroom.runtime.pipeline.outcomes import ToolOk
from greenroom.runtime.pipeline.recorder import Recorder
from greenroom.runtime.pipeline.snapshot import snapshot

__all__ = ["CheckedRecorder"]


@final
class CheckedRecorder:
    """A recorder that passes on what it is told to another one, and raises `InvariantError` where it cannot be so: a
    call that begins or ends twice or ends without a beginning, a question without its one decision, a result that is
    not frozen. For tests and trials: `runtime.pipeline.recorder = CheckedRecorder(recorder)`.
    """

    def __init__(self, inner: Recorder | None = None) -> None:
        self._inner = inner
        self._open: set[Invocation] = set()
        self._asked: dict[str, Invocation] = {}

    @property
    def open(self) -> int:
        """How many calls have begun and not ended."""
        return len(self._open)

    def hears(self) -> bool:
        return True

    def called(self, call: Invocation) -> Any:
        _check(call not in self._open, call, "it has begun twice")
        number = None if self._inner is None else self._inner.called(call)
        self._open.add(call)
        return number

    def approval_mode(self, call: Invocation) -> ApprovalMode | None:
        return None if self._inner is None else self._inner.approval_mode(call)

    async def saved(self, call: Invocation) -> None:
        _check(call in self._open, call, "its tool is entered before it has begun")
        if self._inner is not None:
            await self._inner.saved(call)

    def asked(self, request: ApprovalRequest) -> None:
        _check(request.call in self._open, request.call, "it was asked about before it had begun")
        _check(request.call not in self._asked.values(), request.call, "it was asked about twice")
        if self._inner is not None:
            self._inner.asked(request)
        self._asked[request.id] = request.call

    def decided(self, request: ApprovalRequest, decision: Decision) -> None:
        _check(self._asked.get(request.id) is request.call, request.call, "it was decided on without a question")
        del self._asked[request.id]
        if self._inner is not None:
            self._inner.decided(request, decision)

    def ended(self, settled: Settled, called: Any) -> None:
        call, outcome = settled.call, settled.outcome
        _check(call in self._open, call, "it has ended twice, or without a beginning")
        self._open.remove(call)
        _check(call not in self._asked.values(), call, "it has ended while a question about it was open")
        _check(outcome.content is not None, call, "its result has no text")
        if isinstance(outcome, ToolOk):
            _check(snapshot(outcome.value) == outcome.value, call, "its value is no snapshot")
            _check(type(outcome.value) not in (dict, list), call, "its value is not frozen")
        if self._inner is not None:
            self._inner.ended(settled, called)


def _check(holds: bool, call: Invocation, otherwise: str) -> None:
    if not holds:
        raise InvariantError(
            "INVARIANT", f"the call {call.call_id} of {call.name}: {otherwise}", {"call": call.call_id}
        )
