"""The gateway in the tree: it listens, each connection is an actor beneath it, and they end together."""

from __future__ import annotations

import errno
import logging
import socket
import ssl
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias, final

import trio

from greenroom.actors.gateway.access import Access
from greenroom.actors.gateway.api import add_api
from greenroom.actors.gateway.bridge import add_bridge
from greenroom.actors.gateway.connection import RPC_PATH, Connection, Front, GatewayLimits
from greenroom.actors.gateway.doorstep import Doorstep
from greenroom.actors.gateway.fence import Fence, is_loopback
from greenroom.actors.gateway.handlers import Services
from greenroom.actors.gateway.page import add_page
from greenroom.actors.gateway.routes import Routes
from greenroom.protocol.errors import ActorError, ConfigError
from greenroom.runtime.actor import Actor
from greenroom.runtime.ref import Ref
from greenroom.runtime.tree import Tree

__all__ = ["Gateway", "open_gateway"]

BACKLOG: Final = 1024

EXHAUSTED: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS})
"""What accepting fails with while the machine has no room for one more connection."""
PAUSE: Final = 0.1
"""Seconds until it is tried again."""

SILENCE: Final = 30_000
"""Milliseconds after which a peer that acknowledges nothing is gone, where the system can tell: an event stream has no
other way to notice. It is two periods of its signs of life."""
IDLE: Final = 15
"""Seconds after which the system asks a peer to whom nothing is sent whether it is still there: one whose call takes
long is told nothing meanwhile."""

logger = logging.getLogger("greenroom.gateway")

Mount: TypeAlias = Callable[[Routes, Access], None]
"""Adds what is at further paths of a gateway with these tokens."""


class Place(Actor):
    """A place in the tree with others beneath it, and no messages of its own."""


@final
class Listener(Actor):
    """Accepts connections. Being the gateway's newest child it ends first, and then tells all connections to end: they
    would otherwise be stopped one after another, each waiting for its peer."""

    def __init__(self, listeners: Sequence[trio.SocketListener], connections: Ref, front: Front) -> None:
        super().__init__()
        self._listeners = listeners
        self._connections = connections
        self._front = front
        self._accepted = 0

    async def on_start(self) -> None:
        for listener in self._listeners:
            self.start_soon(self._accept, listener)

    def on_end(self, reason: str) -> None:
        for listener in self._listeners:
            listener.socket.close()
        for ref in list((self._connections.children or {}).values()):
            if isinstance(ref.actor, Connection):
                ref.actor.shut_down()

    async def _accept(self, listener: trio.SocketListener) -> None:
        while True:
            try:
                stream = await listener.accept()
            except OSError as error:
                if error.errno not in EXHAUSTED:
                    raise
                logger.error("No connection can be accepted: %s. Trying again in %g s.", error, PAUSE)
                await trio.sleep(PAUSE)
                continue
            self._accepted += 1
            try:
                self.tree.spawn(Connection(stream, self._front), str(self._accepted), parent=self._connections)
            except (ActorError, RuntimeError):
                # The gateway has begun to stop; or it is cancelled, and its nursery is closed.
                stream.socket.close()


