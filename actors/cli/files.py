"""Files of JSON that a command is given."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any, cast

import trio

from greenroom.actors.console import LineReader
from greenroom.protocol.errors import ConfigError

__all__ = ["parse_json", "read_json", "read_object", "spoken"]


async def read_object(path: Path) -> dict[str, Any] | None:
    """The JSON object in the file; None if it holds some other JSON. Raises as `read_json` does."""
    value = await read_json(path)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


async def read_json(path: Path) -> Any:
    """The JSON value in the file, or in standard input, up to its end, for `-`. Raises ConfigError FILE or JSON.

    Cancelled, or interrupted by Ctrl-C, it stops at once.
    """
    try:
        return parse_json(await _read_input() if str(path) == "-" else await trio.Path(path).read_text("utf-8"))
    except OSError as error:
        raise ConfigError("FILE", f"{spoken(path)} cannot be read: {error.strerror}.", {"file": str(path)}) from None
    except (ValueError, RecursionError) as error:
        raise ConfigError("JSON", f"{spoken(path)} is no JSON: {error}.", {"file": str(path)}) from None


def spoken(path: Path) -> str:
    """What a message calls the file."""
    return "Standard input" if str(path) == "-" else str(path)


def parse_json(text: str) -> Any:
    """The JSON value that the text is. Raises ValueError and RecursionError.

    NaN, which Python would take, is refused (RFC 8259, section 6), and so is a number that no double can hold: it would
    leave as null.
    """
    return json.loads(text, parse_constant=_finite, parse_float=_finite)


def _finite(literal: str) -> float:
    number = float(literal)
    if not math.isfinite(number):
        raise ValueError(f"{literal} is no number that can be held")
    return number


async def _read_input() -> str:
    if sys.stdin is None:
        raise ConfigError("FILE", "Standard input is closed: name a file, or pipe the JSON in.", {"file": "-"})
    # Not in a thread: one that waits for a person to type could not be interrupted.
    return await LineReader(sys.stdin.fileno()).rest() or ""
