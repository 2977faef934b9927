"""The client of a gateway: calls, and terminals to attach to, over one WebSocket."""

from __future__ import annotations

import logging
import random
import re
import secrets
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from math import inf
from typing import Any, Generic, TypeVar, cast, final

import msgspec
import trio

from greenroom.actors.client.attachment import AttachedTerminal
from greenroom.actors.client.dialing import open_socket, parse_url
from greenroom.actors.client.socket import ABNORMAL, NORMAL, PROTOCOL_ERROR, TOO_BIG, FrameSocket, SocketLimits
from greenroom.protocol.errors import ConfigError, GreenroomError, RpcError
from greenroom.protocol.forms import FormSchema, serialize_form
from greenroom.protocol.rpc import (
    ANSWER,
    ASK,
    ATTACH,
    BYE,
    CALL_TOOL,
    CANCEL,
    DETACH,
    HELLO,
    LIST_TERMINALS,
    LIST_TOOLS,
    NOTIFICATIONS,
    PENDING,
    RELEASE,
    TREE,
    WITHDRAW,
    AnswerForm,
    AskTerminal,
    Attachment,
    AttachTerminal,
    Bye,
    CallTool,
    CancelCall,
    DetachTerminal,
    Hello,
    Keyed,
    ListTerminals,
    ListTools,
    Method,
    ReadPending,
    ReadTree,
    ReleaseAsk,
    TerminalEvent,
    TerminalInfo,
    Welcome,
    WithdrawForm,
    error_of,
    frames,
)
from greenroom.protocol.terminals import AnswerResult, PendingForm
from greenroom.protocol.tools import ToolDefinition, ToolResult
from greenroom.protocol.tree import TreeSnapshot

__all__ = ["LIMITS", "Client", "Reconnect", "connect"]

R = TypeVar("R")

logger = logging.getLogger("greenroom.client")

_CLIENT = re.compile("[A-Za-z0-9_-]{8,64}")

LIMITS = SocketLimits(message_size=64 << 20)
"""A client takes larger messages than it may send: a terminal's forms come in one."""


class Reconnect(msgspec.Struct, frozen=True, kw_only=True):
    """How a client comes back when its connection is lost. Times are in seconds."""

    first: float = 0.1
    """How long it waits before the first attempt; each further wait is twice as long, less a random part."""
    longest: float = 10.0
    give_up_after: float | None = None
    """After so long without a connection everything that waits fails. None: it tries for ever."""


