"""A call under way, and the batch that it may have come in."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

import trio

from greenroom.protocol.rpc import RequestId, frames

if TYPE_CHECKING:
    from greenroom.actors.gateway.session import Session

__all__ = ["Batch", "Call"]


@final
class Batch:
    """Gathers the answers to requests that came in one message, and gives them out as one when all are there."""

    __slots__ = ("_answers", "_sealed", "_under_way")

    def __init__(self) -> None:
        self._answers: list[bytes] = []
        self._under_way = 0
        self._sealed = False

    def begin(self) -> None:
        """One more request is under way."""
        self._under_way += 1

    def end(self, answer: bytes | None) -> bytes | None:
        """A request has its answer, or was a notification. What is to be sent now, if anything is."""
        self._under_way -= 1
        if answer is not None:
            self._answers.append(answer)
        return self._whole()

    def seal(self) -> bytes | None:
        """All requests have begun. What is to be sent now, if anything is."""
        self._sealed = True
        return self._whole()

    def _whole(self) -> bytes | None:
        return frames.batch(self._answers) if self._sealed and not self._under_way and self._answers else None


@final
class Call:
    """One request from its beginning to its answer; `answered` is False for a notification, whose answer is dropped."""

    __slots__ = ("_batch", "answered", "endpoint", "id", "method", "scope", "session")

    def __init__(
        self, session: Session, method: str, id: RequestId | None, batch: Batch | None, *, answered: bool
    ) -> None:
        self.session = session
        self.method = method
        self.id = id
        """None: it has none, or none that could be read."""
        self.answered = answered
        self.endpoint: str | None = None
        """The remote method that it calls, if it calls one."""
        self.scope = trio.CancelScope()
        """Around its handler, if that waits."""
        self._batch = batch
        if batch is not None:
            batch.begin()

    def conclude(self, answer: bytes) -> bytes | None:
        """Give it its answer, once. What is to be sent now, if anything is."""
        told = answer if self.answered else None
        return told if self._batch is None else self._batch.end(told)
