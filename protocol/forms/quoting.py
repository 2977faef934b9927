"""Names of unknown origin, cut and escaped so that they fit into a sentence or an error's context."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

__all__ = ["listed", "quoted", "shown"]

_LENGTH: Final = 80
"""How many characters of a name are told."""

_COUNT: Final = 10
"""How many of the known names are told."""


def shown(name: str) -> str:
    """The name as a JSON text of bounded length; half a surrogate pair is spelled out, since it has no UTF-8."""
    cut = name if len(name) <= _LENGTH else f"{name[:_LENGTH]}..."
    return cut if cut.isascii() else cut.encode("utf-8", "backslashreplace").decode()


def quoted(name: str) -> str:
    """The name in quotes, for a sentence."""
    return repr(shown(name))


def listed(names: Iterable[str]) -> str:
    """The first of the names, for a sentence that tells the known ones; `none` if there are none."""
    known = list(names)
    more = f" and {len(known) - _COUNT} more" if len(known) > _COUNT else ""
    return ", ".join(map(quoted, known[:_COUNT])) + more if known else "none"