@final
class _Pending(Generic[R]):
    """A call that waits for its answer."""

    __slots__ = ("_failure", "_read", "_value", "answered", "method", "params", "sent", "settled")

    def __init__(
        self,
        method: str,
        params: object,
        read: Callable[[msgspec.Raw], R],
        answered: Callable[[R], object] | None,
    ) -> None:
        self.method = method
        self.params = params
        self._read = read
        self._value: R | None = None
        self._failure: GreenroomError | None = None
        self.answered = answered
        """Called with the result, before anything that came after it is looked at."""
        self.sent = False
        """It may have reached the server."""
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
    server too.

    A lost connection is made anew, and calls wait for it. What may change something is sent with a key, so that it is
    carried out once: when it comes again, the server gives the outcome that it has recorded, or lets the call go on. If
    it knows nothing of it any more, the call fails with RpcError OUTCOME: it may have happened. Attached terminals are
    attached again. When the client gives up, or was told not to reconnect, or a message was larger than its receiver
    takes (`code` 1009), every call under way and every later one fails with RpcError CLOSED (`code` and `reason` as the
    server told them).

    What the server refuses is raised as the error that it is there (TerminalError, TerminalDeadlock, FormError,
    ActorError), and as RpcError where it is about the call itself.
    """

    def __init__(
        self, socket: FrameSocket, redial: Callable[[], Awaitable[FrameSocket]] | None = None, id: str | None = None
    ) -> None:
        self._socket: FrameSocket | None = socket
        """None while there is no connection."""
        self._redial = redial
        """How to come by another one, however long that takes. None: there will be no other."""
        self._id = id or secrets.token_urlsafe(24)
        """What this client calls itself at the server."""
        self._visit: str | None = None
        """What the server calls the time in which it knows this client, once it has said so on this connection."""
        self._message_size: int | None = None
        """How many bytes of a message the server takes, once it has said so."""
        self._last: tuple[int, str] = (ABNORMAL, "")
        """How the last connection ended."""
        self._closing = False
        self._abandoned: dict[frames.RequestId, _Pending[Any]] = {}
        """Calls that were cancelled while there was no connection, so that the server does not know it yet."""
        self._calls = 0
        self._pending: dict[frames.RequestId, _Pending[Any]] = {}
        self._own: set[frames.RequestId] = set()
        """Calls with which it takes up a new connection: the next one has others."""
        self._attached: dict[str, list[AttachedTerminal]] = {}
        self._ended = False
        self._away = trio.CancelScope()
        """Around each attempt to connect anew."""

    @property
    def open(self) -> bool:
        """It has not ended for good: calls go out, now or when there is a connection again."""
        return not self._ended

    @property
    def connected(self) -> bool:
        """There is a connection, as far as this side knows."""
        return self._socket is not None and not self._ended

    # ---------------------------------------------------------------- calling

    async def call(self, method: str, params: object, result_type: type[R]) -> R:
        """Call any method: `params` is a struct or a mapping, the result is read as `result_type`.

        Raises what the server refuses it with, and RpcError: CLOSED, or PARAMS if the params cannot be sent as JSON or
        are more than the server takes, or RESULT if the answer is no `result_type`. Cancelled: the call is cancelled at
        the server, which may have carried it out already.
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
        if isinstance(params, Keyed) and self._redial is not None:
            params = msgspec.structs.replace(params, key=secrets.token_urlsafe(16), visit=self._visit)
        try:
            frame = frames.request(id, method, params)
        except (TypeError, ValueError, RecursionError) as problem:
            raise RpcError(
                "PARAMS", f"The params of {method} are no JSON values: {problem}.", {"method": method}
            ) from problem
        if self._message_size is not None and len(frame) > self._message_size:
            raise RpcError(
                "PARAMS",
                f"This call of {method} takes {len(frame)} bytes, and the gateway takes {self._message_size}.",
                {"method": method, "size": len(frame), "most": self._message_size},
            )
        pending: _Pending[R] = _Pending(method, params, read, answered)
        self._pending[id] = pending
        if self._socket is not None:
            self._socket.send(frame)
            pending.sent = True
        try:
            await pending.settled.wait()
        finally:
            if self._pending.pop(id, None) is not None:
                if self._socket is not None:
                    self._notify(CANCEL, CancelCall(id=id))
                elif isinstance(params, Keyed) and pending.sent:
                    self._abandoned[id] = pending
        return pending.result()

    def _notify(self, method: Method[Any, Any], params: object) -> None:
        if self._socket is not None:
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
        durable: str | None = None,
    ) -> dict[str, Any]:
        """Ask a terminal a form and wait for its values. `from_` is the name in which it is asked.

        `timeout` is in seconds, None for no limit; where it is not given, the terminal's own holds. Custom rules cannot
        cross: they are left out. Raises TerminalError (TARGET, LIMIT, EXPIRE), TerminalDeadlock, and FormError: SCHEMA,
        or ABANDONED with the `reason` if nobody answered. Cancelled: the form is withdrawn.

        With `durable`, a name for this question that the client chooses, form and answer are recorded and outlive the
        server: asking the same again with it waits on or gives the recorded answer, until `release`. It is this
        client's own, so one that is to find it after its own restart connects with the same `id`. Cancelled, such an
        ask stays where it is. Raises TerminalError DURABLE (there is no journal; or `fields` that cannot be recorded)
        and TAKEN (it names another question), and JournalError if it cannot be recorded.
        """
        document = serialize_form(schema) if isinstance(schema, FormSchema) else dict(schema)
        params = AskTerminal(
            to=to,
            schema=document,
            from_=from_,
            timeout=_milliseconds(timeout) if isinstance(timeout, int | float) else timeout,
            durable=durable,
        )
        return (await self._invoke(ASK, params)).values

    async def answer(self, terminal: str, id: str, values: Mapping[str, Any]) -> AnswerResult:
        """Answer a form: all of the values are accepted, or the form stays as it is and the result says why."""
        return await self._invoke(ANSWER, AnswerForm(terminal=terminal, id=id, values=dict(values)))

    async def release(self, durable: str) -> bool:
        """Forget what this client asked with that `durable`, and its answer; withdraw it if it is still pending.

        False: there is no such ask. Raises TerminalError DURABLE, and JournalError: it is not forgotten then.
        """
        return (await self._invoke(RELEASE, ReleaseAsk(durable=durable))).released

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
            await terminal.wait_whole()
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
        """Begin to end for good: what was sent before still arrives. Leaving the block of `connect` does it."""
        self._closing = True
        self._away.cancel()
        if self._socket is not None:
            self._socket.end(NORMAL)

    async def run(self) -> None:
        """Serve one connection after another; in the end everything that waits fails. Called once, by `connect`."""
        try:
            await self._serve()
            while self._redial is not None and not self._closing and self._last[0] != TOO_BIG:
                with trio.CancelScope() as self._away:
                    self._socket = await self._redial()
                if self._socket is None:
                    return
                self._come_back(self._socket)
                await self._serve()
        except RpcError as error:  # it was refused, or it has tried for long enough
            logger.warning("%s", error.message)
        finally:
            self._fail_all()

    async def _serve(self) -> None:
        socket = self._socket
        if socket is None:
            return
        try:
            async with trio.open_nursery() as nursery:
                socket.start(nursery)
                await socket.read(self._receive)
                nursery.cancel_scope.cancel()
        finally:
            self._socket = self._visit = None
            self._last = socket.code or ABNORMAL, socket.reason
            if self._closing or self._redial is None:
                self._fail_all()
            for_good = self._redial is not None and socket.code in (None, NORMAL)  # cancelled, or closed
            await socket.close([frames.request(None, BYE.name, Bye())] if for_good else ())

    async def hello(self) -> None:
        """Let the server know which client this is. Called by `connect`, before anything else is sent."""
        await self._call(HELLO.name, Hello(client=self._id), HELLO.read, self._be_welcome)

    def _be_welcome(self, welcome: Welcome) -> None:
        self._visit, self._message_size = welcome.visit, welcome.message_size

    def _come_back(self, socket: FrameSocket) -> None:
        """Take up everything on a new connection: who this is, what it looks at, and what it waits for."""
        logger.info("The connection to the gateway is back.")
        for id in self._own:
            self._pending.pop(id, None)
        self._calls += 1
        hello, greeting = self._calls, Hello(client=self._id)
        self._own = {hello}
        socket.send(frames.request(hello, HELLO.name, greeting))
        for name, terminals in self._attached.items():
            self._calls += 1
            again = [terminal for terminal in terminals if terminal.begun]
            if again:
                call = _Pending(ATTACH.name, AttachTerminal(terminal=name), ATTACH.read, _each(again))
                self._pending[self._calls] = call
                self._own.add(self._calls)
        abandoned, self._abandoned = self._abandoned, {}
        for id, pending in (*self._pending.items(), *abandoned.items()):
            params = pending.params
            if isinstance(params, Keyed) and pending.sent:
                params = msgspec.structs.replace(params, again=True)
            socket.send(frames.request(id, pending.method, params))
            pending.sent = True
        for id in abandoned:
            self._notify(CANCEL, CancelCall(id=id))
        self._pending[hello] = _Pending(HELLO.name, greeting, HELLO.read, self._be_welcome)

    def _receive(self, text: str | bytes) -> None:
        try:
            messages = frames.read_messages(text if isinstance(text, str) else "")
        except RpcError as error:
            logger.warning("%s", error.message)
            if self._socket is not None:
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
        code, reason = self._last
        if code == TOO_BIG:
            message = f"A message was larger than its receiver takes, and would be so again: {reason or code}."
            return RpcError("CLOSED", message, {"code": code, "reason": reason})
        why = f"code {code}" + (f", {reason}" if reason else "")
        message = f"The connection to the gateway has ended ({why}); connect again."
        return RpcError("CLOSED", message, {"code": code, "reason": reason})


