"""Remote methods at the gateway: which one a caller means, and whether it may call it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

import msgspec

from greenroom.actors.gateway.handlers import Handler
from greenroom.actors.remote import Endpoint, RemoteServices, StreamEndpoint
from greenroom.protocol.access import Grants
from greenroom.protocol.errors import RemoteError

if TYPE_CHECKING:
    from greenroom.actors.gateway.calls import Call

__all__ = ["endpoint_handler", "find_method", "find_stream", "reachable", "told"]

LONGEST: Final = 129
"""Characters that the name of a remote method has at most."""


def find_method(remote: RemoteServices, name: str, grants: Grants) -> Endpoint:
    """The remote method of that name, for who may call it; for others it is as if it were not there.

    Raises RemoteError: `gateway/service-unavailable` if nothing in that namespace can be called,
    `gateway/method-unavailable` if other methods of it can, and `gateway/definition-unavailable` if it was withdrawn.
    """
    found = remote.method(name) if grants.may_reach(name) else None
    if found is None:
        raise _missing("method", name, reachable(remote.methods(), grants))
    return found


def find_stream(remote: RemoteServices, name: str, grants: Grants) -> StreamEndpoint:
    """The stream of that name, for who may open it. Raises as `find_method` does."""
    found = remote.stream(name) if grants.may_reach(name) else None
    if found is None:
        raise _missing("stream", name, reachable(remote.streams(), grants))
    return found


E = TypeVar("E", bound=Endpoint | StreamEndpoint)


def reachable(endpoints: list[E], grants: Grants) -> list[str]:
    """The names of those that may be called, or opened."""
    return [endpoint.name for endpoint in endpoints if grants.may_reach(endpoint.name)]


def _missing(what: str, name: str, known: list[str]) -> RemoteError:
    namespace = name.partition("/")[0]
    beside = [each for each in known if each.startswith(f"{namespace}/")]
    there = ", ".join(beside or known) or "none yet"
    return RemoteError(
        "gateway/method-unavailable" if beside else "gateway/service-unavailable",
        f"There is no {what} {told(name)}. There {'is' if len(beside or known) == 1 else 'are'} {there}.",
        {"known": beside or known},
    )


def told(name: str) -> str:
    """A name that its sender chose, as it is told back."""
    return name if len(name) <= LONGEST else f"{name[:LONGEST]}…"


def endpoint_handler(endpoint: Endpoint) -> Handler:
    """What carries out calls of a remote method that have come over a connection."""

    async def carry_out(_call: Call, params: msgspec.Struct) -> msgspec.Raw:
        return await endpoint(params)

    return Handler(carry_out, waits=True)
