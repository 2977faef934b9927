"""The calls of one connection: requests in, answers out in order of completion, each call a task of its own."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVarTuple, final

import msgspec
import trio

from greenroom.actors.client.socket import ABNORMAL, GOING_AWAY, POLICY_VIOLATION, FrameSocket
from greenroom.actors.gateway.access import Caller
from greenroom.actors.gateway.attachments import Attachments
from greenroom.actors.gateway.calls import Batch, Call
from greenroom.actors.gateway.handlers import LARGEST, Handler, too_large
from greenroom.actors.gateway.methods import HANDLERS, no_method
from greenroom.actors.gateway.remote import endpoint_handler, find_method, reachable, told
from greenroom.actors.gateway.streams import Streams
from greenroom.protocol.errors import GreenroomError, RemoteError, RpcError
from greenroom.protocol.rpc import (
    METHODS,
    SHUTDOWN,
    Attachment,
    Farewell,
    Keyed,
    RequestId,
    Shutdown,
    Welcome,
    failure_of,
    frames,
)

if TYPE_CHECKING:
    from greenroom.actors.gateway.connection import Front
    from greenroom.actors.gateway.visitor import Visitor
    from greenroom.actors.terminal import Terminal

__all__ = ["Session"]

Ts = TypeVarTuple("Ts")

logger = logging.getLogger("greenroom.gateway")


@final
class Session:
    """Serves one WebSocket until it ends; then cancels the calls that came over it.

    Plain handlers run at once, in the order in which their requests came; async ones each in a task of their own, a
    limited number at a time.
    """

    _nursery: trio.Nursery
    """Where calls run beside the socket's own tasks, while it serves."""

    def __init__(self, name: str, socket: FrameSocket, front: Front, caller: Caller) -> None:
        self.name = name
        self.services = front.services
        self.caller = caller
        most = None if front.access.open else front.limits.subscriptions
        self.attachments = Attachments(front.services.terminals, socket.send, caller.usage, most)
        self.streams = Streams(
            self,
            caller.usage,
            most=front.limits.streams,
            shared=most,
            patience=front.limits.stream_patience,
        )
        self._front = front
        self._socket = socket
        self._most_calls = front.limits.calls
        self._visitor: Visitor | None = None
        self._for_good = False
        """The client said that it will not come back when this connection has ended."""
        self._calls: dict[Call, None] = {}
        """Those under way, oldest first."""
        self._by_id: dict[RequestId, Call] = {}
        self._showing: dict[str, trio.CancelScope] = {}
        """Around the tasks that show the forms of a terminal, by its name."""

    async def serve(self) -> None:
        """Serve until the peer or the server ends it. On every way out no call, subscription or socket is left.

        A cancelled one tells its peer that the server goes away, and answers what it had not answered yet.
        """
        socket = self._socket
        try:
            async with trio.open_nursery() as self._nursery:
                socket.start(self._nursery)
                if not self._front.access.open:
                    self._nursery.start_soon(self._watch_token)
                try:
                    await socket.read(self._receive, paced=True)
                finally:  # before the writer has ended, which may hang in a send
                    self.attachments.close()
                    if self._visitor is not None:
                        self._visitor.leave(self, for_good=self._for_good)
                # What the calls answer in ending is sent by `close`, as all that then waits.
                self._nursery.cancel_scope.cancel()
        finally:
            self.shut_down()
            await socket.close(self._last_words() if socket.code == GOING_AWAY else ())
            logger.debug("%s ended: %d %s", self.name, socket.code or ABNORMAL, socket.reason)

    async def _watch_token(self) -> None:
        """End with the token that opened it: at the latest one heartbeat after it expired or was revoked."""
        while True:
            await trio.sleep(self._front.limits.socket.ping_interval)
            if not self._front.access.admits(self.caller):
                self._socket.end(POLICY_VIOLATION, "the token is not valid any more")
                return

    def shut_down(self) -> None:
        """Begin to end because the server does. Does nothing once it ends otherwise."""
        self._socket.end(GOING_AWAY, "the server stops")

    def cancel(self, id: RequestId) -> bool:
        """Cancel the call of that id. False: there is none under way."""
        call = self._by_id.get(id)
        if call is not None:
            call.scope.cancel()
        return call is not None

    def hello(self, id: str) -> Welcome:
        """Let the calls that come with a key be those of that client. Raises RpcError HELLO."""
        visitor, resumed = self._front.visitor(id, self.caller)
        if self._visitor not in (None, visitor):
            raise RpcError("HELLO", "This connection has said hello as another client; open one for each.")
        self._visitor = visitor
        visitor.come(self)
        self._for_good = False
        limits = self._front.limits
        return Welcome(
            resumed=resumed,
            visit=visitor.visit,
            grace=round(limits.grace * 1000),
            kept=round(limits.kept_for * 1000),
            message_size=limits.socket.message_size,
        )

    def bye(self) -> Farewell:
        """Let the client end with this connection, if it has no other one."""
        self._for_good = self._visitor is not None
        return Farewell(known=self._for_good)

    def owner(self) -> str:
        """Whose its durable asks are: those of the client, come with this token. Raises RpcError HELLO."""
        if self._visitor is None:
            raise RpcError("HELLO", "A durable ask is a client's: say rpc/hello first, on each connection.")
        return f"{self._visitor.ref.path} {self.caller.name}"

    def attach(self, terminal: Terminal) -> Attachment:
        """See `Attachments.attach`. Forms that are too many for one message follow one by one as the peer takes them.

        A terminal that is attached to anew is shown from its beginning.
        """
        attachment = self.attachments.attach(terminal)
        if terminal.name in self._showing:
            self._showing.pop(terminal.name).cancel()
        if not isinstance(attachment.following, msgspec.UnsetType):
            scope = self._showing[terminal.name] = trio.CancelScope()
            self._nursery.start_soon(self._show, terminal.name, attachment.following, scope)
        return attachment

    async def _show(self, terminal: str, ids: tuple[str, ...], scope: trio.CancelScope) -> None:
        with scope:
            for id in ids:
                await self._socket.drain()
                self.attachments.show(terminal, id)
        if self._showing.get(terminal) is scope:
            del self._showing[terminal]

    async def tell(self, frame: bytes) -> None:
        """Send what belongs to a call under way, once the peer has taken all that was sent before."""
        await self._socket.drain()
        self._socket.send(frame)

    def say(self, frame: bytes) -> None:
        """Send a message that nobody has asked for, behind those that wait."""
        self._socket.send(frame)

    def start_soon(self, function: Callable[[*Ts], Awaitable[object]], *args: *Ts, name: str) -> None:
        """Start a task that ends with the connection."""
        self._nursery.start_soon(function, *args, name=name)

    # ---------------------------------------------------------------- requests

    def _receive(self, message: str | bytes) -> None:
        frame = frames.read_frame(message)
        batch = Batch() if frame.batch else None
        for entry in frame.entries:
            if isinstance(entry, frames.Malformed):
                self.refuse(Call(self, "", entry.id, batch, answered=True), entry.error)
            else:
                self._begin(entry, batch)
        if batch is not None and (answers := batch.seal()) is not None:
            self._socket.send(answers, asked=True)

    def _begin(self, request: frames.Request, batch: Batch | None) -> None:
        answered = not isinstance(request.id, msgspec.UnsetType)
        id = None if isinstance(request.id, msgspec.UnsetType) else request.id
        call = Call(self, request.method, id, batch, answered=answered)
        try:
            if self.caller.token is not None:
                self._spend()
            if id is not None and id in self._by_id:
                raise RpcError("REQUEST", "A call of this id is still under way; give each its own.", {"id": id})
            handler, params = self._means(call, request)
            if isinstance(params, Keyed) and params.key is not None:
                self._run_kept(call, handler, params)
            elif handler.waits:
                self._run_soon(call, handler, params)
            else:
                self.answer(call, handler.function(call, params))
        except Exception as error:
            self.refuse(call, error)

    def _means(self, call: Call, request: frames.Request) -> tuple[Handler, msgspec.Struct]:
        """What carries a request out, and its params."""
        name = request.method
        if (method := METHODS.get(name)) is not None:
            return HANDLERS[name], frames.read_params(name, request.params, method.params)
        remote, grants = self.services.remote, self.caller.grants
        try:
            endpoint = find_method(remote, name, grants)
        except RemoteError as error:
            if error.code == "gateway/service-unavailable":
                raise no_method(name, reachable(remote.methods(), grants)) from None
            call.endpoint = told(name)
            raise
        call.endpoint = name
        return endpoint_handler(endpoint), endpoint.read(request.params, endpoint.contract.keyed)

    def _spend(self) -> None:
        rate = self._front.limits.requests
        if not self.caller.usage.requests.spend(trio.current_time(), rate, 5 * rate):
            raise RpcError("BUSY", f"This token may send {rate:g} requests a second; send fewer.", {"rate": rate})

    def _run_soon(self, call: Call, handler: Handler, params: msgspec.Struct) -> None:
        """A call of this connection's, which ends with it."""
        self._enter(call)
        self._nursery.start_soon(self._run, call, handler, params, name=f"{self.name} {call.method}")

    def _enter(self, call: Call) -> None:
        """Count a call among those under way. Raises RpcError BUSY."""
        if len(self._calls) >= self._most_calls:
            raise RpcError(
                "BUSY",
                f"This connection has {self._most_calls} calls under way, as many as it may. Wait until one has ended.",
                {"most": self._most_calls},
            )
        self._calls[call] = None
        if call.id is not None:
            self._by_id[call.id] = call

    def _run_kept(self, call: Call, handler: Handler, params: Keyed) -> None:
        """A call of the client's, which goes on when this connection ends."""
        visitor = self._visitor
        if visitor is None:
            raise RpcError("HELLO", "A call with a key is a client's: say rpc/hello first, on each connection.")
        kept = visitor.find(call.method, params)
        if kept is not None and kept.done_at is not None:
            kept.answer(call)
            return
        self._enter(call)
        if kept is None:
            kept = visitor.begin(call, lambda: handler.function(call, params), params)
        elif call not in kept.waiting:
            kept.waiting.append(call)
        call.scope = kept.scope  # `rpc/cancel` ends the call itself, wherever it is waited for

    async def _run(self, call: Call, handler: Handler, params: msgspec.Struct) -> None:
        # A call that is cancelled from outside stays among those under way: `_last_words` answers it.
        try:
            with call.scope:
                self.answer(call, await handler.function(call, params))
        except Exception as error:
            self.refuse(call, error)
        if call.scope.cancelled_caught:
            self.refuse(
                call, RpcError("CANCELLED", f"The call of {call.method} was cancelled.", {"method": call.method})
            )

    # ---------------------------------------------------------------- answers

    def answer(self, call: Call, result: object) -> None:
        """Send the result of a call; one that JSON cannot hold is a failure of the call."""
        try:
            response = frames.response(call.id, result)
        except (TypeError, ValueError, RecursionError) as fault:
            self.refuse(call, fault)
        else:
            if len(response) > LARGEST:
                self.refuse(call, too_large(len(response)))
            else:
                self._conclude(call, response)

    def refuse(self, call: Call, error: Exception) -> None:
        """Send why a call was refused, or that it failed."""
        try:
            failure = failure_of(
                error if isinstance(error, GreenroomError) else self._hidden(call, error), call.endpoint
            )
            answer = frames.refusal(call.id, failure)
        except (TypeError, ValueError, RecursionError) as fault:  # the error's context is no JSON
            answer = frames.refusal(call.id, failure_of(self._hidden(call, fault)))
        self._conclude(call, answer)

    def _hidden(self, call: Call, fault: Exception) -> RpcError:
        """What the peer is told of a bug; the log is told all."""
        correlation = secrets.token_hex(8)
        logger.error("%s: %s failed; correlation %s", self.name, call.method, correlation, exc_info=fault)
        return RpcError(
            "INTERNAL",
            f"The server failed at this call. Its log has the details under {correlation}.",
            {"correlation": correlation},
        )

    def _conclude(self, call: Call, answer: bytes) -> None:
        self._calls.pop(call, None)
        if call.id is not None and self._by_id.get(call.id) is call:
            del self._by_id[call.id]
        if (message := call.conclude(answer)) is not None:
            self._socket.send(message, asked=True)

    def _last_words(self) -> list[bytes]:
        """What the peer is told when the server stops: an answer to each call under way, and that it stops."""
        error = RpcError("SHUTDOWN", "The server stops before the call ended; call again when it is back.")
        answers = [call.conclude(frames.refusal(call.id, failure_of(error))) for call in self._calls]
        return [answer for answer in answers if answer is not None] + [frames.notification(SHUTDOWN.name, Shutdown())]
