"""Approvals: somebody is asked whether one very call may run, and whatever is not a yes is a no."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, TypeAlias, get_args
from uuid import uuid4

import trio
from msgspec import Struct

from greenroom.runtime.bus import Bus
from greenroom.runtime.lineage import current_lineage
from greenroom.runtime.pipeline.handling import Card
from greenroom.runtime.pipeline.invocations import Invocation
from greenroom.runtime.pipeline.outcomes import error_text, legible
from greenroom.runtime.pipeline.recorder import Recorder
from greenroom.runtime.scopes import Scope

__all__ = ["ApprovalMode", "ApprovalRequest", "Approvals", "Decision"]

ApprovalMode: TypeAlias = Literal["ask", "never"]
Kind: TypeAlias = Literal["allowed-once", "rejected", "cancelled", "unavailable"]


class Decision(Struct, frozen=True):
    """What became of a request: `allowed-once`, `rejected` (by a person, or by the rule of asking nobody), `cancelled`
    (the call was stopped, or the question dismissed) or `unavailable` (nobody decided). `text` is what was said to it,
    which the model is told either way.
    """

    kind: Kind
    text: str | None = None
    person: bool = False
    """Whether it was a person who decided."""

    def refusal(self) -> str:
        """What the model is told of a call that was not allowed."""
        if self.kind == "rejected":
            why = "a person refused it" if self.person else "it was refused by rule, not by a person"
        elif self.kind == "cancelled":
            why = "the request for approval was cancelled, and nobody refused it"
        else:
            why = "it needs approval and nobody decided, so that nobody refused it either"
        said = f": {legible(self.text).removesuffix('.')}" if self.text else ""
        return f"The call was not run: {why}{said}."


class ApprovalRequest(Struct, frozen=True, eq=False, kw_only=True):
    """One question: may this call run, with these arguments, this once?"""

    id: str
    call: Invocation
    card: Card
    """How the call is shown."""
    reason: str | None = None
    """Why it is asked."""


DELEGATED: Final = "an agent that works for another agent has nobody to ask; report to who gave you the work"
NOBODY: Final = (
    "nobody is there to ask, since no terminal was named for approvals (approvals.terminal in a configuration) and no"
    " program listens to approval/request"
)
NEVER: Final = "approval is not asked for here"


class Approvals:
    """Asks by the waterfall `approval/request`: the listener that decides does not call `next`, the others do."""

    def __init__(self, bus: Bus) -> None:
        self.event, self._dispatch = bus.declare(
            "approval/request", ApprovalRequest, mode="waterfall", result=Decision, scoped=_scope_of
        )
        self.mode: ApprovalMode = "ask"
        """`never` rejects what needs approval without asking anybody. What the record of a call says about that goes
        before it."""
        self.delegated = False
        """Whether somebody is asked on behalf of an agent that works beneath another one."""

    async def decide(
        self, call: Invocation, reason: str | None, card: Callable[[], Card], recorder: Recorder | None
    ) -> Decision:
        """Ask, and come to a decision whatever the listeners do; it waits as long as they do. Cancelled: recorded as
        `cancelled`, and raised."""
        request = ApprovalRequest(id=uuid4().hex, call=call, card=card(), reason=reason)
        if recorder is not None:
            recorder.asked(request)
        decision = Decision("cancelled")
        try:
            mode = None if recorder is None else recorder.approval_mode(call)
            decision = await self._decided(request, mode or self.mode)
        finally:
            if recorder is not None:
                recorder.decided(request, decision)
        return decision

    async def _decided(self, request: ApprovalRequest, mode: ApprovalMode) -> Decision:
        if mode == "never":
            return Decision("rejected", NEVER)
        if not self.delegated and current_lineage().delegated:
            return Decision("unavailable", DELEGATED)
        decision: object = None
        try:
            with trio.CancelScope() as scope:
                close = request.call.on_stop(scope.cancel)
                try:
                    decision = await self._dispatch(request, _nobody)
                finally:
                    close()
        except Exception as error:  # also what failed of a group of which the rest was cancelled
            decision = Decision("unavailable", error_text(error))
        if request.call.stopped:  # whatever came meanwhile came late
            return Decision("cancelled")
        if isinstance(decision, Decision) and decision.kind in get_args(Kind):
            return decision
        return Decision("unavailable", "what was answered is no decision")


async def _nobody() -> Decision:
    return Decision("unavailable", NOBODY)


def _scope_of(request: ApprovalRequest) -> Scope | None:
    return request.call.scope
