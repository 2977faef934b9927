"""The gate for values that nobody vouches for: what is JSON passes as a copy of its own, everything else is named.

Values are told apart by their exact type, so that no method of a subclass ever runs, and the walk keeps its own stack,
so that neither depth nor a circle can exhaust the interpreter's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, TypeGuard

from msgspec import Struct

__all__ = [
    "MAX_INTEGER_BITS",
    "MAX_LEVELS",
    "MAX_NODES",
    "NotJson",
    "clone_json",
    "encodable",
    "is_array",
    "is_record",
    "parse_json_value",
    "place",
]

MAX_NODES: Final = 262_144
"""How many values a copy may hold: the root, every container, every leaf; what is shared counts once a place."""

MAX_LEVELS: Final = 512
"""How many containers may stand inside each other. Python's JSON decoders give up not far beyond."""

MAX_INTEGER_BITS: Final = 14_000
"""How large an integer may be. Python turns none of more than 4,300 digits into text, or back."""


class NotJson(Struct, frozen=True):
    """Why a value was turned away: `path` leads to the part at fault (keys, indices as text), which is `reason`."""

    path: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        return f"{place(self.path) or 'the value'} is {self.reason}"


def place(path: tuple[str, ...] | list[str]) -> str:
    """A path as people write it: `steps[0].name`."""
    text = ""
    for key in path:
        text += f"[{key}]" if key.isdecimal() else f".{key}" if text else key
    return text


def encodable(text: str) -> bool:
    """Whether the text has a UTF-8 form, which a lone surrogate has not."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Whether the value is a list, and none of a subclass."""
    return type(value) is list


def is_record(value: object) -> TypeGuard[dict[Any, Any]]:
    """Whether the value is a dict, and none of a subclass. Its keys may be anything."""
    return type(value) is dict


def clone_json(
    value: object, *, record: bool = False, most: float = MAX_NODES, levels: float = MAX_LEVELS
) -> Any | NotJson:
    """A deep copy of a JSON value, or a `NotJson` that says where it stops being one. Never raises.

    JSON is `None`, `bool`, an `int` of up to `MAX_INTEGER_BITS`, a finite `float`, a `str` without lone surrogates, a
    `list` of JSON, and a `dict` of JSON with such `str` keys: those very types, no subclass, no tuple. Refused are
    circles, more values than the `most` and more containers inside each other than `levels`; with `record`, also a root
    that is no dict. A value that stands in two places is copied twice.
    """
    if record and not is_record(value):
        return NotJson((), "no object")
    if not (is_record(value) or is_array(value)):
        flaw = _flaw(value)
        return value if flaw is None else NotJson((), flaw)
    nodes = 0
    holder: list[Any] = []
    opened = [_Open(id(holder), 0, _entries([value]), holder)]
    circle: set[int] = set()
    while opened:
        container = opened[-1]
        listed = is_array(container.copy)
        for key, child in container.rest:
            nodes += 1
            sound = listed or (type(key) is str and encodable(key))
            reason = _flaw(child) if sound else "an object with a key that is no plain text"
            nested = is_array(child) or is_record(child)
            if nodes > most:
                reason = f"beyond the {most:,} values that are taken"
            elif nested and id(child) in circle:
                reason = "a container that holds itself"
            elif nested and len(circle) >= levels:
                reason = f"beyond the {levels} levels that are taken"
            if reason is not None:
                path = [str(each.key) for each in opened[1:]] + ([str(key)] if sound else [])
                return NotJson(tuple(path[1:]), reason)  # the first key is the root's own, in the holder
            copy: Any = {} if is_record(child) else [] if is_array(child) else child
            if listed:
                container.copy.append(copy)
            else:
                container.copy[key] = copy
            if nested:
                circle.add(id(child))
                opened.append(_Open(id(child), key, _entries(child), copy))
                break
        else:
            circle.discard(opened.pop().identity)
    return holder[0]


def parse_json_value(value: object) -> Any | NotJson:
    """The very value that was given if it is JSON (by the rules of `clone_json`), or a `NotJson`. Never raises."""
    copy = clone_json(value)
    return copy if isinstance(copy, NotJson) else value


class _Open(NamedTuple):
    """A container in the middle of being copied: whose it is, its place in the one around it, and what is left."""

    identity: int
    key: Any
    rest: Iterator[tuple[Any, object]]
    copy: Any


def _entries(container: object) -> Iterator[tuple[Any, object]]:
    if is_record(container):
        yield from container.items()
    elif is_array(container):
        yield from enumerate(container)


def _flaw(value: object) -> str | None:
    """What keeps a value from being JSON, its parts aside."""
    kind = type(value)
    if value is None or kind is bool or kind is dict or kind is list:
        return None
    if type(value) is int:
        small = value.bit_length() <= MAX_INTEGER_BITS
        return None if small else f"an integer of more than {MAX_INTEGER_BITS:,} bits, which cannot be written"
    if type(value) is str:
        return None if encodable(value) else "text with a lone surrogate"
    if type(value) is float:
        return None if math.isfinite(value) else "a number that is not finite"
    return "of a type that JSON lacks"
