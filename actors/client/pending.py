"""A call of the client that waits for its answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar, cast, final

import msgspec
import trio

from greenroom.protocol.errors import GreenroomError, RpcError
from greenroom.protocol.rpc import error_of, frames

__all__ = ["PendingCall"]

R = TypeVar("R")


@final
class PendingCall(Generic[R]):
    """A call that waits for its answer."""

    __slots__ = ("_failure", "_read", "_value", "answered", "ended", "keyed", "method", "params", "sent", "settled")

    def __init__(
        self,
        method: str,
        params: object,
        read: Callable[[msgspec.Raw], R],
        answered: Callable[[R], object] | None,
        *,
        keyed: bool = False,
    ) -> None:
        self.method = method
        self.params = params
        self.keyed = keyed
        """It has a key, by which the server knows it when it comes again."""
        self._read = read
        self._value: R | None = None
        self._failure: GreenroomError | None = None
        self.answered = answered
        """Called with the result, before anything that came after it is looked at."""
        self.ended: Callable[[], object] | None = None
        """Called once it is settled, however."""
        self.sent = False
        """It may have reached the server."""
        self.settled = trio.Event()

    def settle(self, message: frames.Message) -> None:
        """Its answer has come."""
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
        self._end()

    def fail(self, error: GreenroomError) -> None:
        """There will be no answer."""
        self._failure = error
        self._end()

    def _end(self) -> None:
        self.settled.set()
        if self.ended is not None:
            self.ended()

    def result(self) -> R:
        """What it came to. Raises the error that it failed with."""
        if self._failure is not None:
            raise self._failure
        return cast("R", self._value)  # settled without a failure: it was read
