"""Following the event stream of one terminal, for as long as somebody wants to be asked."""

from __future__ import annotations

import codecs
import logging
import ssl
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final, final

import trio

from greenroom.actors.client.prompt.exchange import Exchange, Place, exchange
from greenroom.actors.client.prompt.place import find_terminal, token_headers
from greenroom.actors.client.prompt.showing import Ask, Showing, refused
from greenroom.protocol.bridge import BUFFER, read_envelope, read_id
from greenroom.protocol.emitter import Emitter, Listener
from greenroom.protocol.errors import BridgeError, TerminalError
from greenroom.protocol.forms import parse_form
from greenroom.protocol.sse import SSEEvent, SSEParser

__all__ = ["Ask", "PromptClient", "open_prompt_client"]

EVENTS: Final = frozenset({"connect", "disconnect", "expire", "answer", "error"})

CONNECT_TIMEOUT: Final = 10.0
"""Seconds until a stream must have begun."""

_STREAM: Final = (("Accept", "text/event-stream"),)

_FINAL: Final = (401, 404)
"""Statuses that trying again does not change: the token is refused, or there is no such terminal."""

logger = logging.getLogger("greenroom.client")


@final
class PromptClient:
    """Made by `open_prompt_client`. It does nothing until `connect`, and then shows the terminal's forms one at a time.

    Events of its `emitter`: `connect()` and `disconnect()` of the stream, `expire(id)` of a form that is no longer
    pending (also one that was withdrawn), `answer(id)` of one that somebody answered, `error(exception)`: a BridgeError
    of what went wrong on the way, or whatever the showing of a form raised. Errors are logged too.
    """

    def __init__(
        self,
        place: Place,
        ask: Ask,
        *,
        reconnect: bool,
        delay: float,
        silence: float | None,
        limit: int,
        on: Mapping[str, Listener] | None,
    ) -> None:
        self.emitter = Emitter(EVENTS, on=on, error=self._log)
        self._place = place
        self._reconnect = reconnect
        self._delay = delay
        self._silence = silence
        self._limit = limit
        self._showing = Showing(place, ask, self._report, delay=delay)
        self._wanted = False
        self._connected = False
        self._destroyed = False
        self._following: trio.CancelScope | None = None
        self._switch = trio.lowlevel.ParkingLot()
        self._running = trio.CancelScope()

    @property
    def connected(self) -> bool:
        """A stream is open."""
        return self._connected

    def connect(self) -> None:
        """Begin to follow the stream, unless it is followed; again after a disconnect, or after it was given up.

        Raises TerminalError DESTROYED after `destroy`.
        """
        if self._destroyed:
            raise TerminalError("DESTROYED", "This client was destroyed, for good; open another one.")
        self._wanted = True
        self._switch.unpark()

    def disconnect(self) -> None:
        """End the stream, and do not connect again until `connect`. A form that is shown or waits goes on."""
        self._wanted = False
        if self._following is not None:
            self._following.cancel()
        self._end_stream()

    def destroy(self) -> None:
        """Disconnect, take away the form that is shown, and do nothing any more, for good; idempotent.

        An answer that is being posted may have been accepted or not.
        """
        self._destroyed = True
        self.disconnect()
        self._showing.clear()
        self._running.cancel()
        self.emitter.close()

    async def run(self) -> None:
        """Do what is asked of it until it is destroyed. Called once, by `open_prompt_client`."""
        with self._running:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._showing.run)
                while True:
                    while not self._wanted:
                        await self._switch.park()
                    with trio.CancelScope() as self._following:
                        await self._follow()
                    self._following = None

    # ---------------------------------------------------------------- the stream

    async def _follow(self) -> None:
        """Read one stream after another, for as long as it is wanted."""
        while self._wanted:
            try:
                async with exchange(
                    self._place, "GET", _STREAM, query="?events=all", timeout=CONNECT_TIMEOUT
                ) as response:
                    await self._read(response)
            except BridgeError as error:
                if not self._reconnect or error.context.get("status") in _FINAL:
                    self._wanted = False  # first: whoever hears of the error may want it again
                self._end_stream()
                self._report(error)
            else:
                self._wanted = self._wanted and self._reconnect
                self._end_stream()
            if self._wanted:
                await trio.sleep(self._delay)

    async def _read(self, response: Exchange) -> None:
        if not response.succeeded or response.bodiless:
            raise refused(self._place, response.status)
        self._connected = True
        self.emitter.emit("connect")
        parser = SSEParser(self._limit)
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        while piece := await response.piece(self._silence):
            for event in parser.parse(decode(piece)):
                if self._wanted:
                    self._hear(event)

    def _end_stream(self) -> None:
        if self._connected:
            self._connected = False
            self.emitter.emit("disconnect")

    # ---------------------------------------------------------------- what is heard

    def _hear(self, event: SSEEvent) -> None:
        match event.event:
            case "pending":
                self._hear_pending(event.data)
            case "expire" | "answer" as name:
                if (id := read_id(event.data)) is not None:
                    self._showing.drop(id)
                    self.emitter.emit(name, id)
            case "shutdown":
                self.disconnect()
                self._showing.clear()
            case _:
                pass  # of a later version of the bridge

    def _hear_pending(self, data: str) -> None:
        envelope = read_envelope(data)
        if envelope is None or envelope.id in self._showing:
            return
        schema = parse_form(envelope.schema)
        if schema is None:
            self._report(
                BridgeError(
                    "SCHEMA",
                    "A form has a schema that this client cannot show; it is left to others.",
                    {"id": envelope.id},
                )
            )
        else:
            self._showing.add(envelope.id, schema)

    def _report(self, error: Exception) -> None:
        logger.info("%s: %s", self._place.address.url, error)
        self.emitter.emit("error", error)

    def _log(self, error: Exception, event: str) -> None:
        logger.error("%s: a listener of %r failed", self._place.address.url, event, exc_info=error)


