"""The client of a gateway: calls, and terminals to attach to, over one WebSocket."""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from math import inf
from typing import Any, Generic, TypeVar, cast, final

import msgspec
import trio

from greenroom.actors.client.attachment import AttachedTerminal
from greenroom.actors.client.dialing import open_socket, parse_url
from greenroom.actors.client.socket import ABNORMAL, NORMAL, PROTOCOL_ERROR, FrameSocket, SocketLimits
from greenroom.protocol.errors import ConfigError, GreenroomError, RpcError
from greenroom.protocol.forms import FormSchema, serialize_form
from greenroom.protocol.rpc import (
    ANSWER,
    ASK,
    ATTACH,
    CALL_TOOL,
    CANCEL,
    DETACH,
    LIST_TERMINALS,
    LIST_TOOLS,
    NOTIFICATIONS,
    PENDING,
    TREE,
    WITHDRAW,
    AnswerForm,
    AskTerminal,
    AttachTerminal,
    CallTool,
    CancelCall,
    DetachTerminal,
    ListTerminals,
    ListTools,
    Method,
    ReadPending,
    ReadTree,
    TerminalEvent,
    TerminalInfo,
    WithdrawForm,
    error_of,
    frames,
)
from greenroom.protocol.terminals import AnswerResult, PendingForm
from greenroom.protocol.tools import ToolDefinition, ToolResult
from greenroom.protocol.tree import TreeSnapshot

__all__ = ["LIMITS", "Client", "connect"]

R = TypeVar("R")

logger = logging.getLogger("greenroom.client")

LIMITS = SocketLimits(message_size=64 << 20)
"""A client takes larger messages than it may send: a terminal's forms come in one."""


@final
class _Pending(Generic[R]):
    """A call that waits for its answer."""

    __slots__ = ("_failure", "_read", "_value", "answered", "settled")

    def __init__(self, read: Callable[[msgspec.Raw], R], answered: Callable[[R], object] | None) -> None:
        self._read = read
        self._value: R | None = None
        self._failure: GreenroomError | None = None
        self.answered = answered
        """Called with the result, before anything that came after it is looked at."""
        self.settled = trio.Event()

    def settle(self, message: frames.Message) -> None:
        if not isinstance(message.error, msgspec.UnsetType):
            self.fail(error_of(message.error))
            return
        try:
            if isinstance(message.result, msgspec.UnsetType):
                raise msgspec.ValidationError("neither result nor error")
            self._value = self._read(message.result)
        except msgspec.DecodeError as problem:
            self.fail(RpcError("RESULT", f"The server's answer has another shape than this client knows: {problem}."))
            return
        if self.answered is not None:
            self.answered(self._value)
        self.settled.set()

    def fail(self, error: GreenroomError) -> None:
        self._failure = error
        self.settled.set()

    def result(self) -> R:
        if self._failure is not None:
            raise self._failure
        return cast("R", self._value)  # settled without a failure: it was read


