"""The outcome of an edit, which is refused by a value rather than by an exception."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, ParamSpec, TypeAlias, TypeVar

from greenroom.protocol.errors import WorkflowError

__all__ = ["Edit", "Failure", "Success", "boxed"]

T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Success(Generic[T]):
    """The edit was made; `value` is what it concerned."""

    value: T
    success: Literal[True] = True


@dataclass(frozen=True, slots=True)
class Failure:
    """The edit was refused; nothing has changed and nothing was announced."""

    error: WorkflowError
    success: Literal[False] = False


Edit: TypeAlias = Success[T] | Failure


def boxed(edit: Callable[P, T]) -> Callable[P, Edit[T]]:
    """The method with its `WorkflowError` handed back instead of raised."""

    @functools.wraps(edit)
    def attempt(*args: P.args, **kwargs: P.kwargs) -> Edit[T]:
        try:
            return Success(edit(*args, **kwargs))
        except WorkflowError as error:
            return Failure(error)

    return attempt