def _each(terminals: list[AttachedTerminal]) -> Callable[[Attachment], None]:
    def resume(attachment: Attachment) -> None:
        for terminal in terminals:
            terminal.resume(attachment)

    return resume


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
    reconnect: Reconnect | bool = True,
    limits: SocketLimits = LIMITS,
    id: str | None = None,
) -> AsyncGenerator[Client, None]:
    """A client for the length of the block; `url` is a gateway's, such as `ws://127.0.0.1:8080/rpc`.

    ::

        async with connect(gateway.url) as client:
            values = await client.ask("ops", {"fields": [{"control": "confirm", "name": "go"}]}, timeout=60)

    `token` is presented where the gateway asks for one; over `ws://` it can be read on the way, so use `wss://` to
    other machines. `tls` says whom to trust there (default: whom this machine trusts).

    A connection that is lost within the block is made anew, as `reconnect` says; with False the block goes on and its
    calls fail.

    `id` is what the client calls itself, 8 to 64 letters, digits, - and _ (default: something random). Another process
    that comes with the same one and the same token is the same client: it finds its durable asks. Who guesses it, too.

    Raises ConfigError URL, TOKEN or CLIENT, and RpcError CONNECT if there is no gateway or it refuses (`status`).
    Leaving the block closes the connection, within `limits.close_timeout` seconds; forms that are still being asked
    through it are withdrawn, but for durable ones.
    """
    address = parse_url(url)
    if token is not None and not (token.isascii() and token.isprintable() and token == token.strip()):
        raise ConfigError(
            "TOKEN", "The token holds what no HTTP header can: use printable ASCII, without spaces around."
        )
    if id is not None and not _CLIENT.fullmatch(id):
        raise ConfigError("CLIENT", f"A client's id is 8 to 64 letters, digits, - and _, not {id[:80]!r}.")
    raised: Exception | None = None
    async with trio.open_nursery() as nursery:
        try:
            dial = partial(open_socket, nursery, address, limits, token, tls)
            rule = Reconnect() if reconnect is True else reconnect or None
            client = Client(await dial(), None if rule is None else partial(_redial, dial, rule), id)
            nursery.start_soon(client.run)
            try:
                if rule is not None or id is not None:
                    await client.hello()
                yield client
            finally:
                client.close()
        except Exception as error:  # raised again outside, where it is not wrapped in a group
            raised = error
    if raised is not None:
        raise raised


async def _redial(dial: Callable[[], Awaitable[FrameSocket]], rule: Reconnect) -> FrameSocket:
    """Try until there is a connection. Raises the last RpcError CONNECT when it gives up, or is refused for good."""
    wait = rule.first
    give_up_at = inf if rule.give_up_after is None else trio.current_time() + rule.give_up_after
    while True:
        await trio.sleep(wait * (1 + random.random()) / 2)
        try:
            return await dial()
        except RpcError as error:
            if error.context.get("status") in (401, 403) or trio.current_time() >= give_up_at:
                raise
        wait = min(2 * wait, rule.longest)
