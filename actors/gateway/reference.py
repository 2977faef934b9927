"""`docs/rpc.md`: every method of the gateway, written from the structs that it reads and writes."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import Any, Final, final

import msgspec

from greenroom.actors.client.socket import POLICY_VIOLATION
from greenroom.actors.docs import members_of, type_text
from greenroom.actors.gateway.connection import RPC_PATH, GatewayLimits
from greenroom.actors.gateway.visitor import KEPT, KEPT_BYTES
from greenroom.protocol.access import PROTOCOL, TOKEN_PROTOCOL
from greenroom.protocol.bridge import TOKEN_HEADER
from greenroom.protocol.rpc import METHODS, NOTIFICATIONS, NUMBERS, Result, frames

__all__ = ["rpc_reference"]

_LIMITS: Final = GatewayLimits()
_REQUIRED: Final = "**required**"

_HEAD: Final = f"""# The gateway's methods

Written by `python -m greenroom.docs` from the code. Change the structs in `protocol/`, then run it again, in a checkout
that is installed with `pip install -e .`.

A client opens a WebSocket at `{RPC_PATH}` and speaks [JSON-RPC 2.0](https://www.jsonrpc.org/specification) in text
messages of at most {_LIMITS.socket.message_size} bytes, in at most {_LIMITS.socket.fragments} frames each, and besides
no more than {_LIMITS.socket.idle_frames:g} frames a second. What it is sent can be larger, since a form is never cut:
let your WebSocket library take 64 MiB.

- `params` is an object. A member that the method does not know is refused, and so is one of another type.
- Calls overlap, and answers come in the order in which the calls end. A request without `id` is a notification: it is
  carried out and never answered. An `id` is a string or an integer, and may be used again once it was answered.
- A batch holds 1 to {frames.BATCH} requests; its answers come together.
- A connection has at most {_LIMITS.calls} calls under way. When it ends, they are cancelled and its attachments end.
- A client that reads too slowly ({_LIMITS.socket.queued_frames} messages wait for it, or {_LIMITS.socket.queued_bytes}
  bytes) is closed with code 1013. It connects and attaches again, and sees again what is pending.
- The gateway pings every {_LIMITS.socket.ping_interval:g} s. A client that does not answer within
  {_LIMITS.socket.ping_timeout:g} s is given up.
- Numbers are printed as ECMAScript prints them. Durations are in milliseconds.
- `Host` must be this machine's own name or address, or be trusted by configuration; `Origin`, if sent, must be at that
  host. A request that breaks this gets HTTP status 403 and no WebSocket.

The same terminals over plain HTTP are described in [bridge.md](bridge.md). The program behind a gateway may have
methods of its own, which are called in the same way: [remote.md](remote.md).

## Tokens

Where the gateway was given tokens, the request that opens the WebSocket presents one; without a valid one it gets HTTP
status 401. It stands in one of these places, and in one only:

- the header `Authorization: Bearer TOKEN` (RFC 6750), or
- the header `{TOKEN_HEADER}: TOKEN`, or,
- where a client can set no headers, as in a browser, among the subprotocols that it offers: `{PROTOCOL}`, and
  `{TOKEN_PROTOCOL}` followed by the token in base64url (RFC 4648, without padding):
  `new WebSocket(url, ["{PROTOCOL}", "{TOKEN_PROTOCOL}" + base64url(token)])`. The gateway chooses `{PROTOCOL}`.

A token that expires or is revoked ends what it opened with code {POLICY_VIOLATION}, within one ping. Its holders
together may have {_LIMITS.connections} connections, {_LIMITS.subscriptions} attachments and {_LIMITS.clients} clients
that said hello, and send {_LIMITS.requests:g} requests a second, five times as many at once.
What is more is refused with BUSY.

## Clients that come back

What a connection has under way ends with it, unless its client has a name of its own and its calls have keys:

- `rpc/hello`, first on each connection, says which client this is: an id of 8 to 64 characters of `A-Z a-z 0-9 _ -`,
  made at random, and bound to the token that it came with first.
- A call that may change something takes a `key` of 1 to 64 characters, another one for each call. It belongs to the
  client then: it goes on when the connection is lost, and the same method, params and key on the next connection join
  it, or get the outcome that it had. The same key with anything else is refused with KEY.
- When the last connection of a client has gone, and it has not said `rpc/bye`, a grace begins: {_LIMITS.grace:g} s
  where nothing else is configured (`greenroom serve --grace`). At its end, not before, its calls are cancelled and its
  forms withdrawn.
- An outcome is kept for {_LIMITS.kept_for:g} s; of one client at most {KEPT} of them and {KEPT_BYTES} bytes, the oldest
  go first. A call that is sent with `again` and of which nothing is known is refused with OUTCOME.
- A question that is to outlive the server and the client is asked with `durable`, a name that the client chooses (in
  Python `client.ask(..., durable=NAME)`). It is found again by that name and the client's id: so a client that is to
  find it after its own restart says the same id each time (`connect(url, id=ID)`). `terminal/release` forgets it.
- A client has at most {_LIMITS.calls} calls under way, over all of its connections; one more is refused with BUSY.

## Errors

An `error` has `code`, `message` and `data`, which has `code`, `message` and `context`; for a remote method also
`endpoint` and, if one is at fault, `field`, and codes of their own ([remote.md](remote.md)). Go by `data.code`: the
number only sorts.
"""


def rpc_reference() -> str:
    """The whole document."""
    return "\n\n".join(_Reference().blocks()) + "\n"


@final
class _Reference:
    """Writes the document block by block; structs that were named as types are described at its end."""

    def __init__(self) -> None:
        self._named: dict[type[msgspec.Struct], None] = {}

    def blocks(self) -> Iterator[str]:
        yield _HEAD.rstrip()
        yield _table(("number", "`data.code`", "meaning"), [(str(number), *row) for number, row in NUMBERS.items()])
        yield "## Methods"
        for method in METHODS.values():
            yield f"### `{method.name}`"
            yield _about(method.params)
            yield from self._members("Params", method.params)
            if _is_result(method.result):
                yield from self._members("Result", method.result)
            else:
                yield f"Result: {type_text(method.result, self._link)}."
        yield "## Notifications of the server"
        for notification in NOTIFICATIONS.values():
            yield f"### `{notification.name}` (notification)"
            yield _about(notification.params)
            yield from self._members("Params", notification.params)
        yield "## Records"
        described: set[type[msgspec.Struct]] = set()
        while waiting := [struct for struct in self._named if struct not in described]:
            for struct in waiting:
                described.add(struct)
                yield f"### {struct.__name__}"
                yield _about(struct)
                yield self._table_of(struct)

    def _members(self, what: str, struct: type[msgspec.Struct]) -> Iterator[str]:
        if struct.__struct_fields__:
            yield f"{what}:"
            yield self._table_of(struct)
        else:
            yield f"{what}: none."

    def _table_of(self, struct: type[msgspec.Struct]) -> str:
        rows = [
            (f"`{member.name}`", member.type, _REQUIRED if member.default is None else member.default, member.about)
            for member in members_of(struct, self._link)
        ]
        return _table(("member", "type", "default", "meaning"), rows)

    def _link(self, struct: type[msgspec.Struct]) -> str:
        self._named[struct] = None
        return f"[{struct.__name__}](#{struct.__name__.lower()})"


def _is_result(result: Any) -> bool:
    """It is one method's own, and described there."""
    return isinstance(result, type) and issubclass(result, Result)


def _about(struct: type[msgspec.Struct]) -> str:
    return inspect.getdoc(struct) or ""


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
