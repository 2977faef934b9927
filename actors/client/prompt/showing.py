"""Showing forms to whoever answers, one at a time, and seeing each answer through."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeAlias, final

import trio

from greenroom.actors.client.prompt.copy import local_copy
from greenroom.actors.client.prompt.exchange import Place, exchange
from greenroom.actors.client.prompt.reply import read_reply
from greenroom.protocol import wire
from greenroom.protocol.errors import BridgeError, FormError
from greenroom.protocol.forms import Abandoned, FieldError, Form, FormSchema, Settled, Value, display_line

__all__ = ["Ask", "Showing"]

Ask: TypeAlias = Callable[[Form], Awaitable[object]]
"""Shows a form, fills it in and submits it, and then returns. A form that is not submitted by then is left to others.

It is cancelled when the form is no longer wanted.
"""

REPLY_TIMEOUT: Final = 30.0
"""Seconds until a posted answer must have its reply."""

_JSON: Final = (("Content-Type", "application/json"),)

_POSTS: Final = 3
"""How often an answer is posted that does not get through."""


@final
class _Prompt:
    """One form on its way: waiting, shown, or answered and being posted."""

    def __init__(self, id: str, schema: FormSchema) -> None:
        self.id = id
        self.schema = schema
        self.form: Form | None = None
        self.shown = trio.CancelScope()
        """Around the time in which somebody fills it in."""
        self.gone = False
        """It is not to be shown any more."""

    def give_up(self) -> None:
        """Take it from the screen, or do not show it again. An answer that is being posted still goes out."""
        self.gone = True
        if self.form is not None:
            self.form.destroy()
        self.shown.cancel()


@final
class Showing:
    """The forms that are to be answered. `ask` shows one; `report` is told what goes wrong."""

    def __init__(self, place: Place, ask: Ask, report: Callable[[Exception], object], *, delay: float) -> None:
        self._place = place
        self._ask = ask
        self._report = report
        self._delay = delay
        self._queue: dict[str, _Prompt] = {}
        self._active: _Prompt | None = None
        self._arrivals = trio.lowlevel.ParkingLot()

    def add(self, id: str, schema: FormSchema) -> None:
        """Show this form in its turn, unless it waits, is shown or is being posted already."""
        if id not in self:
            self._queue[id] = _Prompt(id, schema)
            self._arrivals.unpark()

    def __contains__(self, id: str) -> bool:
        return id in self._queue or (self._active is not None and self._active.id == id)

    def drop(self, id: str) -> None:
        """That form is no longer pending."""
        self._queue.pop(id, None)
        if self._active is not None and self._active.id == id:
            self._active.give_up()

    def clear(self) -> None:
        """No form is to be shown any more."""
        self._queue.clear()
        if self._active is not None:
            self._active.give_up()

    async def run(self) -> None:
        """Show what comes, for ever."""
        while True:
            while not self._queue:
                await self._arrivals.park()
            prompt = self._active = self._queue.pop(next(iter(self._queue)))
            try:
                await self._see_through(prompt)
            except Exception as error:
                self._report(error)
            finally:
                self._active = None

    async def _see_through(self, prompt: _Prompt) -> None:
        """Show the form until it is accepted, or nothing more can be done about it."""
        values: Mapping[str, Value] = {}
        errors: list[FieldError] | None = []
        while errors is not None and not prompt.gone:
            form = prompt.form = _opened(prompt.schema, values, errors)
            answered = await self._show(prompt, form)
            if answered is None:
                return
            values = answered
            errors = await self._post(prompt, values)

    async def _show(self, prompt: _Prompt, form: Form) -> Mapping[str, Value] | None:
        prompt.shown = trio.CancelScope()
        try:
            with prompt.shown:
                await self._ask(form)
        except FormError:
            if not isinstance(form.outcome, Abandoned):
                raise
        finally:
            form.destroy()
        return form.outcome.values if isinstance(form.outcome, Settled) else None

    async def _post(self, prompt: _Prompt, values: Mapping[str, Value]) -> list[FieldError] | None:
        body = wire.encode({"id": prompt.id, "values": values})
        for left in reversed(range(_POSTS)):
            try:
                async with exchange(self._place, "POST", _JSON, body, timeout=REPLY_TIMEOUT) as response:
                    reply = await response.whole(REPLY_TIMEOUT)
            except BridgeError as error:
                if error.code != "CONNECT":
                    raise
                # Posting it again is safe: at most one answer is accepted, and a second one is told `unknown`.
                self._report(error)
                if left:
                    await trio.sleep(self._delay)
                continue
            if not response.succeeded:
                self._report(refused(self._place, response.status))
            return read_reply(reply, [field.name for field in prompt.schema.fields])
        return None


def refused(place: Place, status: int) -> BridgeError:
    """What HTTP refused with a status."""
    url = place.address.url
    return BridgeError(
        "STATUS",
        f"The bridge at {url} refused with HTTP status {status}.",
        {"url": url, "status": status},
    )


def _opened(schema: FormSchema, values: Mapping[str, Value], errors: Sequence[FieldError]) -> Form:
    """A form of this side's own, from what was sent before and what was wrong with it."""
    form = Form(local_copy(schema), values=values)
    for error in errors:
        form.invalidate(error.field, display_line(error.message))
    return form
