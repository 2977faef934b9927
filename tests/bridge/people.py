"""Whoever answers at a client, and a server that answers whatever a test likes."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

import h11
import trio

from greenroom.actors.client.prompt import PromptClient, open_prompt_client
from greenroom.protocol.forms import Form

__all__ = ["ACCEPTED", "Person", "Scripted", "Watch", "frame", "http", "stream"]


class Watch:
    """Waits until something has become true; whatever could make it true calls `pulse`."""

    def __init__(self) -> None:
        self._changed = trio.Event()

    def pulse(self, *_: object) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def until(self, condition: Callable[[], object], seconds: float = 5) -> None:
        with trio.fail_after(seconds):
            while not condition():
                await self._changed.wait()


class Person:
    """Sees forms, and answers them one after another."""

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.shown: list[Form] = []
        self.events: list[tuple[Any, ...]] = []
        self._answers, self._given = trio.open_memory_channel[Any](100)

    async def ask(self, form: Form) -> None:
        self.shown.append(form)
        self.watch.pulse()
        answer = await self._given.receive()
        if isinstance(answer, BaseException):
            raise answer
        if answer is not None:
            form.fill(answer)
            form.submit()

    async def until(self, condition: Callable[[], object], seconds: float = 5) -> None:
        """Wait until it is true, of this person or of a server with the same watch."""
        await self.watch.until(condition, seconds)

    def answer(self, answer: Mapping[str, Any] | Exception | None) -> None:
        """Fill the next form with this and submit it; or raise; or (None) turn away from it."""
        self._answers.send_nowait(answer)

    def heard(self, name: str) -> list[Any]:
        """What was told with each event of that name."""
        return [told[0] if told else None for event, *told in self.events if event == name]

    @property
    def errors(self) -> list[str]:
        """The codes of the errors that were told, `type: text` for those without one."""
        return [getattr(error, "code", f"{type(error).__name__}: {error}") for error in self.heard("error")]

    def listeners(self) -> dict[str, Callable[..., None]]:
        def listener(name: str) -> Callable[..., None]:
            def hear(*told: Any) -> None:
                self.events.append((name, *told))
                self.watch.pulse()

            return hear

        return {name: listener(name) for name in ("connect", "disconnect", "expire", "answer", "error")}

    @asynccontextmanager
    async def client(self, url: str, terminal: str = "ops", **options: Any) -> AsyncGenerator[PromptClient]:
        """A client that shows its forms to this person, connecting."""
        settings: dict[str, Any] = {"delay": 0, "on": self.listeners(), **options}
        async with open_prompt_client(url, terminal, self.ask, **settings) as client:
            client.connect()
            yield client


# -------------------------------------------------------------------- a server without manners


def http(status: int, body: bytes | str = b"", kind: str = "application/json") -> bytes:
    """A whole response."""
    content = body.encode() if isinstance(body, str) else body
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n\r\n"
    return head.encode() + content


def stream(*frames: bytes) -> bytes:
    """The head of an event stream, and its first frames."""
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + b"".join(frames)


def frame(id: str, schema: Any, /, **members: Any) -> bytes:
    """A `pending` frame."""
    record = {"id": id, "schema": schema, "status": "pending", "time": 0, "from": "a", "to": "ops", **members}
    return f"event: pending\nid: {id}\ndata: {json.dumps(record)}\n\n".encode()


ACCEPTED = http(200, '{"success":true,"value":{}}')


class Scripted:
    """Answers each GET with the next of `streams`, and each POST with the next of `replies`.

    A stream stays open afterwards unless None follows it in its list; None in the place of a reply breaks off.
    """

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.streams: deque[list[bytes | None]] = deque()
        self.replies: deque[bytes | None] = deque()
        self.requests: list[h11.Request] = []
        self.posted: list[Any] = []
        self.open: list[trio.abc.Stream] = []
        """Streams of events that have not ended."""
        self.url = ""

    @property
    def gets(self) -> int:
        return sum(request.method == b"GET" for request in self.requests)

    async def say(self, *frames: bytes) -> None:
        """Send more on the stream that was opened last."""
        await self.open[-1].send_all(b"".join(frames))

    async def serve(self, connection: trio.abc.Stream) -> None:
        async with connection:
            with suppress(trio.BrokenResourceError):
                await self._serve(connection)

    async def _serve(self, connection: trio.abc.Stream) -> None:
        request, body = await _read(connection)
        self.requests.append(request)
        if request.method == b"POST":
            self.posted.append(json.loads(body))
            self.watch.pulse()
            if (reply := self.replies.popleft()) is not None:
                await connection.send_all(reply)
            return
        self.watch.pulse()
        for piece in self.streams.popleft() if self.streams else [stream()]:
            if piece is None:
                return
            await connection.send_all(piece)
        self.open.append(connection)
        self.watch.pulse()
        while await connection.receive_some():
            pass
        self.open.remove(connection)
        self.watch.pulse()


async def _read(connection: trio.abc.Stream) -> tuple[h11.Request, bytes]:
    protocol = h11.Connection(h11.SERVER)
    request: h11.Request | None = None
    body = b""
    while True:
        event = protocol.next_event()
        if event is h11.NEED_DATA:
            protocol.receive_data(bytes(await connection.receive_some()))
        elif isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.Data):
            body += event.data
        else:
            if request is None:
                raise trio.BrokenResourceError
            return request, body
