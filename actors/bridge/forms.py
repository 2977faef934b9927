"""Forms over HTTP: a stream of those that are pending at a terminal, and POST to answer them."""

from __future__ import annotations

import logging
from typing import Any, Final, TypeGuard, cast

from greenroom.actors.bridge.connection import Frames
from greenroom.actors.bridge.endpoint import LIMIT, Endpoint, Refusal, has_utf8, refusing
from greenroom.actors.bridge.route import Route, RouteRequest, RouteResponse
from greenroom.actors.bridge.token import Token
from greenroom.actors.terminal import Notice, TerminalManager
from greenroom.protocol import wire
from greenroom.protocol.bridge import fits, id_event, pending_event
from greenroom.protocol.forms import is_form_values
from greenroom.protocol.terminals import AnswerResult, AnswerSuccess, PendingForm

__all__ = ["TERMINAL_PATH", "terminal_routes"]

TERMINAL_PATH: Final = "/terminals/:name"

logger = logging.getLogger("greenroom.bridge")


def terminal_routes(
    manager: TerminalManager,
    path: str = TERMINAL_PATH,
    *,
    token: Token = None,
    keepalive: float = 15.0,
    limit: float = LIMIT,
) -> tuple[Route, Route]:
    """The routes of all terminals of `manager`: GET for the stream of one, POST to answer its forms.

    `token` has to be presented in the header `x-orkestrel-token`; it is looked at with every request, and every
    `keepalive` seconds on a stream, so that one that is revoked streams for at most that long. `limit` is how many
    bytes a body may have (rounded down; not finite: 1,048,576).

    GET replays what is pending, then tells what happens: `pending` of what was asked of this terminal by name, and
    `expire`, also for what was withdrawn; who reads an id twice has to pass it over. `?events=all` adds `answer` and
    `withdraw`, each with the id, and, when the terminal is removed for good, `shutdown`, after which the stream ends.

    POST takes `{"id", "values"}`. What was filled in before a field was refused stays for the next attempt. It answers
    200 with the values, 422 with what was refused and why, or with no words: 401 (token), 404 (no such terminal), 413
    (too large), 400 (no JSON, or no UTF-8), 422 (another shape, or text that UTF-8 cannot hold).

    Raises ValueError for a path without `:name`, or a keepalive of nothing.
    """
    endpoint = Endpoint(manager, path, token=token, keepalive=keepalive, limit=limit)

    async def stream(request: RouteRequest) -> RouteResponse:
        everything = "all" in request.wanted("events")
        return endpoint.stream(request, _EVERYTHING if everything else _PLAIN, until_removed=everything)

    async def answer(request: RouteRequest) -> RouteResponse:
        terminal = endpoint.enter(request)
        posted = await endpoint.read(request)
        if not _is_answer(posted):
            raise Refusal(422)
        return _told(await manager.answer(terminal.name, posted["id"], posted["values"]))

    return Route("GET", path, refusing(stream)), Route("POST", path, refusing(answer))


# -------------------------------------------------------------------- what a stream says


def pending_frame(record: PendingForm, data: bytes | None = None) -> bytes:
    """The frame of a pending form, `data` in the place of its record; nothing if no client could take it in."""
    frame = pending_event(record, data)
    if fits(frame):
        return frame
    logger.warning("The form %s is too large for the clients of a bridge, and is not shown to them.", record.id)
    return b""


def _plain(notice: Notice) -> bytes:
    if notice.kind == "pending":
        # One that was parked directly, in no terminal's name, is replayed only.
        return pending_frame(notice.record) if notice.record.to == notice.to else b""
    return b"" if notice.kind == "answered" else id_event("expire", notice.id)


def _everything(notice: Notice) -> bytes:
    said = notice.frame(_plain)
    if notice.kind == "answered":
        return id_event("answer", notice.id)
    # Told first that it was withdrawn, a reader knows what the `expire` means.
    return id_event("withdraw", notice.id) + said if notice.kind == "withdrawn" else said


_PLAIN: Final = Frames(pending_frame, _plain)
_EVERYTHING: Final = Frames(pending_frame, _everything)


# -------------------------------------------------------------------- what is posted, and what comes back


def _is_answer(posted: Any) -> TypeGuard[dict[str, Any]]:
    """An id and values, none of them with text that UTF-8 cannot hold. Other members may be there."""
    if not isinstance(posted, dict):
        return False
    members = cast("dict[str, Any]", posted)
    id, values = members.get("id"), members.get("values")
    if not isinstance(id, str) or not id or not is_form_values(values):
        return False
    return has_utf8(id, *values, *values.values())


def _told(result: AnswerResult) -> RouteResponse:
    status = 200 if isinstance(result, AnswerSuccess) else 404 if result.error.reason == "target" else 422
    body = wire.encode(result, surrogates="replace")
    return RouteResponse(status, body, (("Content-Type", "application/json"),))
