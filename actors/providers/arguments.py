"""Tool calls as a model spells them: in pieces, cut off, with arguments that may be anything."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from typing import Any, cast, final

import msgspec

from greenroom.protocol.tools import ToolCall

__all__ = ["Spelled", "calls_of", "decode", "to_json"]

CUT_OFF = "they are cut off, as the answer had become too long"


@final
class Spelled:
    """A call that is being spelled."""

    __slots__ = ("cut", "id", "name", "pieces", "ready")

    def __init__(self, id: str = "") -> None:
        self.id = id
        self.name = ""
        self.pieces: list[str] = []
        self.ready: object = None
        """Arguments that came as a whole; pieces count for more."""
        self.cut = False
        """The answer ended within it."""


def calls_of(spelled: Iterable[Spelled]) -> tuple[ToolCall, ...]:
    """The calls. One whose arguments are no object says why, and is to be answered but not run.

    An id that is missing or repeated is replaced by a new one.
    """
    calls: list[ToolCall] = []
    seen: set[str] = set()
    for each in spelled:
        id = each.id if each.id and each.id not in seen else f"call_{uuid.uuid4().hex}"
        seen.add(id)
        arguments, fault = _arguments(each)
        calls.append(ToolCall(id, each.name, arguments, invalid=fault))
    return tuple(calls)


def _arguments(spelled: Spelled) -> tuple[dict[str, Any], str | None]:
    if spelled.cut:
        return {}, CUT_OFF
    text = "".join(spelled.pieces)
    value: object = spelled.ready
    if text.strip():
        try:
            value = msgspec.json.decode(text)
        except (ValueError, RecursionError) as error:
            return {}, f"they are no JSON: {error}"
    elif value is None:
        return {}, None
    if isinstance(value, dict):
        return cast("dict[str, Any]", value), None
    return {}, f"they are {_kind(value)}, not an object"


def _kind(value: object) -> str:
    kinds: dict[type, str] = {list: "a list", str: "a text", bool: "a boolean", int: "a number", float: "a number"}
    return kinds.get(type(value), "null")


def decode(data: str | bytes) -> object:
    """JSON from a server, or None where it is none."""
    try:
        decoded: object = msgspec.json.decode(data)
    except (ValueError, RecursionError):
        return None
    return decoded


def to_json(value: object) -> str:
    """The value as compact JSON. Raises TypeError, ValueError or RecursionError for what has none."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
