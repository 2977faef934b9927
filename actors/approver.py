"""Approvals at a terminal: whoever answers its forms decides whether a tool call may run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from msgspec import UNSET, UnsetType

from greenroom.actors.terminal import TerminalManager
from greenroom.protocol.errors import FormError, TerminalError
from greenroom.protocol.forms import Form
from greenroom.runtime.bus import Next
from greenroom.runtime.pipeline.approvals import ApprovalRequest, Decision
from greenroom.runtime.pipeline.outcomes import compact

__all__ = ["approval_form", "terminal_approver"]

DISMISSED: Final = ("stopped", "withdrawn")


def terminal_approver(
    terminals: TerminalManager, name: str, *, from_: str | None = None, timeout: float | UnsetType | None = UNSET
) -> Callable[[ApprovalRequest, Next[Decision]], Awaitable[Decision]]:
    """A listener to `approval/request` that asks the terminal of that name, in the name of `from_`::

        runtime.bus.on("approval/request", terminal_approver(runtime.terminals, "reviewer"))

    The form is as any other: it is answered on the page, by the console, by a program. `timeout` is in seconds (None:
    no limit), the terminal's own where it is not given. A form that nobody answered in time, or that could not be asked
    (there is no such terminal, it waits for the caller), is `unavailable`; one that was dismissed is `cancelled`. If
    the call is stopped or cancelled, its form leaves every screen.

    It decides, and passes nothing on to other listeners.
    """

    async def approve(request: ApprovalRequest, next: Next[Decision]) -> Decision:
        try:
            values = await terminals.ask(from_, name, Form(approval_form(request)), timeout=timeout)
        except (TerminalError, FormError) as error:
            reason = error.context.get("reason")
            if reason == "timeout":
                return Decision("unavailable", f"{name} was asked, and the time to answer ran out")
            return Decision("cancelled" if reason in DISMISSED else "unavailable", error.message)
        text = values.get("text") or None
        return Decision("allowed-once" if values.get("allow") is True else "rejected", text, person=True)

    return approve


def approval_form(request: ApprovalRequest) -> dict[str, Any]:
    """The form that a person is asked: the call as its tool presents it, with the arguments in full."""
    who = request.call.agent or "The program"
    why = f" {request.reason}" if request.reason else ""
    arguments = compact(request.call.arguments)
    shown = arguments if request.card.body == arguments else f"{request.card.body}\n{arguments}"
    return {
        "name": "approval",
        "label": f"May {request.call.name} run?",
        "help": f"{who} calls {request.card.title} (call {request.call.call_id}).{why}\n{shown}",
        "fields": [
            {"control": "confirm", "name": "allow", "label": "Allow it, this once", "rule": {"required": True}},
            {"control": "text", "name": "text", "label": "What the caller should know"},
        ],
    }
