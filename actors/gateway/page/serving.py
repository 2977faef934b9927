"""The files of the page, and the headers that hold a browser to them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from greenroom.actors.gateway.http import HttpRequest, HttpResponse, text_response
from greenroom.actors.gateway.routes import Routes
from greenroom.protocol import wire
from greenroom.protocol.forms import format_message
from greenroom.protocol.forms.messages import TAKES
from greenroom.protocol.forms.schema import CONTROLS, RULES

__all__ = ["add_page"]

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "img-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        # No text can become markup in a browser that knows trusted types: the page makes none.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
"""What the page may load and do (Content Security Policy, level 3): nothing that does not come from these files."""

_HEADERS: Final = (
    ("Content-Security-Policy", POLICY),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)

_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}

_INDEX: Final = "index.html"
_WORDING: Final = "wording.js"


def add_page(routes: Routes) -> None:
    """Serve the page at `/`, and what it loads beneath `/page/`."""
    files = _load()

    async def index(request: HttpRequest, names: dict[str, str]) -> HttpResponse:
        return files[_INDEX]

    async def file(request: HttpRequest, names: dict[str, str]) -> HttpResponse:
        return files.get(names["file"]) or text_response(404, "The page has no such file.")

    for method in ("GET", "HEAD"):
        routes.add(method, "/", index)
        routes.add(method, "/page/:file", file)


@cache
def _load() -> dict[str, HttpResponse]:
    """By file name; read once, at the start, since each is small."""
    bodies = {
        file.name: file.read_bytes() for file in Path(__file__).parent.iterdir() if _extension(file.name) in _TYPES
    }
    bodies[_WORDING] = _wording()
    return {
        name: HttpResponse(200, body, content_type=_TYPES[_extension(name)], headers=_HEADERS)
        for name, body in bodies.items()
    }


def _extension(name: str) -> str:
    return name.rpartition(".")[2]


def _wording() -> bytes:
    """What the page says of an answer while it is typed: the server's own sentences, so that there is one set."""
    rules = {control: {rule: format_message(control, rule) for rule in RULES} for control in CONTROLS}
    return b"export const RULES = %b;\nexport const TAKES = %b;\n" % (wire.encode(rules), wire.encode(TAKES))
