"""JSON as it leaves this process: compact, UTF-8, numbers as ECMAScript prints them.

msgspec writes `5.0`, `-0.0` and `1e16` where `JSON.stringify` (ECMA-262, 25.5.2) writes `5`, `0` and
`10000000000000000`. A client that compares or hashes what it got must not see who wrote it.
"""

from __future__ import annotations

import re
from typing import Any, Literal, cast

import msgspec

from greenroom.protocol.text import number_text, well_formed

__all__ = ["encode"]

_ENCODER = msgspec.json.Encoder()

_HINT = re.compile(rb"[0-9][.e][-+0-9]")
_FLOAT = re.compile(rb"[:,\[]-?[0-9]+[.e]")
"""What a float looks like in compact JSON, after a hint that is found thirty times as fast. Text may look like it too;
then `_TOKEN` decides."""

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?')
"""A text, which stays, or a number. Both quantifiers within a text are possessive: it is read once."""


def encode(value: Any, *, surrogates: Literal["refuse", "replace"] = "refuse") -> bytes:
    """`value`, a msgspec struct or JSON value, as compact JSON.

    A float prints as ECMAScript prints the number, one that is not finite as `null`; an `int` keeps its digits,
    however many. A lone surrogate has no UTF-8: it is refused with `UnicodeEncodeError`, or, where the text is only
    shown, replaced by U+FFFD. Raises `TypeError` for what JSON cannot hold, and `RecursionError` for what is nested too
    deeply.
    """
    try:
        data = _ENCODER.encode(value)
    except UnicodeEncodeError:
        if surrogates == "refuse":
            raise
        data = _ENCODER.encode(_well_formed(msgspec.to_builtins(value)))
    if type(value) is float or (_HINT.search(data) and _FLOAT.search(data)):
        return _TOKEN.sub(_token, data)
    return data


def _token(match: re.Match[bytes]) -> bytes:
    token = match[0]
    if token[0] == 0x22 or not (b"." in token or b"e" in token):
        return token
    return number_text(float(token)).encode()


def _well_formed(value: Any) -> Any:
    """The same builtins with every lone surrogate replaced, also in keys."""
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, dict):
        return {_well_formed(key): _well_formed(entry) for key, entry in cast("dict[object, object]", value).items()}
    if isinstance(value, list | tuple):
        return [_well_formed(entry) for entry in cast("list[object]", value)]
    return value
