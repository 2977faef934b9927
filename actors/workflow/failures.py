"""What was raised, as a run takes it: the errors in it, and what they say."""

from __future__ import annotations

from typing import cast

__all__ = ["leaves", "said"]


def leaves(error: BaseException) -> list[BaseException]:
    """The errors in a group, however deep, in order: a nursery of the handler's makes a group even of one."""
    found: list[BaseException] = []
    rest = [error]
    while rest:
        first = rest.pop()
        if isinstance(first, BaseExceptionGroup):
            rest += reversed(cast("BaseExceptionGroup[BaseException]", first).exceptions)
        else:
            found.append(first)
    return found


def said(error: BaseException) -> str:
    """The text of an error, which may be empty; the name of its type if it cannot be turned into text."""
    try:
        return str(error)
    except Exception:
        return type(error).__name__
