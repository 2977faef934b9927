"""One accepted connection: HTTP at first, and a WebSocket from the moment it asks to be one."""

from __future__ import annotations

import logging
import secrets
import ssl
from contextlib import suppress
from typing import NamedTuple, final

import msgspec
import trio

from greenroom.actors.client.handshake import HandshakeFailed, accept
from greenroom.actors.client.socket import SocketLimits
from greenroom.actors.client.stream import GuardedStream
from greenroom.actors.gateway.access import Access, Caller, presented_token
from greenroom.actors.gateway.doorstep import Doorstep
from greenroom.actors.gateway.fence import Fence
from greenroom.actors.gateway.handlers import Services
from greenroom.actors.gateway.http import HttpConnection, HttpRequest, HttpResponse, Refused, text_response
from greenroom.actors.gateway.routes import Routes
from greenroom.actors.gateway.session import Session
from greenroom.actors.gateway.upgrade import upgrade_objection
from greenroom.actors.gateway.visitor import Visitor
from greenroom.protocol.bridge import TOKEN_HEADER
from greenroom.protocol.errors import RpcError
from greenroom.runtime.actor import Actor
from greenroom.runtime.tree import Tree

__all__ = ["RPC_PATH", "Connection", "Front", "GatewayLimits"]

RPC_PATH = "/rpc"

REFUSAL = "A token is needed here, and this request brought none that is valid."
"""Said of every token alike: missing, unknown, expired or revoked."""

logger = logging.getLogger("greenroom.gateway")


class GatewayLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a gateway's connections may take. Times are in seconds."""

    head_size: int = 16_384
    """The most bytes of the head of an HTTP request."""
    head_timeout: float = 10.0
    """How long a head may take, and how long a connection may stay open without one."""
    body_timeout: float = 30.0
    """How long the body of a request may take."""
    calls: int = 1024
    """How many calls one connection may have under way, and one client over all of its connections."""
    waiting: int = 512
    """How many connections may be open in all that have not said yet whose they are; one more, and the one that has
    waited longest is ended."""
    connections: int = 1024
    """How many WebSockets and event streams the holders of one token may have open."""
    subscriptions: int = 4096
    """To how many terminals they may be attached, over all of these."""
    clients: int = 4096
    """How many of the holders of one token may have said hello, those included that are away; and without tokens, how
    many in all."""
    grace: float = 30.0
    """How long a client that said hello may be away before its calls are cancelled and its forms withdrawn."""
    kept_for: float = 300.0
    """How long the outcomes of its calls are kept."""
    requests: float = 200.0
    """How many requests a second they may send; five times as many may come at once."""
    streams: int = 256
    """How many streams of remote services one connection may have open; each counts as a subscription as well."""
    stream_patience: float = 5.0
    """How long an item of a stream waits for a client that does not read, before the stream is ended."""
    socket: SocketLimits = SocketLimits()
    """What goes for WebSockets, and for every send."""


class Front(NamedTuple):
    """What all connections of a gateway share."""

    tree: Tree
    services: Services
    fence: Fence
    access: Access
    routes: Routes
    limits: GatewayLimits
    tls: ssl.SSLContext | None
    doorstep: Doorstep

    def visitor(self, id: str, caller: Caller) -> tuple[Visitor, bool]:
        """The client of that id, and whether it was there already.

        Raises RpcError: HELLO if it is somebody else's, BUSY if its token has as many clients as it may.
        """
        clients = (self.tree.root.children or {}).get("clients")
        place = clients if clients is not None and clients.alive else self.tree.spawn(Clients(), "clients")
        found = (place.children or {}).get(id)
        if found is not None and found.alive and isinstance(found.actor, Visitor):
            if found.actor.owner != caller.name:
                raise RpcError("HELLO", "This client came with another token before; make another id.")
            return found.actor, True
        if found is not None:
            raise RpcError("HELLO", "This client has been away too long and is just being forgotten; say hello again.")
        most = self.limits.clients
        if caller.usage.clients >= most:
            raise RpcError(
                "BUSY",
                f"This token has {most} clients already, as many as it may; those that are away count for their grace. "
                "Let a client that will not come back say rpc/bye.",
                {"most": most},
            )
        visitor = Visitor(caller, self.access, self.limits)
        self.tree.spawn(visitor, id, parent=place)
        return visitor, False


@final
class Clients(Actor):
    """Where the clients that said hello are, each by its id."""


