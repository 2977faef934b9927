"""What was pressed, read from what a terminal sends for it."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from greenroom.protocol.forms import sanitize_display_text

__all__ = ["Key", "parse_key", "split_keys"]


class Key(Struct, frozen=True):
    """One key.

    `name` is a word (`return`, `backspace`, `tab`, `escape`, `space`, `up`, `down`, `left`, `right`, `home`, `end`,
    `delete`), a letter together with `ctrl`, or the character itself; it is empty for what is not known.
    """

    name: str
    sequence: str
    """All that the terminal sent for it."""
    ctrl: bool = False
    meta: bool = False
    """It came as an escape sequence that is known here."""
    shift: bool = False
    """It is a letter and not in lower case."""


_NAMED: Final = {
    "\r": "return",
    "\n": "return",
    "\r\n": "return",
    "\b": "backspace",
    "\x7f": "backspace",
    "\t": "tab",
    "\x1b": "escape",
    " ": "space",
}
_CONTROLLED: Final = {"\x01": "a", "\x03": "c", "\x04": "d", "\x05": "e", "\x15": "u"}

# ECMA-48 cursor keys, in normal and in application mode, and the numbered keys of the VT220 and of rxvt.
_ESCAPED: Final = {
    f"\x1b{introducer}{final}": name
    for introducer in "[O"
    for final, name in {"A": "up", "B": "down", "C": "right", "D": "left"}.items()
} | {
    f"\x1b[{ending}": name
    for name, endings in {"home": ("H", "1~", "7~"), "end": ("F", "4~", "8~"), "delete": ("3~",)}.items()
    for ending in endings
}

_KEYS: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO[ -~]|\r\n|.", re.DOTALL)


def split_keys(chunk: str) -> list[str]:
    """What each key of a chunk sent, in order; nothing is lost. A chunk holds several after a paste."""
    return _KEYS.findall(chunk)


def parse_key(chunk: str) -> Key:
    """The key that sends `chunk`; never raises. Of several characters the first gives the name."""
    if (name := _NAMED.get(chunk)) is not None:
        return Key(name, chunk)
    if (name := _CONTROLLED.get(chunk)) is not None:
        return Key(name, chunk, ctrl=True)
    if (name := _ESCAPED.get(chunk)) is not None:
        return Key(name, chunk, meta=True)
    first = sanitize_display_text(chunk[:1])
    return Key(first, chunk, shift=first != first.lower())
