"""The page's files, the headers they come with, and what the page needs of the wire."""

from __future__ import annotations

from http.client import HTTPConnection, HTTPResponse

import pytest
from msgspec import UNSET

from greenroom.actors.client import connect
from greenroom.actors.system import open_runtime
from greenroom.protocol.forms import Form
from greenroom.protocol.rpc import Attachment, AttachTerminal, FormPending
from greenroom.protocol.terminals import AnswerSuccess
from tests.page.stage import Stage

FORM = {"fields": [{"control": "text", "name": "x", "default": "held"}]}


def fetch(stage: Stage, path: str, method: str = "GET") -> tuple[HTTPResponse, str]:
    connection = HTTPConnection("127.0.0.1", stage.port)
    try:
        connection.request(method, path)
        response = connection.getresponse()
        return response, response.read().decode()
    finally:
        connection.close()


def policy(response: HTTPResponse) -> dict[str, str]:
    directives = (response.headers["Content-Security-Policy"] or "").split("; ")
    return dict(directive.split(" ", 1) for directive in directives)


def test_the_page_may_load_its_own_files_and_nothing_else(stage: Stage) -> None:
    response, text = fetch(stage, "/")
    assert (response.status, response.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert policy(response) == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "connect-src": "'self'",
        "img-src": "'self'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    assert response.headers["Referrer-Policy"] == "no-referrer"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert "://" not in text


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("page.js", "text/javascript; charset=utf-8"),
        ("wording.js", "text/javascript; charset=utf-8"),
        ("page.css", "text/css; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
    ],
)
def test_each_file_comes_with_its_type_and_the_policy(stage: Stage, name: str, kind: str) -> None:
    response, text = fetch(stage, f"/page/{name}")
    assert (response.status, response.headers["Content-Type"]) == (200, kind)
    assert policy(response) == policy(fetch(stage, "/")[0])
    assert text
    assert fetch(stage, f"/page/{name}", "HEAD")[1] == ""


@pytest.mark.parametrize("path", ["/page/", "/page/serving.py", "/page/..%2Fhttp.py", "/page/__init__.py", "/page.js"])
def test_there_is_nothing_else_to_fetch(stage: Stage, path: str) -> None:
    assert fetch(stage, path)[0].status == 404


def test_the_page_is_only_read(stage: Stage) -> None:
    response, _ = fetch(stage, "/", "POST")
    assert (response.status, response.headers["Allow"]) == (405, "GET, HEAD")


async def test_a_client_learns_how_long_there_is_to_answer() -> None:
    async with open_runtime(timeout=60) as runtime:
        gateway = await runtime.serve()
        terminal = runtime.terminals.add("ops")
        short, forever = [await terminal.park(Form(FORM), timeout=timeout) for timeout in (30, None)]
        async with connect(gateway.url) as client, client.attach("ops") as ops:
            attachment = await client.call("terminal/attach", AttachTerminal(terminal="ops"), Attachment)
            assert attachment.remaining.keys() == {short}
            assert 29_000 < attachment.remaining[short] <= 30_000
            assert forever in ops.pending
            later = await terminal.park(Form(FORM))
            event = await anext(ops)
            assert isinstance(event, FormPending)
            assert event.form.id == later
            assert isinstance(event.remaining, float)
            assert 59_000 < event.remaining <= 60_000
            await terminal.park(Form(FORM), timeout=None)
            event = await anext(ops)
            assert isinstance(event, FormPending)
            assert event.remaining is UNSET


async def test_null_takes_away_what_a_field_began_with() -> None:
    async with open_runtime() as runtime:
        gateway = await runtime.serve()
        terminal = runtime.terminals.add("ops")
        async with connect(gateway.url) as client:
            id = await terminal.park(Form(FORM))
            assert await client.answer("ops", id, {}) == AnswerSuccess(value={"x": "held"})
            id = await terminal.park(Form(FORM))
            assert await client.answer("ops", id, {"x": None}) == AnswerSuccess(value={})
