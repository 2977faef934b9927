"""Terminals over plain HTTP: an event stream of what is pending, and POST to answer.

The routes know no server. A gateway mounts them, `asgi_app` mounts them elsewhere, and a test calls them by hand.
"""

from greenroom.actors.bridge.asgi import asgi_app
from greenroom.actors.bridge.connection import TerminalConnection
from greenroom.actors.bridge.forms import TERMINAL_PATH, terminal_routes
from greenroom.actors.bridge.questions import QUESTION_PATH, question_routes
from greenroom.actors.bridge.route import ByteStream, Route, RouteRequest, RouteResponse
from greenroom.actors.bridge.token import Token

__all__ = [
    "QUESTION_PATH",
    "TERMINAL_PATH",
    "ByteStream",
    "Route",
    "RouteRequest",
    "RouteResponse",
    "TerminalConnection",
    "Token",
    "asgi_app",
    "question_routes",
    "terminal_routes",
]
