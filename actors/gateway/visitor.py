"""A client that says who it is outlives its connections: its calls go on while it is away and are found by key."""

from __future__ import annotations

import hashlib
import secrets
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, final

import msgspec
import trio

from greenroom.protocol import wire
from greenroom.protocol.errors import ActorError, GreenroomError, RpcError
from greenroom.protocol.rpc import Keyed, failure_of
from greenroom.runtime.actor import Actor

if TYPE_CHECKING:
    from greenroom.actors.gateway.access import Access, Caller
    from greenroom.actors.gateway.calls import Call
    from greenroom.actors.gateway.connection import GatewayLimits
    from greenroom.actors.gateway.session import Session

__all__ = ["KeptCall", "Visitor"]

KEPT: Final = 1024
"""How many ended calls of one client are kept at most; the oldest go first."""
KEPT_BYTES: Final = 4 << 20
"""How many bytes their outcomes have together at most, as JSON. The last one is kept however long it is."""


@final
class KeptCall:
    """A call with a key: what it was, those who wait for it now, and its outcome once there is one."""

    __slots__ = ("digest", "done_at", "error", "key", "method", "result", "scope", "size", "waiting")

    def __init__(self, key: str, method: str, digest: bytes) -> None:
        self.key = key
        self.method = method
        self.digest = digest
        """Of its params, which may be large and are not needed again."""
        self.scope = trio.CancelScope()
        self.waiting: list[Call] = []
        """The requests that are to be answered with its outcome, on whichever connections they came."""
        self.done_at: float | None = None
        self.result = msgspec.Raw()
        self.error: Exception | None = None
        self.size = 0
        """Bytes that the outcome takes."""

    def end(self, outcome: object, error: Exception | None) -> None:
        """It has ended, and this is kept of it. A result that JSON cannot hold is a failure of its own."""
        self.error = error
        try:
            if error is None:
                self.result = msgspec.Raw(wire.encode(outcome, surrogates="replace"))
                self.size = len(self.result)
            elif isinstance(error, GreenroomError):
                self.size = len(wire.encode(failure_of(error), surrogates="replace"))
        except (TypeError, ValueError, RecursionError) as fault:
            self.error = error or fault
        self.done_at = trio.current_time()

    def answer(self, call: Call) -> None:
        """Give the outcome to one request."""
        if self.error is not None:
            call.session.refuse(call, self.error)
        else:
            call.session.answer(call, self.result)


