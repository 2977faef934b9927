"""What carries methods out: functions by the name of their method, over what the gateway offers."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, final

from greenroom.actors.remote import RemoteServices
from greenroom.actors.terminal import TerminalManager
from greenroom.actors.workflow import WorkflowManager
from greenroom.protocol.access import Grants
from greenroom.protocol.errors import RpcError
from greenroom.protocol.rpc import Method, Params
from greenroom.protocol.tree import TreeSnapshot
from greenroom.runtime.tools import ToolManager

if TYPE_CHECKING:
    from greenroom.actors.gateway.calls import Call

__all__ = ["LARGEST", "Handler", "Handlers", "Services", "denied", "grants_of", "too_large"]

LARGEST: Final = 32 << 20
"""How many bytes a result has at most: half of what the Python client takes in a message."""

P = TypeVar("P", bound=Params)
R = TypeVar("R")


class Services(NamedTuple):
    """What a gateway offers."""

    terminals: TerminalManager
    tools: ToolManager
    workflows: WorkflowManager
    snapshot: Callable[[], TreeSnapshot]
    remote: RemoteServices


class Handler(NamedTuple):
    """The function that carries a method out, and whether it is async."""

    function: Callable[[Call, Any], Any]
    waits: bool


@final
class Handlers(dict[str, Handler]):
    """Handlers by the names of their methods.

    A plain one is done in one step; an async one may wait, and is cancelled with its call.
    """

    def serves(
        self, method: Method[P, R]
    ) -> Callable[[Callable[[Call, P], R | Awaitable[R]]], Callable[[Call, P], R | Awaitable[R]]]:
        """Let the decorated function carry the method out."""

        def register(function: Callable[[Call, P], R | Awaitable[R]]) -> Callable[[Call, P], R | Awaitable[R]]:
            self[method.name] = Handler(function, inspect.iscoroutinefunction(function))
            return function

        return register


def grants_of(call: Call) -> Grants:
    """What the caller may do."""
    return call.session.caller.grants


def denied(what: str, grant: str) -> RpcError:
    """What a caller gets who may not do what he knows could be done."""
    return RpcError(
        "DENIED",
        f"Your token does not let you {what}: it lacks the grant `{grant}` for that. Ask whoever gave it to you.",
        {"grant": grant},
    )


def too_large(size: int) -> RpcError:
    """Why a result of that many bytes is not sent."""
    return RpcError(
        "SIZE",
        f"The result has {size} bytes and may have {LARGEST}. Ask for less; who attaches is sent forms one by one.",
        {"size": size, "most": LARGEST},
    )