@final
class Client:
    """A connection to a gateway, made by `connect`. Any number of tasks may call at the same time.

    No call has a deadline of its own; put one around it with `trio.fail_after`. A cancelled call is cancelled at the
    server too. When the connection ends, every call under way and every later one fails with RpcError CLOSED (`code`
    and `reason` as the server told them).

    What the server refuses is raised as the error that it is there (TerminalError, TerminalDeadlock, FormError,
    ActorError), and as RpcError where it is about the call itself.
    """

    def __init__(self, socket: FrameSocket) -> None:
        self._socket = socket
        self._calls = 0
        self._pending: dict[frames.RequestId, _Pending[Any]] = {}
        self._attached: dict[str, list[AttachedTerminal]] = {}
        self._ended = False

    @property
    def open(self) -> bool:
        """The connection has not ended, as far as this side knows."""
        return not self._ended

    # ---------------------------------------------------------------- calling

    async def call(self, method: str, params: object, result_type: type[R]) -> R:
        """Call any method: `params` is a struct or a mapping, the result is read as `result_type`.

        Raises what the server refuses it with, and RpcError: CLOSED, or PARAMS if the params cannot be sent as JSON, or
        RESULT if the answer is no `result_type`. Cancelled: the call is cancelled at the server, which may have carried
        it out already.
        """
        decoder: msgspec.json.Decoder[R] = msgspec.json.Decoder(result_type)
        return await self._call(method, params, decoder.decode)

    async def _invoke(self, method: Method[Any, R], params: object) -> R:
        return await self._call(method.name, params, method.read)

    async def _call(
        self,
        method: str,
        params: object,
        read: Callable[[msgspec.Raw], R],
        answered: Callable[[R], object] | None = None,
    ) -> R:
        await trio.lowlevel.checkpoint_if_cancelled()
        if self._ended:
            raise self._closed()
        self._calls += 1
        id = self._calls
        try:
            frame = frames.request(id, method, params)
        except (TypeError, ValueError, RecursionError) as problem:
            raise RpcError(
                "PARAMS", f"The params of {method} are no JSON values: {problem}.", {"method": method}
            ) from problem
        pending: _Pending[R] = _Pending(read, answered)
        self._pending[id] = pending
        self._socket.send(frame)
        try:
            await pending.settled.wait()
        finally:
            if self._pending.pop(id, None) is not None:
                self._notify(CANCEL, CancelCall(id=id))
        return pending.result()

    def _notify(self, method: Method[Any, Any], params: object) -> None:
        self._socket.send(frames.request(None, method.name, params))

    # ---------------------------------------------------------------- terminals

    async def terminals(self) -> tuple[TerminalInfo, ...]:
        """Which terminals there are."""
        return (await self._invoke(LIST_TERMINALS, ListTerminals())).terminals

    async def pending(self, terminal: str | None = None) -> tuple[PendingForm, ...]:
        """The forms that are parked now, at one terminal or at all. Raises TerminalError TARGET."""
        return (await self._invoke(PENDING, ReadPending(terminal=terminal))).pending

    async def ask(
        self,
        to: str,
        schema: FormSchema | Mapping[str, Any],
        *,
        from_: str | None = None,
        timeout: float | msgspec.UnsetType | None = msgspec.UNSET,
    ) -> dict[str, Any]:
        """Ask a terminal a form and wait for its values. `from_` is the name in which it is asked.

        `timeout` is in seconds, None for no limit; where it is not given, the terminal's own holds. Custom rules cannot
        cross: they are left out. Raises TerminalError (TARGET, LIMIT, EXPIRE), TerminalDeadlock, and FormError: SCHEMA,
        or ABANDONED with the `reason` if nobody answered. Cancelled: the form is withdrawn.
        """
        document = serialize_form(schema) if isinstance(schema, FormSchema) else dict(schema)
        params = AskTerminal(
            to=to,
            schema=document,
            from_=from_,
            timeout=_milliseconds(timeout) if isinstance(timeout, int | float) else timeout,
        )
        return (await self._invoke(ASK, params)).values

    async def answer(self, terminal: str, id: str, values: Mapping[str, Any]) -> AnswerResult:
        """Answer a form: all of the values are accepted, or the form stays as it is and the result says why."""
        return await self._invoke(ANSWER, AnswerForm(terminal=terminal, id=id, values=dict(values)))

    async def withdraw(self, terminal: str, id: str) -> bool:
        """Take a form back in its asker's name. False: it is not pending. Raises TerminalError TARGET."""
        return (await self._invoke(WITHDRAW, WithdrawForm(terminal=terminal, id=id))).withdrawn

    @asynccontextmanager
    async def attach(self, name: str, *, buffer: int = 1024) -> AsyncGenerator[AttachedTerminal, None]:
        """See what is pending at a terminal and what happens there, for the length of the block.

        `buffer` is how many events may wait to be taken. Raises TerminalError TARGET, naming the terminals there are.
        """
        terminal = AttachedTerminal(self, name, buffer)
        self._attached.setdefault(name, []).append(terminal)
        try:
            await self._call(ATTACH.name, AttachTerminal(terminal=name), ATTACH.read, terminal.begin)
            yield terminal
        finally:
            terminal.end(None)
            others = self._attached[name]
            others.remove(terminal)
            if not others:
                del self._attached[name]
                self._notify(DETACH, DetachTerminal(terminal=name))

    # ---------------------------------------------------------------- tools and the tree

    async def tools(self) -> tuple[ToolDefinition, ...]:
        """Which tools can be called."""
        return (await self._invoke(LIST_TOOLS, ListTools())).tools

    async def call_tool(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Call a tool; how it went, a failure included, is the result."""
        return await self._invoke(CALL_TOOL, CallTool(name=name, arguments=dict(arguments)))

    async def tree(self) -> TreeSnapshot:
        """Every actor of the runtime, and who waits for whom."""
        return await self._invoke(TREE, ReadTree())

    # ---------------------------------------------------------------- the connection

    def close(self) -> None:
        """Begin to end the connection: what was sent before still arrives. Leaving the block of `connect` does it."""
        self._socket.end(NORMAL)

    async def run(self) -> None:
        """Serve the connection until it ends; then everything that waits for it fails. Called once, by `connect`."""
        try:
            async with trio.open_nursery() as nursery:
                self._socket.start(nursery)
                await self._socket.read(self._receive)
                nursery.cancel_scope.cancel()
        finally:
            self._fail_all()
            await self._socket.close()

    def _receive(self, text: str | bytes) -> None:
        try:
            messages = frames.read_messages(text if isinstance(text, str) else "")
        except RpcError as error:
            logger.warning("%s", error.message)
            self._socket.end(PROTOCOL_ERROR, "no JSON-RPC")
            return
        for message in messages:
            if message.method:
                self._hear(message)
            elif message.id is None and not isinstance(message.error, msgspec.UnsetType):
                logger.warning("The gateway could not read a message: %s", message.error.message)
            elif message.id is not None and (pending := self._pending.pop(message.id, None)) is not None:
                pending.settle(message)

    def _hear(self, message: frames.Message) -> None:
        notification = NOTIFICATIONS.get(message.method)
        if notification is None:
            return  # of a later version of the gateway
        try:
            params = msgspec.json.decode(message.params, type=notification.params)
        except msgspec.DecodeError:
            logger.warning("A notification %s has another shape than this client knows; it is dropped.", message.method)
            return
        if isinstance(params, TerminalEvent):
            for terminal in self._attached.get(params.terminal, ()):
                terminal.take(params)

    def _fail_all(self) -> None:
        """Every call under way, and every later one, ends with CLOSED, and so do the events of attached terminals."""
        self._ended = True
        pending, self._pending = self._pending, {}
        for call in pending.values():
            call.fail(self._closed())
        for terminals in self._attached.values():
            for terminal in terminals:
                terminal.end(self._closed())

    def _closed(self) -> RpcError:
        code, reason = self._socket.code or ABNORMAL, self._socket.reason
        why = f"code {code}" + (f", {reason}" if reason else "")
        message = f"The connection to the gateway has ended ({why}); connect again."
        return RpcError("CLOSED", message, {"code": code, "reason": reason})


def _milliseconds(seconds: float) -> float | None:
    if not seconds >= 0:
        raise ValueError(f"A timeout is seconds from 0 on, or None for no limit, not {seconds}")
    return None if seconds == inf else seconds * 1000


@asynccontextmanager
async def connect(
    url: str,
    *,
    token: str | None = None,
    tls: ssl.SSLContext | None = None,
    limits: SocketLimits = LIMITS,
) -> AsyncGenerator[Client, None]:
    """A client for the length of the block; `url` is a gateway's, such as `ws://127.0.0.1:8080/rpc`.

    ::

        async with connect(gateway.url) as client:
            values = await client.ask("ops", {"fields": [{"control": "confirm", "name": "go"}]}, timeout=60)

    `token` is presented where the gateway asks for one; over `ws://` it can be read on the way, so use `wss://` to
    other machines. `tls` says whom to trust there (default: whom this machine trusts).

    Raises ConfigError URL or TOKEN, and RpcError CONNECT if there is no gateway or it refuses (`status`). If the
    connection ends within the block, the block goes on, and its calls fail. Leaving the block closes the connection,
    within `limits.close_timeout` seconds; forms that are still being asked through it are withdrawn.
    """
    address = parse_url(url)
    if token is not None and not (token.isascii() and token.isprintable() and token == token.strip()):
        raise ConfigError(
            "TOKEN", "The token holds what no HTTP header can: use printable ASCII, without spaces around."
        )
    raised: Exception | None = None
    async with trio.open_nursery() as nursery:
        try:
            client = Client(await open_socket(nursery, address, limits, token, tls))
            nursery.start_soon(client.run)
            try:
                yield client
            finally:
                client.close()
        except Exception as error:  # raised again outside, where it is not wrapped in a group
            raised = error
    if raised is not None:
        raise raised