@final
class Visitor(Actor):
    """A client, by the id that it made for itself: `/clients/<id>`. Its keyed calls are its work.

    When its last connection has gone it waits as long as its grace is for the next one, and then ends: what it was
    still asking is withdrawn. It ends at once if it said that it will not come back, and within a heartbeat when its
    token has ended, since nobody may come back then. `caller` is who came with it first; nobody with another token can
    come in its name. The number of its calls under way is limited over all of its connections.
    """

    kind = "client"

    def __init__(self, caller: Caller, access: Access, limits: GatewayLimits) -> None:
        super().__init__()
        self.owner = caller.name
        self.visit = secrets.token_urlsafe(12)
        """Tells this time from others at which a client of the same id was, or will be, known here."""
        self._caller = caller
        self._access = access
        self._limits = limits
        self._forgot = False
        """Outcomes were dropped, so that an unknown call may have been carried out."""
        self._sessions: set[Session] = set()
        self._calls: dict[str, KeptCall] = {}
        self._ended: deque[KeptCall] = deque()
        """Those of them that have ended, in the order in which they did."""
        self._ended_size = 0
        """Bytes that their outcomes take together."""
        self._away = trio.CancelScope()
        self._early: list[tuple[KeptCall, Callable[[], Awaitable[object]], str]] = []
        """Calls that came in the very step in which the client became known, before it runs."""
        caller.usage.clients += 1

    async def on_start(self) -> None:
        early, self._early = self._early, []
        for kept, function, name in early:
            self.start_soon(self._run, kept, function, name=name)

    def on_end(self, reason: str) -> None:
        self._caller.usage.clients -= 1

    def come(self, session: Session) -> None:
        """A connection of it is open."""
        self._caller = session.caller
        self._sessions.add(session)
        self._away.cancel()

    def leave(self, session: Session, *, for_good: bool) -> None:
        """A connection of it has ended; what waited there for calls is dropped, the calls go on.

        Not so for a client that left `for_good`, or whose token is not valid any more: it ends, unless another
        connection of it is still open.
        """
        self._sessions.discard(session)
        for kept in self._calls.values():
            kept.waiting = [call for call in kept.waiting if call.session is not session]
        if self._sessions or not self.ref.alive:
            return
        if for_good or not self._access.admits(self._caller):
            self.ref.stop_soon(reason="ended")
        else:
            self._away = trio.CancelScope()
            self.start_soon(self._wait, self._away)

    async def _wait(self, away: trio.CancelScope) -> None:
        over, heartbeat = trio.current_time() + self._limits.grace, self._limits.socket.ping_interval
        with away:
            # The end of a token is no event.
            while (left := over - trio.current_time()) > 0 and self._access.admits(self._caller):  # noqa: ASYNC110
                await trio.sleep(min(left, heartbeat))
            if not self._sessions:  # it may have come back in the very step in which the time was over
                self.ref.stop_soon(reason="ended")  # from here on nobody comes in

    def find(self, method: str, params: Keyed) -> KeptCall | None:
        """The call of that key, if it is known. None: it is new, and may begin.

        Raises RpcError: KEY for a key that was used for something else, OUTCOME if the client asks again for what is
        not known here, and nobody can tell whether it was carried out. Where it was first sent in this very visit, and
        nothing of that has been forgotten, it can only have got lost on its way, and so is new.
        """
        self._prune()
        key = params.key or ""
        kept = self._calls.get(key)
        if kept is None:
            if params.again and not params.repeatable and (self._forgot or params.visit != self.visit):
                raise RpcError(
                    "OUTCOME",
                    f"Nothing is known of that call of {method}: it may have been carried out or not. Look before you "
                    "send it anew, with another key.",
                    {"method": method},
                )
            return None
        if (kept.method, kept.digest) != (method, _digest(params)):
            raise RpcError("KEY", "This key was used for another call; give each its own.", {"method": kept.method})
        return kept

    def begin(self, call: Call, function: Callable[[], Awaitable[object]], params: Keyed) -> KeptCall:
        """Carry out a new call, as this client's work. Its requests get the outcome when there is one.

        Raises RpcError: BUSY with as many under way as there may be, SHUTDOWN if the server is about to end.
        """
        most = self._limits.calls
        if len(self._calls) - len(self._ended) >= most:
            raise RpcError(
                "BUSY",
                f"This client has {most} calls under way, as many as it may. Wait until one has ended.",
                {"most": most},
            )
        kept = KeptCall(params.key or "", call.method, _digest(params))
        name = f"{self.ref.path} {call.method}"
        try:
            if self.ref.state == "starting":
                self._early.append((kept, function, name))
            else:
                self.start_soon(self._run, kept, function, name=name)
        except (ActorError, RuntimeError):  # it takes no work any more
            raise RpcError("SHUTDOWN", "The server stops before the call began; call again when it is back.") from None
        kept.waiting.append(call)
        self._calls[kept.key] = kept
        return kept

    async def _run(self, kept: KeptCall, function: Callable[[], Awaitable[Any]]) -> None:
        outcome: object = None
        failure: Exception | None = None
        with kept.scope:
            try:
                outcome = await function()
            except Exception as error:
                failure = error
        if kept.scope.cancelled_caught:
            failure = RpcError("CANCELLED", f"The call of {kept.method} was cancelled.", {"method": kept.method})
        kept.end(outcome, failure)
        self._ended.append(kept)
        self._ended_size += kept.size
        waiting, kept.waiting = kept.waiting, []
        for call in waiting:
            kept.answer(call)

    def _prune(self) -> None:
        """Forget outcomes that have been kept long enough, and the oldest of too many."""
        old = trio.current_time() - self._limits.kept_for
        while self._ended and (
            (self._ended[0].done_at or 0.0) < old
            or len(self._ended) > KEPT
            or (self._ended_size > KEPT_BYTES and len(self._ended) > 1)
        ):
            kept = self._ended.popleft()
            self._ended_size -= kept.size
            del self._calls[kept.key]
            self._forgot = True


def _digest(params: Keyed) -> bytes:
    # However often it is sent, it means the same.
    meant = msgspec.structs.replace(params, again=False, visit=None)
    return hashlib.sha256(msgspec.json.encode(meant, order="deterministic")).digest()
