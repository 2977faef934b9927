"""The same terminals for clients that know single questions only, at a path of their own.

Nothing of this fits a client that knows forms, and the other way round, so the two never share a path. A form that is
no question is not seen here, and cannot be answered.
"""

from __future__ import annotations

from typing import Any, Final, TypeGuard, cast

from greenroom.actors.bridge.connection import Frames
from greenroom.actors.bridge.endpoint import LIMIT, Endpoint, Refusal, has_utf8, refusing
from greenroom.actors.bridge.forms import pending_frame
from greenroom.actors.bridge.route import Route, RouteRequest, RouteResponse
from greenroom.actors.bridge.token import Token
from greenroom.actors.terminal import Notice, Terminal, TerminalManager
from greenroom.protocol import wire
from greenroom.protocol.bridge import id_event
from greenroom.protocol.questions import answer_values, read_question
from greenroom.protocol.terminals import AnswerFailure, PendingForm

__all__ = ["QUESTION_PATH", "question_routes"]

QUESTION_PATH: Final = "/questions/:name"


def question_routes(
    manager: TerminalManager,
    path: str = QUESTION_PATH,
    *,
    token: Token = None,
    keepalive: float = 15.0,
    limit: float = LIMIT,
) -> tuple[Route, Route]:
    """The routes of all terminals of `manager` for the questions that are put to them; arguments as `terminal_routes`
    has them.

    GET streams `pending` with a question's record, and `expire`. POST takes `{"id", "value"}`, the value as it is, and
    answers 204, or 422 with the text `unknown` or `rejected`, or 404 with the text `terminal`; without words it refuses
    as the other routes do.
    """
    endpoint = Endpoint(manager, path, token=token, keepalive=keepalive, limit=limit)

    async def stream(request: RouteRequest) -> RouteResponse:
        return endpoint.stream(request, _FRAMES)

    async def answer(request: RouteRequest) -> RouteResponse:
        terminal = endpoint.enter(request)
        posted = await endpoint.read(request)
        if not _is_answer(posted):
            raise Refusal(422)
        return await _answered(manager, terminal, posted["id"], posted["value"])

    return Route("GET", path, refusing(stream)), Route("POST", path, refusing(answer))


# -------------------------------------------------------------------- what a stream says


def _pending(record: PendingForm) -> bytes:
    question = read_question(record)
    return b"" if question is None else pending_frame(record, wire.encode(question, surrogates="replace"))


def _notice(notice: Notice) -> bytes:
    if notice.kind == "answered" or read_question(notice.record) is None:
        return b""
    if notice.kind != "pending":
        return id_event("expire", notice.id)
    return _pending(notice.record) if notice.record.to == notice.to else b""


_FRAMES: Final = Frames(_pending, _notice)


# -------------------------------------------------------------------- what is posted, and what comes back


def _is_answer(posted: Any) -> TypeGuard[dict[str, Any]]:
    if not isinstance(posted, dict):
        return False
    members = cast("dict[str, Any]", posted)
    id = members.get("id")
    return isinstance(id, str) and id != "" and "value" in members and has_utf8(id, members["value"])


async def _answered(manager: TerminalManager, terminal: Terminal, id: str, value: object) -> RouteResponse:
    if manager.terminal(terminal.name) is None:
        return _text(404, "terminal")
    record = terminal.pending(id)
    if record is None or read_question(record) is None:
        return _text(422, "unknown")
    values = answer_values(value)
    if values is None:
        return _text(422, "rejected")
    result = await manager.answer(terminal.name, id, values)
    if not isinstance(result, AnswerFailure):
        return RouteResponse(204)
    return _text(404, "terminal") if result.error.reason == "target" else _text(422, result.error.reason)


def _text(status: int, text: str) -> RouteResponse:
    return RouteResponse(status, text.encode(), (("Content-Type", "text/plain; charset=utf-8"),))
