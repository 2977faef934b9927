"""What is wrong with a document, told by the member at fault and never by its value.

msgspec's own messages quote values where it expected one of several words, and call types by Python's names.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

__all__ = ["Fault", "explain"]

_LONGEST: Final = 128
"""The most characters of a member's name that are repeated: an unknown one is the sender's own text."""

_AT = re.compile(r" - at (?:`key` in )?`\$(.*)`$", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*?)`", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*?)`(?= - at `\$|$)", re.DOTALL)
_TYPES = re.compile(r"Expected `([^`]*)`, got `([^`]*)`")
_BOUND = re.compile(r"Expected `([^`]*)` ((?:of length )?[<>]=? -?[0-9.e+]+)")

_JSON_WORDS: Final = {
    "int": "an integer",
    "str": "a string",
    "float": "a number",
    "bool": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}


class Fault(msgspec.Struct, frozen=True):
    """`field` is the member at fault, with the way to it (`values.name`); empty if it is the document itself."""

    field: str
    words: str = "does not fit"


def explain(problem: msgspec.DecodeError) -> Fault:
    """The fault that msgspec found."""
    text = str(problem)
    at = _AT.search(text)
    place = (at[1] if at else "").lstrip(".")
    if found := _MISSING.match(text):
        return Fault(_join(place, found[1]), "is missing")
    if found := _UNKNOWN.match(text):
        return Fault(_join(place, found[1]), "is not known")
    if found := _TYPES.match(text):
        return Fault(_join(place), f"must be {_words(found[1])}, not {_words(found[2])}")
    if found := _BOUND.match(text):
        return Fault(_join(place), f"must be {_words(found[1])} {found[2]}")
    if "out of range" in text:
        return Fault(_join(place), "is a number out of range")
    return Fault(_join(place))


def _join(*names: str) -> str:
    return ".".join(name for name in names if name)[:_LONGEST]


def _words(types: str) -> str:
    return " or ".join(_JSON_WORDS.get(name, name) for name in types.split(" | "))
