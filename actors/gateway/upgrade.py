"""The request by which an HTTP connection becomes a WebSocket (RFC 6455, section 4.2.1)."""

from __future__ import annotations

import base64
import binascii

from greenroom.actors.gateway.http import HttpRequest, HttpResponse, text_response

__all__ = ["upgrade_objection"]

_OFFER = (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Version", "13"))


def upgrade_objection(request: HttpRequest) -> HttpResponse | None:
    """The response to a request at the path of a WebSocket that does not open one; None if it does."""
    if request.method != "GET":
        return text_response(405, "A WebSocket is opened with GET.", ("Allow", "GET"))
    wanted = "upgrade" in request.listed("connection") and request.listed("upgrade") == ["websocket"]
    if request.version == "1.0" or not wanted:
        return text_response(426, "Here is a WebSocket: ask for an upgrade.", *_OFFER)
    if request.values("sec-websocket-version") != ["13"]:
        return text_response(426, "This WebSocket speaks version 13.", *_OFFER)
    keys = request.values("sec-websocket-key")
    if len(keys) != 1 or not _is_key(keys[0]):
        return text_response(400, "A WebSocket handshake has one Sec-WebSocket-Key, 16 bytes in base64.")
    if request.values("transfer-encoding") or request.values("content-length") not in ([], ["0"]):
        return text_response(400, "A WebSocket handshake has no body.")
    return None


def _is_key(text: str) -> bool:
    try:
        return len(base64.b64decode(text, validate=True)) == 16
    except (binascii.Error, ValueError):
        return False
