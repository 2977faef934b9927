"""What SQLite's own functions cannot do: it folds the case of ASCII only, has classes in GLOB, and ends text at NUL."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import sqlite_utils

from greenroom.protocol.database import Matcher, compile_glob, compile_like

__all__ = ["register_functions"]


def register_functions(database: sqlite_utils.Database, tick: Callable[[], object]) -> None:
    """Register them on a connection. One that takes long calls `tick()` now and then, which may raise to end it."""

    @lru_cache(maxsize=16)
    def like(pattern: str) -> Matcher:
        return compile_like(pattern, tick)

    @lru_cache(maxsize=16)
    def glob(pattern: str) -> Matcher:
        return compile_glob(pattern, tick)

    def greenroom_like(pattern: str, text: str) -> bool:
        return like(pattern)(text)

    def greenroom_glob(pattern: str, text: str) -> bool:
        return glob(pattern)(text)

    def greenroom_starts(prefix: str, text: str) -> bool:
        return text.startswith(prefix)

    def greenroom_ends(suffix: str, text: str) -> bool:
        return text.endswith(suffix)

    def greenroom_value(encoded: str) -> Any:
        return json.loads(encoded)

    functions: tuple[Callable[..., Any], ...] = (
        greenroom_like,
        greenroom_glob,
        greenroom_starts,
        greenroom_ends,
        greenroom_value,
    )
    for function in functions:
        database.register_function(function, deterministic=True)  # pyright: ignore[reportUnknownMemberType]  # untyped there
