"""The bridge's routes, called without a network, and the parser of event streams."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import trio

from greenroom.actors.bridge import ByteStream, RouteRequest, RouteResponse, terminal_routes
from greenroom.actors.system import Runtime, open_runtime
from greenroom.protocol.bridge import TOKEN_HEADER
from greenroom.protocol.errors import BridgeError, GreenroomError
from greenroom.protocol.forms import Form
from greenroom.protocol.sse import SSEParser
from tests.clock import advance, settle
from tests.conformance.recorded import Placeholders, error

UNSET = msgspec.UNSET
_PLACEHOLDER = re.compile(r"\$[0-9]+")
_ID = re.compile("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


async def script(given: Any) -> Any:
    options = given.get("options", {})
    timeout = options["timeout"] / 1000 if "timeout" in options else 300.0
    async with open_runtime(timeout=timeout, wall_clock=lambda: 0.0) as runtime:
        async with trio.open_nursery() as nursery:
            play = _Play(runtime, nursery, options)
            steps = [await play.step(step) for step in given["steps"]]
            nursery.cancel_scope.cancel()
    return {"steps": steps}


class _Stream:
    """What came from one open stream since the last step."""

    def __init__(self, body: ByteStream) -> None:
        self.body = body
        self.text = ""
        self.ended = False

    async def read(self) -> None:
        async for piece in self.body:
            self.text += piece.decode()
        self.ended = True


class _Play:
    """What one script has opened and asked so far, and what it was told since its last step."""

    def __init__(self, runtime: Runtime, nursery: trio.Nursery, options: Any) -> None:
        self.terminals = runtime.terminals
        self.nursery = nursery
        self.ids = Placeholders()
        self.asks = 0
        self.settled: list[Any] = []
        self.opened = 0
        self.streams: dict[str, _Stream] = {}
        """By number, those that have not ended."""
        self.token = options.get("token")
        settings: dict[str, Any] = {
            "token": self.accepts if options.get("rotating") else options.get("token"),
            "keepalive": options["keepalive"] / 1000 if "keepalive" in options else UNSET,
            "limit": options.get("limit", UNSET),
        }
        given: dict[str, Any] = {name: value for name, value in settings.items() if value is not UNSET}
        self.get, self.post = terminal_routes(self.terminals, **given)
        self.terminals.emitter.on("pending", lambda record: self.ids.issue(record.id))

    def accepts(self, presented: str | None) -> bool:
        if self.token == "throw":
            raise RuntimeError("a validator that fails")
        return bool(presented == self.token)

    async def step(self, step: Any) -> Any:
        step = self.ids.read(step)
        self.settled.clear()
        told = await getattr(self, "do_" + step["do"])(step)
        await settle()
        if streams := self.news():
            told["streams"] = streams
        if self.settled:
            told["settled"] = sorted(self.settled, key=lambda entry: entry["ask"])
        return _wordless(self.ids.write(told))

    def news(self) -> Any:
        """What came on each stream, ids as placeholders; a stream that ended is told of once."""
        news: dict[str, Any] = {}
        for number, stream in list(self.streams.items()):
            if stream.text:
                news.setdefault(number, {})["bytes"] = _ID.sub(lambda id: self.ids.issue(id[0]), stream.text)
                stream.text = ""
            if stream.ended:
                news.setdefault(number, {})["ended"] = True
                del self.streams[number]
        return news

    # ---------------------------------------------------------------- on the manager

    async def do_add(self, step: Any) -> Any:
        self.terminals.add(step["name"], timeout=step["timeout"] / 1000 if "timeout" in step else UNSET)
        return {}

    async def do_remove(self, step: Any) -> Any:
        return {"removed": await self.terminals.remove(step["name"])}

    async def do_ask(self, step: Any) -> Any:
        number, self.asks = self.asks, self.asks + 1

        async def ask() -> None:
            try:
                values = await self.terminals.ask(step["from"], step["to"], Form(step["schema"]))
            except GreenroomError as raised:
                self.settled.append({"ask": number, **error(raised)})
            else:
                self.settled.append({"ask": number, "value": values})

        self.nursery.start_soon(ask)
        return {}

    async def do_answer(self, step: Any) -> Any:
        return {"success": (await self.terminals.answer(step["to"], step["id"], step["values"])).success}

    async def do_destroy(self, _step: Any) -> Any:
        await self.terminals.destroy()
        return {}

    async def do_advance(self, step: Any) -> Any:
        await advance(step["ms"])
        return {}

    async def do_token(self, step: Any) -> Any:
        self.token = step["value"]
        return {}

    # ---------------------------------------------------------------- over the wire

    async def do_connect(self, step: Any) -> Any:
        response = await self.get.handler(_request(step))
        if isinstance(response.body, bytes):
            return {"status": response.status, "body": response.body.decode()}
        number, self.opened = str(self.opened), self.opened + 1
        stream = self.streams[number] = _Stream(response.body)
        self.nursery.start_soon(stream.read)
        told = {"type": _header(response, "Content-Type"), "cache": _header(response, "Cache-Control")}
        return {"status": response.status, **told, "stream": int(number)}

    async def do_disconnect(self, step: Any) -> Any:
        if (stream := self.streams.get(str(step["stream"]))) is not None:
            stream.body.close()
        return {}

    async def do_post(self, step: Any) -> Any:
        response = await self.post.handler(_request(step, self.body(step)))
        assert isinstance(response.body, bytes)
        told = json.loads(response.body) if response.body else None
        return {"status": response.status, "body": told, "type": _header(response, "Content-Type")}

    def body(self, step: Any) -> bytes:
        if "hex" in step:
            return bytes.fromhex(step["hex"])
        text = json.dumps(step["json"]) if "json" in step else step["body"]
        text = _PLACEHOLDER.sub(lambda placeholder: self.ids.read(placeholder[0]), text)
        return re.sub("[\ud800-\udfff]", "\ufffd", text).encode()  # as a client's encoder does it


def _request(step: Any, body: bytes = b"") -> RouteRequest:
    headers = [("content-type", step.get("type", "application/json"))]
    if "token" in step:
        headers.append((TOKEN_HEADER, step["token"]))
    return RouteRequest(params={"name": step["name"]}, headers=tuple(headers), body=_Pieces(body))


class _Pieces:
    """A body that arrives byte by byte, but for a long one."""

    def __init__(self, body: bytes) -> None:
        size = 1 if len(body) < 1000 else len(body)
        self.pieces = iter([body[start : start + size] for start in range(0, len(body), size)])

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        for piece in self.pieces:
            return piece
        raise StopAsyncIteration


def _header(response: RouteResponse, name: str) -> str | None:
    return dict(response.headers).get(name)


def _wordless(told: Any) -> Any:
    """Without messages, which no record holds."""
    if isinstance(told, dict):
        return {name: _wordless(member) for name, member in told.items() if name != "message"}
    return [_wordless(entry) for entry in told] if isinstance(told, list) else told


def parse(given: Any) -> Any:
    parser = SSEParser(given["limit"])
    told: list[Any] = []
    try:
        for chunk in given["chunks"]:
            told.append([msgspec.to_builtins(event) for event in parser.parse(chunk)])
    except BridgeError as raised:
        told.append(error(raised))
    return told


OPS = {"wire.script": script, "sse.parse": parse}
