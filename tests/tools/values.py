"""Values for property tests: JSON of every kind, and what may come in its place."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

__all__ = ["hostile_values", "json_values"]

_NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
_TEXTS = st.text(max_size=5) | st.sampled_from(["1", " 42 ", "0x1F", "1e3", "true", "null", "a", " a ", ""])


def json_values() -> st.SearchStrategy[Any]:
    """JSON values, also large numbers and texts that spell other values."""
    return _nested(st.none() | st.booleans() | _NUMBERS | _TEXTS, _TEXTS)


def hostile_values() -> st.SearchStrategy[Any]:
    """What no decoder gives: circles, deep nesting, foreign types and keys, texts and numbers that JSON lacks."""
    leaves = st.sampled_from([math.nan, math.inf, 10**400, "\ud800", b"x", (), {1}, object(), print])
    made = st.builds(circle) | st.builds(deep) | st.builds(Raising) | st.builds(RaisingText) | st.builds(armed)
    keys: st.SearchStrategy[Any] = _TEXTS | st.integers() | st.none() | st.just("\ud800")
    return _nested(leaves | made | json_values(), keys)


class Raising:
    """Raises whatever is asked of it."""

    __hash__ = None  # type: ignore[assignment]  # not even that

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("asked")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("compared")

    def __bool__(self) -> bool:
        raise RuntimeError("judged")


class RaisingText(str):
    """Text that raises when it is compared, though its hash is that of a key that is looked for."""

    def __hash__(self) -> int:
        return hash("operation")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("compared")

    def strip(self, chars: str | None = None, /) -> str:
        raise RuntimeError("stripped")


def armed() -> dict[Any, Any]:
    """A dict with a key that raises when `operation` is looked up in it."""
    return {RaisingText("x"): 1, "path": "p"}


def circle() -> dict[str, Any]:
    value: dict[str, Any] = {"operation": "read"}
    value["path"] = value["own"] = [value]
    return value


def deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(5000):
        value = [value]
    return value


def _nested(leaves: st.SearchStrategy[Any], keys: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    def containers(parts: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.lists(parts, max_size=4) | st.dictionaries(keys, parts, max_size=4)

    return st.recursive(leaves, containers, max_leaves=12)
