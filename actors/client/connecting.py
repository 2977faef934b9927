"""Connecting to a gateway, and coming back when the connection was lost."""

from __future__ import annotations

import random
import re
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from math import inf

import msgspec
import trio

from greenroom.actors.client.client import Client
from greenroom.actors.client.dialing import open_socket, parse_url
from greenroom.actors.client.socket import FrameSocket, SocketLimits
from greenroom.protocol.errors import ConfigError, RpcError

__all__ = ["LIMITS", "Reconnect", "connect"]

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
    """A client for the length of the block; `url` is a gateway's, such as `ws://127.0.0.1:8642/rpc`.

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
