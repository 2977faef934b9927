"""`@remote("name")`: which methods of a service can be called from outside."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, NamedTuple, TypeVar

__all__ = ["METHOD_MARK", "STREAM_MARK", "Marked", "remote", "remote_stream"]

M = TypeVar("M", bound=Callable[..., Awaitable[Any]])
S = TypeVar("S", bound=Callable[..., AsyncIterator[Any]])

METHOD_MARK: Final = "__greenroom_remote__"
STREAM_MARK: Final = "__greenroom_remote_stream__"


class Marked(NamedTuple):
    """What a method was marked with."""

    name: object
    repeatable: bool = False


def remote(name: str, *, repeatable: bool = False) -> Callable[[M], M]:
    """Let the decorated async method be called from outside, as `<namespace>/<name>`, once its service is added.

    Its annotations are the contract: `RemoteServices.add` reads them, and refuses what no caller could keep to. A
    `repeatable` method does the same when it is carried out once more, such as one that only looks: a call of it whose
    outcome got lost, since the server has begun anew, is carried out again, where any other is refused with OUTCOME.
    """

    def mark(method: M) -> M:
        setattr(method, METHOD_MARK, Marked(name, repeatable))
        return method

    return mark


def remote_stream(name: str) -> Callable[[S], S]:
    """Let the decorated async generator be opened from outside as the stream `<namespace>/<name>`.

    Its annotation says what it yields: `AsyncIterator[Item]`. It is closed where it stands when its reader has gone, so
    that its `finally` runs; as in any async generator of trio's, nothing may be yielded within a nursery or a cancel
    scope.
    """

    def mark(method: S) -> S:
        setattr(method, STREAM_MARK, Marked(name))
        return method

    return mark
