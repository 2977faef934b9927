"""Whom the running code belongs to: where every wait that it begins starts, and which patient deadlines it is under."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from greenroom.runtime.lineage import LINEAGE, Lineage

if TYPE_CHECKING:
    from greenroom.runtime.actor import Actor
    from greenroom.runtime.patience import PatientScope
    from greenroom.runtime.waits import Node

__all__ = ["AROUND", "CURRENT", "as_nobody", "belong_to", "current_actor", "current_node"]

P = ParamSpec("P")
R = TypeVar("R")

CURRENT: ContextVar[Node | None] = ContextVar("greenroom_current_node", default=None)
"""Set by the runtime alone: an actor's loop sets its handler node, `Actor.start_soon` its work node."""

AROUND: ContextVar[tuple[PatientScope, ...]] = ContextVar("greenroom_patient_scopes", default=())
"""The patient scopes around the code, the outermost first. A task that was started in one may outlive it."""


def belong_to(node: Node | None, lineage: Lineage) -> None:
    """Let the running task be a party of its own from now on: its place tells what it is beneath, not who began it."""
    CURRENT.set(node)
    AROUND.set(())
    LINEAGE.set(lineage)


def current_node() -> Node | None:
    """The node that a wait begun here starts at. None: outside the tree, where only names close circles."""
    return CURRENT.get()


def as_nobody(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a plain function that is somebody else's, such as a listener: the tasks that it starts wait for themselves.

    It cannot wait itself; and whoever calls it goes on meanwhile or afterwards, whatever those tasks wait for.
    """
    caller, around = CURRENT.set(None), AROUND.set(())
    try:
        return function(*args, **kwargs)
    finally:
        CURRENT.reset(caller)
        AROUND.reset(around)


def current_actor() -> Actor | None:
    """The actor in whose handler or work the code runs, or None outside the tree."""
    node = CURRENT.get()
    place = None if node is None else node.place
    return None if place is None else place.actor
