"""Approvals at a terminal: whoever answers its forms decides whether a tool call may run."""

from __future__ import annotations

import json
import logging
import re
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

logger = logging.getLogger("greenroom.approvals")

_UNSEEN: Final = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""What Unicode says is not to be seen (the property `Default_Ignorable_Code_Point`), though Python calls much of it
printable, and the blank pattern of Braille."""

DISMISSED: Final = ("stopped", "withdrawn")


def terminal_approver(
    terminals: TerminalManager, name: str, *, from_: str | None = None, timeout: float | UnsetType | None = UNSET
) -> Callable[[ApprovalRequest, Next[Decision]], Awaitable[Decision]]:
    """A listener to `approval/request` that asks the terminal of that name, in the name of `from_`, or else in
    that of the agent that calls::

        runtime.bus.on("approval/request", terminal_approver(runtime.terminals, "reviewer"))

    The form is as any other: it is answered on the page, by the console, by a program. `timeout` is in seconds (None:
    no limit), the terminal's own where it is not given. A form that nobody answered in time, or that could not be asked
    (it waits for the caller), is `unavailable`; one that was dismissed is `cancelled`. If the call is stopped or
    cancelled, its form leaves every screen.

    The terminal may be added later. Where there is none of that name when a call needs approval, the call is refused
    with the names that there are, and a warning of `greenroom.approvals` says so too.

    It decides, and passes nothing on to other listeners.
    """

    async def approve(request: ApprovalRequest, next: Next[Decision]) -> Decision:
        asker = request.call.agent if from_ is None else from_
        try:
            values = await terminals.ask(asker and _visible(asker), name, Form(approval_form(request)), timeout=timeout)
        except (TerminalError, FormError) as error:
            reason = error.context.get("reason")
            if error.code == "TARGET":
                logger.warning(
                    "Nobody was asked whether %s may run, so it may not: %s", _visible(request.call.name), error.message
                )
                return Decision("unavailable", f"{name} was to be asked. {error.message}")
            if reason == "timeout":
                return Decision("unavailable", f"{name} was asked, and the time to answer ran out")
            return Decision("cancelled" if reason in DISMISSED else "unavailable", error.message)
        text = values.get("text") or None
        return Decision("allowed-once" if values.get("allow") is True else "rejected", text, person=True)

    return approve


def approval_form(request: ApprovalRequest) -> dict[str, Any]:
    """The form that a person is asked: the call as its tool presents it, with the arguments in full.

    What no eye sees is spelled as JSON spells it, since most of this is the model's. Screens drop such characters, a
    console all that stands between two of them, and some turn the order of what is read (Unicode report 36, section 3).
    """
    call, card = request.call, request.card
    name, title, id = _visible(call.name), _visible(card.title), _visible(call.call_id)
    caller = _visible(call.agent or "The program")
    why = f" {_visible_lines(request.reason)}" if request.reason else ""
    arguments = compact(call.arguments)
    shown = _visible(arguments) if card.body == arguments else f"{_visible_lines(card.body)}\n{_visible(arguments)}"
    return {
        "name": "approval",
        "label": f"May {name} run?",
        "help": f"{caller} calls {title} (call {id}).{why}\n{shown}",
        "fields": [
            {"control": "confirm", "name": "allow", "label": "Allow it, this once", "rule": {"required": True}},
            {"control": "text", "name": "text", "label": "What the caller should know"},
        ],
    }


def _visible(text: str) -> str:
    if text.isprintable() and not _UNSEEN.search(text):
        return text
    return "".join(each if each.isprintable() and not _UNSEEN.match(each) else json.dumps(each)[1:-1] for each in text)


def _visible_lines(text: str) -> str:
    return "\n".join(_visible(line) for line in text.split("\n"))
