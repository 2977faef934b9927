"""What kind of JSON value something is, for the type checkers as well."""

from __future__ import annotations

from typing import Any, TypeGuard

__all__ = ["is_list", "is_number", "is_object"]


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """A JSON object."""
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    """A JSON array; a tuple is one too."""
    return isinstance(value, list | tuple)


def is_number(value: Any) -> TypeGuard[int | float]:
    """A JSON number, which a bool is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)