@final
class Gateway:
    """A gateway that listens. It ends with its runtime, or by `stop`."""

    def __init__(self, ref: Ref, connections: Ref, address: tuple[str, int], *, secure: bool) -> None:
        self.ref = ref
        """The address of its actor, beneath which its connections are."""
        self._connections = connections
        self.host, self.port = address
        """Where it listens."""
        self._scheme = "wss" if secure else "ws"

    @property
    def authority(self) -> str:
        """Host and port as a URL has them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """What a client connects to."""
        return f"{self._scheme}://{self.authority}{RPC_PATH}"

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self._connections.children or ())

    async def stop(self) -> None:
        """Stop listening, tell every client, end every connection. Takes under a second also if no client answers.

        Carried out also if the caller is cancelled.
        """
        await self.ref.stop()


async def open_gateway(
    tree: Tree,
    services: Services,
    *,
    name: str = "gateway",
    host: str = "127.0.0.1",
    port: int = 0,
    trusted_hosts: Iterable[str] = (),
    trusted_origins: Iterable[str] = (),
    limits: GatewayLimits | None = None,
    access: Access | None = None,
    tls: ssl.SSLContext | None = None,
    mounts: Iterable[Mount] = (),
) -> Gateway:
    """Listen at `host` and `port` (0: a free one), as the actor `/<name>`; accepting has begun when it returns.

    `access` are the tokens; without any, whoever reaches the gateway may do everything, and it listens at this
    machine's own addresses only. `tls` is the server's side of TLS, with its certificate loaded.
    `mounts` add routes of their own; the fence is before them, the tokens are theirs to ask for.

    Raises ConfigError: BIND for a host that other machines can reach while there are no tokens, and (context `host`,
    `port`) where nothing can listen, since the port is taken, say; TRUST for a trusted host or origin that is not
    written as browsers send it. Raises ActorError EXISTS if the name is taken. Cancelled: nothing is left.
    """
    access = access or Access()
    routes = Routes()
    add_page(routes)
    limits = limits or GatewayLimits()
    add_bridge(routes, services.terminals, access, limits)
    add_api(routes, services.remote, access, limits)
    for mount in mounts:
        mount(routes, access)
    fence, doorstep = Fence(trusted_hosts, trusted_origins), Doorstep(limits.waiting)
    front = Front(tree, services, fence, access, routes, limits, tls, doorstep)
    check_host(host, access)
    try:
        listeners = await trio.open_tcp_listeners(port, host=host, backlog=BACKLOG)
    except (OSError, UnicodeError) as error:  # UnicodeError: no name of a host
        raise _cannot_listen(host, port, error) from None
    try:
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # on Linux; accepted sockets inherit it
            for listener in listeners:
                listener.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SILENCE)
                listener.socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                listener.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, IDLE)
                listener.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, IDLE)
        address = _address(listeners, anywhere=not access.open)
        ref = tree.spawn(Place(), name)
        connections = tree.spawn(Place(), "connections", parent=ref)
        tree.spawn(Listener(listeners, connections, front), "listener", parent=ref)
    except BaseException:
        for listener in listeners:
            listener.socket.close()
        raise
    gateway = Gateway(ref, connections, address, secure=tls is not None)
    if access.open:
        logger.warning("The gateway at %s serves every program of this machine: no token is configured.", gateway.url)
    return gateway


def _address(listeners: list[trio.SocketListener], *, anywhere: bool) -> tuple[str, int]:
    """The address to tell; where a name stands for several, the port is the same, and each is of this machine unless
    they
    may be `anywhere`."""
    names = [listener.socket.getsockname() for listener in listeners]
    for listener, name in zip(list(listeners), names, strict=True):
        if not anywhere and not is_loopback(name[0]):
            raise _not_bound(name[0])
        if name[1] != names[0][1]:  # port 0 means another one for each address: keep to the first
            listener.socket.close()
            listeners.remove(listener)
    return names[0][0], names[0][1]


def check_host(host: str, access: Access) -> None:
    """Raise ConfigError BIND for a host that other machines can reach while there are no tokens."""
    if access.open and not is_loopback(host):
        raise _not_bound(host)


def _cannot_listen(host: str, port: int, error: OSError | UnicodeError) -> ConfigError:
    why = (error.strerror or str(error)) if isinstance(error, OSError) else "that is no name of a host"
    instead = "Name another port, or port 0, which takes a free one." if port else "Name another host."
    return ConfigError("BIND", f"Nothing can listen at {host}:{port}: {why}. {instead}", {"host": host, "port": port})


def _not_bound(host: str) -> ConfigError:
    return ConfigError(
        "BIND",
        f"A gateway without tokens serves everybody who reaches it, so it cannot listen at {host}; let it listen at "
        "127.0.0.1, ::1 or localhost.",
        {"host": host},
    )
