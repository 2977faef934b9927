"""Logs for tests: a session in memory, and one with a turn in the middle of a batch of calls."""

from __future__ import annotations

from typing import Any

from greenroom.actors.session import Session
from greenroom.protocol.errors import SessionError
from greenroom.protocol.sessions import SessionEvent, SessionHeader

__all__ = ["answer", "ask", "begin", "code_of", "fresh", "log_of", "result", "start"]


def fresh(id: str = "s", **header: Any) -> Session:
    return Session(SessionHeader(id=id, created_at=0, **header), wall_clock=lambda: 1.5)


def begin(session: Session) -> Session:
    """Open a turn and a step in it."""
    session.append("user/message", {"content": "go"})
    session.append("turn/start", {})
    session.append("step/start", {})
    return session


def ask(session: Session, *ids: str, name: str = "press") -> int:
    """An answer that asks for these calls; its number."""
    calls = [{"id": id, "name": name, "arguments": {"button": place}} for place, id in enumerate(ids)]
    return session.append("assistant/message", {"content": "", "calls": calls}).seq


def start(session: Session, batch: int, position: int) -> int:
    """The call at this position begins; its number."""
    call = session.event(batch).data.calls[position]
    data = {"callId": call.id, "name": call.name, "arguments": call.arguments, "position": position}
    return session.append("tool/call", data, sources=[batch]).seq


def result(session: Session, called: int, content: str = "ok") -> int:
    """A call is over; the number of its result."""
    call = session.event(called).data
    data: dict[str, Any] = {"callId": call.call_id, "name": call.name, "content": content}
    if call.position is not None:
        data["position"] = call.position
    return session.append("tool/result", data, sources=[called]).seq


def answer(session: Session, content: str) -> None:
    """A turn from beginning to end."""
    begin(session)
    session.append("assistant/message", {"content": content})
    session.append("step/end", {})
    session.append("turn/end", {"reason": "completed"})


def log_of(events: list[SessionEvent] | tuple[SessionEvent, ...]) -> list[str]:
    return [event.type for event in events]


def code_of(function: Any, *args: Any, **options: Any) -> str:
    """The code of the SessionError that this raises."""
    try:
        function(*args, **options)
    except SessionError as error:
        return error.code
    return "none"