@final
class Connection(Actor):
    """Owns its stream until the end: whatever happens here, it is closed, and nobody else notices."""

    def __init__(self, stream: trio.abc.Stream, front: Front) -> None:
        super().__init__()
        self._accepted = stream
        self._peer = ""
        self._front = front
        self._tls = None
        if front.tls is not None:
            # It ends as HTTPS does: browsers close without saying so in TLS.
            stream = self._tls = trio.SSLStream(stream, front.tls, server_side=True, https_compatible=True)
        self._stream = GuardedStream(stream, send_timeout=front.limits.socket.send_timeout)
        self._session: Session | None = None

    async def on_start(self) -> None:
        with suppress(OSError):  # it has gone already
            self._peer = _peer(self._accepted)
        self._wait_at_the_door()
        self.start_soon(self._serve)

    def on_end(self, reason: str) -> None:
        self._front.doorstep.depart(self)
        # One that was stopped before it began has had no task that could close the stream.
        if isinstance(self._accepted, trio.SocketStream):
            self._accepted.socket.close()

    def _wait_at_the_door(self) -> None:
        self._front.doorstep.arrive(self, self.ref.stop_soon)

    def shut_down(self) -> None:
        """Begin to end because the server does: a WebSocket is told so, anything else just ends."""
        if self._session is not None:
            self._session.shut_down()
        else:
            self._stream.hurry(self._front.limits.socket.close_timeout)
            self.ref.stop_soon()

    async def _serve(self) -> None:
        limits = self._front.limits
        try:
            if self._tls is not None:
                with trio.fail_after(limits.head_timeout):
                    await self._tls.do_handshake()
            http = HttpConnection(
                self._stream,
                head_limit=limits.head_size,
                head_timeout=limits.head_timeout,
                body_timeout=limits.body_timeout,
                close_timeout=limits.socket.close_timeout,
            )
            caller = await self._converse(http)
            del http  # a WebSocket may stay for days, and needs nothing of it
            if caller is not None:
                await self._serve_rpc(caller)
        except (trio.BrokenResourceError, trio.ClosedResourceError, trio.TooSlowError):
            logger.debug("%s: the peer has gone", self.ref.path)
        finally:
            await self._stream.kill()
            self.end()

    async def _converse(self, http: HttpConnection) -> Caller | None:
        """Answer requests until one wants a WebSocket: who wants it. None: there are no more."""
        try:
            with http.patience:
                return await self._answer_requests(http)
            refusal = http.late()
        except Refused as refused:
            refusal = refused.response
        if refusal is not None:
            await http.refuse(refusal)
            await self._linger()
        return None

    async def _answer_requests(self, http: HttpConnection) -> Caller | None:
        access, limits = self._front.access, self._front.limits
        while (request := await http.read()) is not None:
            self._check(request)
            caller = access.identify(None if access.open else _presented(request))
            if caller is not None:
                self._front.doorstep.depart(self)
            if request.path != RPC_PATH:
                response = await self._respond(request)
            elif caller is None:
                # Before anything else: a browser, whose scripts never see why a WebSocket failed, asks without one.
                response = text_response(401, REFUSAL, ("WWW-Authenticate", "Bearer"))
            elif (objection := upgrade_objection(request)) is not None:
                response = objection
            elif caller.token is not None and caller.usage.connections >= limits.connections:
                response = text_response(429, "This token has as many connections open as it may.")
            else:
                http.hand_over()
                caller.usage.connections += 1  # before anything is waited for; `_serve_rpc` takes it back
                return caller
            if response.status == 401:
                # Whoever guesses waits longer each time; nobody else does.
                await trio.sleep(access.failed(self._peer))
            if not await http.answer(response):
                await self._linger()
                return None
            self._wait_at_the_door()
        return None

    async def _linger(self) -> None:
        """Let the peer read what it was sent last."""
        with trio.move_on_after(self._front.limits.socket.close_timeout):
            await self._stream.linger()

    def _check(self, request: HttpRequest) -> None:
        """Refuse what the fence does not let through, before anything else is looked at."""
        objection = self._front.fence.objection(
            request.values("host"), request.values("origin"), request.values("sec-fetch-site")
        )
        if objection is not None:
            raise Refused(text_response(403, objection))

    async def _respond(self, request: HttpRequest) -> HttpResponse:
        try:
            return await self._front.routes.respond(request)
        except Refused:  # on reading the body
            raise
        except Exception:
            correlation = secrets.token_hex(8)
            logger.exception("%s: %s failed; correlation %s", self.ref.path, request.path, correlation)
            return text_response(500, f"The server failed at this. Its log has the details under {correlation}.")

    async def _serve_rpc(self, caller: Caller) -> None:
        limits = self._front.limits
        try:
            socket = await accept(self, self._stream, limits.socket)
            self._session = Session(self.ref.path, socket, self._front, caller)
            await self._session.serve()
        except HandshakeFailed:
            logger.debug("%s: no WebSocket came about", self.ref.path)
        finally:
            caller.usage.connections -= 1


def _presented(request: HttpRequest) -> str | None:
    protocols = [entry.strip() for value in request.values("sec-websocket-protocol") for entry in value.split(",")]
    return presented_token(request.values("authorization"), protocols, request.values(TOKEN_HEADER))


def _peer(stream: trio.abc.Stream) -> str:
    """Where the other end is; empty where there is no such thing."""
    return str(stream.socket.getpeername()[0]) if isinstance(stream, trio.SocketStream) else ""
