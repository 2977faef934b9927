"""A route as a plain record, and the little of HTTP that its handler sees."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol, TypeAlias, final
from urllib.parse import parse_qs

import msgspec

__all__ = ["NO_BODY", "ByteStream", "Handler", "Route", "RouteRequest", "RouteResponse", "match_path"]


class _Nothing:
    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        raise StopAsyncIteration


def _always() -> bool:
    return True


NO_BODY: Final[AsyncIterable[bytes]] = _Nothing()
"""A body of no pieces."""


@final
class RouteRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request, as far as a handler looks at it."""

    params: Mapping[str, str]
    """What stood in the place of the path's `:names`, each decoded as one segment."""
    headers: tuple[tuple[str, str], ...] = ()
    """Names in lower case; one that was sent twice stands here twice."""
    query: str = ""
    """What followed the `?`, as it was sent."""
    body: AsyncIterable[bytes] = NO_BODY
    """Its pieces, as they arrive. What reading it raises (the client has gone, is too slow) passes the handler by."""

    admitted: Callable[[], bool] = _always
    """Whether whoever asked may still see what it asked for; a stream asks again from time to time."""

    def values(self, name: str) -> list[str]:
        """What was sent under that header, once for each time."""
        return [value for key, value in self.headers if key == name]

    def wanted(self, name: str) -> list[str]:
        """The values of that name in the query."""
        return parse_qs(self.query).get(name, [])


class ByteStream(Protocol):
    """A body that comes in pieces for as long as somebody reads it.

    Whoever gets one iterates it in a single task, and calls `close` when its reader has gone or when iterating is
    given up; the iteration ends then, or at once if it has not begun.
    """

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def __anext__(self) -> bytes: ...

    def close(self) -> None:
        """End it, and leave nothing behind; idempotent, from any task."""
        ...


@final
class RouteResponse(msgspec.Struct, frozen=True):
    """What a handler answers."""

    status: int
    body: bytes | ByteStream = b""
    headers: tuple[tuple[str, str], ...] = ()


Handler: TypeAlias = Callable[[RouteRequest], Awaitable[RouteResponse]]


@final
class Route(NamedTuple):
    """Where a handler is to be mounted. In `path` a segment `:name` stands for any one segment."""

    method: str
    path: str
    handler: Handler


def match_path(pattern: Sequence[str], segments: Sequence[str]) -> dict[str, str] | None:
    """What decoded segments hold in the place of a pattern's `:names`; None if they do not fit it."""
    if len(pattern) != len(segments):
        return None
    names: dict[str, str] = {}
    for expected, segment in zip(pattern, segments, strict=True):
        if expected.startswith(":"):
            names[expected[1:]] = segment
        elif expected != segment:
            return None
    return names
