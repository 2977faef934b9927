"""A client that says who it is outlives its connections: its calls go on while it is away and are found by key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, final

import trio

from greenroom.protocol.errors import RpcError
from greenroom.runtime.actor import Actor

if TYPE_CHECKING:
    from greenroom.actors.gateway.calls import Call
    from greenroom.actors.gateway.session import Session

__all__ = ["KeptCall", "Visitor"]

KEPT: Final = 1024
"""How many calls of one client are kept at most; the oldest that have ended go first."""


@final
class KeptCall:
    """A call with a key: what it was, those who wait for it now, and its outcome once there is one."""

    __slots__ = ("done_at", "error", "method", "params", "result", "scope", "waiting")

    def __init__(self, method: str, params: object) -> None:
        self.method = method
        self.params = params
        self.scope = trio.CancelScope()
        self.waiting: list[Call] = []
        """The requests that are to be answered with its outcome, on whichever connections they came."""
        self.done_at: float | None = None
        self.result: object = None
        self.error: Exception | None = None

    def answer(self, call: Call) -> None:
        """Give the outcome to one request."""
        if self.error is not None:
            call.session.refuse(call, self.error)
        else:
            call.session.answer(call, self.result)


@final
class Visitor(Actor):
    """A client, by the id that it made for itself: `/clients/<id>`. Its keyed calls are its work.

    When its last connection has gone it waits `grace` seconds for the next one, and then ends: what it was still asking
    is withdrawn. `owner` is whose token it came with; nobody else can come in its name.
    """

    kind = "client"

    def __init__(self, owner: str, *, grace: float, kept_for: float) -> None:
        super().__init__()
        self.owner = owner
        self._grace = grace
        self._kept_for = kept_for
        self._sessions: set[Session] = set()
        self._calls: dict[str, KeptCall] = {}
        self._away = trio.CancelScope()

    def come(self, session: Session) -> None:
        """A connection of it is open."""
        self._sessions.add(session)
        self._away.cancel()

    def leave(self, session: Session) -> None:
        """A connection of it has ended; what waited there for calls is dropped, the calls go on."""
        self._sessions.discard(session)
        for kept in self._calls.values():
            kept.waiting = [call for call in kept.waiting if call.session is not session]
        if not self._sessions and self.ref.alive:
            self._away = trio.CancelScope()
            self.start_soon(self._wait, self._away)

    async def _wait(self, away: trio.CancelScope) -> None:
        with away:
            await trio.sleep(self._grace)
            self.end()

    def find(self, key: str, method: str, params: object, *, again: bool) -> KeptCall | None:
        """The call of that key, if it is known. None: it is new, and may begin.

        Raises RpcError: KEY for a key that was used for something else, OUTCOME if the client asks `again` for what
        is not known here (any more), so that nobody can tell whether it was carried out.
        """
        self._prune()
        kept = self._calls.get(key)
        if kept is None:
            if again:
                raise RpcError(
                    "OUTCOME",
                    f"Nothing is known of that call of {method}: it may have been carried out or not. Look before you "
                    "send it anew, with another key.",
                    {"method": method},
                )
            return None
        if (kept.method, kept.params) != (method, params):
            raise RpcError("KEY", "This key was used for another call; give each its own.", {"method": kept.method})
        return kept

    def begin(self, key: str, call: Call, function: Callable[[], Awaitable[object]], params: object) -> None:
        """Carry out a new call, as this client's work. Its requests get the outcome when there is one."""
        kept = self._calls[key] = KeptCall(call.method, params)
        kept.waiting.append(call)
        self.start_soon(self._run, kept, function, name=f"{self.ref.path} {call.method}")

    async def _run(self, kept: KeptCall, function: Callable[[], Awaitable[Any]]) -> None:
        with kept.scope:
            try:
                kept.result = await function()
            except Exception as error:
                kept.error = error
        if kept.scope.cancelled_caught:
            kept.error = RpcError("CANCELLED", f"The call of {kept.method} was cancelled.", {"method": kept.method})
        kept.done_at = trio.current_time()
        waiting, kept.waiting = kept.waiting, []
        for call in waiting:
            kept.answer(call)

    def _prune(self) -> None:
        """Forget outcomes that have been kept long enough, and the oldest of too many."""
        old = trio.current_time() - self._kept_for
        ended = [(key, kept.done_at) for key, kept in self._calls.items() if kept.done_at is not None]
        for number, (key, done_at) in enumerate(ended):
            if done_at < old or len(ended) - number > KEPT:
                del self._calls[key]
