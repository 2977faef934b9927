"""What an actor can be told and asked."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

__all__ = ["Message", "Request", "Withdrawn"]

R = TypeVar("R")


class Message(msgspec.Struct, frozen=True):
    """Anything an actor can be told. Subclasses are frozen structs: a message never changes on its way."""


class Request(Message, Generic[R], frozen=True):
    """A message that wants one answer of type `R`: what `await ref.ask(request)` returns."""


class Withdrawn(Message, frozen=True):
    """Told to the keeper of a reply whose asker has gone (was cancelled). Nobody waits for that reply any more."""

    reply: Any
    """The `Reply` that was taken with `Actor.take_reply`."""
