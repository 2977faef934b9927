"""Waiting for a form's outcome, whoever brings it about."""

from __future__ import annotations

from typing import Any

import trio

from greenroom.protocol.errors import FormError
from greenroom.protocol.forms import Form, Outcome, Settled

__all__ = ["answer_of"]


async def answer_of(form: Form) -> dict[str, Any]:
    """The values that the form was submitted with, waiting for them without a deadline. Any number of tasks may wait.

    Raises FormError ABANDONED if the form is destroyed instead. Cancelled: the form is as it was, nothing is left of
    the wait.
    """
    outcomes: list[Outcome] = []
    ended = trio.Event()

    def end(outcome: Outcome) -> None:
        outcomes.append(outcome)
        ended.set()

    forget = form.on_end(end)
    try:
        await ended.wait()
    finally:
        forget()
    outcome = outcomes[0]
    if isinstance(outcome, Settled):
        return dict(outcome.values)
    raise FormError("ABANDONED", "The form was destroyed before it was submitted; ask anew with another form.")
