"""From a URL to an open WebSocket."""

from __future__ import annotations

import ssl
from typing import final
from urllib.parse import urlsplit

import msgspec
import trio

from greenroom.actors.client.handshake import HandshakeFailed, dial
from greenroom.actors.client.socket import FrameSocket, SocketLimits
from greenroom.actors.client.stream import GuardedStream
from greenroom.protocol.errors import ConfigError, RpcError

__all__ = ["Address", "open_socket", "open_stream", "parse_url"]


@final
class Address(msgspec.Struct, frozen=True):
    """Where a gateway is."""

    url: str
    host: str
    port: int
    resource: str
    secure: bool

    @property
    def authority(self) -> str:
        """What the Host header says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.secure else 80) else f"{host}:{self.port}"


def parse_url(url: str) -> Address:
    """The address in `ws://host:port/rpc`, or in `http://host:port`, which has its gateway at `/rpc`; or with TLS.

    Raises ConfigError URL.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _no_url() from None
    if parts.scheme not in ("ws", "wss", "http", "https") or not parts.hostname or parts.username or parts.fragment:
        raise _no_url()
    secure = parts.scheme in ("wss", "https")
    path = "/rpc" if parts.path in ("", "/") else parts.path
    return Address(
        url=url,
        host=parts.hostname,
        port=port or (443 if secure else 80),
        resource=f"{path}?{parts.query}" if parts.query else path,
        secure=secure,
    )


def _no_url() -> ConfigError:
    # It is not repeated: what makes it wrong may be a password in it.
    return ConfigError(
        "URL",
        "The URL is no address of a gateway: it begins with ws:// or wss:// and names a host, without a user or"
        " password, like ws://127.0.0.1:8642/rpc.",
    )


async def open_socket(
    nursery: trio.Nursery,
    address: Address,
    limits: SocketLimits,
    token: str | None = None,
    tls: ssl.SSLContext | None = None,
) -> FrameSocket:
    """Connect and shake hands, together within `limits.handshake_timeout` seconds.

    `nursery` must stay open until the socket is closed. Raises RpcError CONNECT, with the HTTP `status` if the gateway
    refused. Cancelled: nothing is left.
    """
    with trio.move_on_after(limits.handshake_timeout):
        try:
            stream = GuardedStream(await open_stream(address, tls), send_timeout=limits.send_timeout)
            headers = () if token is None else ((b"Authorization", b"Bearer " + token.encode()),)
            return await dial(nursery, stream, address.authority, address.resource, limits, headers)
        except OSError as error:
            raise _no_gateway(address, f"{error.strerror or error}") from error
        except HandshakeFailed as error:
            if error.status is None:
                raise _no_gateway(address, "it speaks no WebSocket") from None
            raise _refused(address, error.status, has_token=token is not None) from None
    raise _no_gateway(address, f"it did not answer within {limits.handshake_timeout:g} s")


async def open_stream(address: Address, tls: ssl.SSLContext | None = None) -> trio.abc.Stream:
    """Connect, without a deadline. `tls` says whom to trust. Raises OSError. Cancelled: nothing is left."""
    if address.secure:
        return await trio.open_ssl_over_tcp_stream(address.host, address.port, https_compatible=True, ssl_context=tls)
    return await trio.open_tcp_stream(address.host, address.port)


def _no_gateway(address: Address, why: str) -> RpcError:
    return RpcError("CONNECT", f"There is no gateway to talk to at {address.url}: {why}.", {"url": address.url})


def _refused(address: Address, status: int, *, has_token: bool) -> RpcError:
    why = f"it answered with HTTP status {status}"
    if status == 401:
        why = "the token was refused" if has_token else "it wants a token, and was given none"
    return RpcError(
        "CONNECT", f"The gateway at {address.url} refuses this client: {why}.", {"url": address.url, "status": status}
    )
