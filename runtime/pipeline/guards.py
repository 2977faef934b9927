"""Guards: the last word before a call runs, which can only be no."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias, final

from greenroom.protocol.errors import GreenroomError
from greenroom.runtime.bus import awaited
from greenroom.runtime.pipeline.invocations import Invocation
from greenroom.runtime.pipeline.outcomes import MalformedOutcome
from greenroom.runtime.scopes import Scope

__all__ = ["Guard", "Guards"]

Guard: TypeAlias = Callable[[Invocation], str | None]
"""Why the call may not run, or None. It is plain and waits for nothing; if it raises, the call does not run."""


class _Entry(NamedTuple):
    guard: Guard
    scope: Scope | None


@final
class Guards:
    """The guards of one pipeline. They come after every policy, since one that allows hides the others."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []

    def __bool__(self) -> bool:
        return bool(self._entries)

    def add(self, guard: Guard, scope: Scope | None = None) -> Callable[[], None]:
        """Ask `guard` of every call, or of those at the scope and beneath it, until the returned function is called.

        It does not end with the actor that added it: no guard is lost by a crash. Raises GreenroomError WRONG_KIND for
        an async function.
        """
        if awaited(guard):
            raise GreenroomError("WRONG_KIND", "a guard waits for nothing: make it a plain function, or a policy.")
        entry = _Entry(guard, scope)
        self._entries.append(entry)

        def close() -> None:
            self._entries = [each for each in self._entries if each is not entry]

        return close

    def reason(self, call: Invocation) -> str | None:
        """The first reason against the call: of the guards of all, then of those at scopes, the outermost first.

        Raises what a guard raises, and `MalformedOutcome` INVALID_VERDICT for what is neither a text nor None.
        """
        if not self._entries:
            return None
        outermost_first = () if call.scope is None else tuple(call.scope.chain())[::-1]
        for scope in (None, *outermost_first):
            for entry in self._entries:
                reason: object = entry.guard(call) if entry.scope is scope else None
                if isinstance(reason, str):
                    return reason
                if reason is not None:
                    raise MalformedOutcome(
                        "INVALID_VERDICT", f"a guard on {call.name} gave what is neither a reason nor None"
                    )
        return None