@asynccontextmanager
async def open_prompt_client(
    url: str,
    terminal: str,
    ask: Ask,
    *,
    token: str | None = None,
    reconnect: bool = True,
    delay: float = 2.0,
    keepalive: float | None = 15.0,
    limit: int = BUFFER,
    path: str = "/terminals/:name",
    tls: ssl.SSLContext | None = None,
    on: Mapping[str, Listener] | None = None,
) -> AsyncGenerator[PromptClient]:
    """A client of the terminal of that name for the length of the block, at whose end it is destroyed.

    ::

        async def ask(form):
            form.fill("go", True)
            form.submit()

        async with open_prompt_client("http://127.0.0.1:8642", "ops", ask) as client:
            client.connect()
            await trio.sleep_forever()

    `ask` shows a form and submits it; its patterns and what else only the server knows are checked there, and a refusal
    shows the form again, with what was answered and what is wrong with it. `delay` is how many seconds to wait before
    connecting again, for ever unless `reconnect` is False; a token that is refused (401) and a terminal that does not
    exist (404) end it. `keepalive` is the seconds between two signs of life of the server: a stream that is silent for
    twice as long is given up (None: never). `limit` is how many characters of an event are held. `path` is where the
    bridge is beneath `url`. `tls` says whom to trust.

    Raises ConfigError: URL, NAME for a name that no URL can hold, TOKEN for a token that no header can.
    """
    address = find_terminal(url, terminal, path)
    client = PromptClient(
        Place(address, token_headers(token, address), tls),
        ask,
        reconnect=reconnect,
        delay=delay,
        silence=None if keepalive is None else 2 * keepalive,
        limit=limit,
        on=on,
    )
    raised: Exception | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.run)
        try:
            yield client
        except Exception as error:  # raised again outside, where it is not wrapped in a group
            raised = error
        finally:
            client.destroy()
    if raised is not None:
        raise raised
