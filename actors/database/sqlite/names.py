"""Names of tables, columns and indexes as SQLite holds them.

SQLite takes no notice of the case of ASCII letters in a name, ends a name at NUL, and keeps names that begin with
`sqlite_` to itself. So a name is written such that every other one is another name to SQLite as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

__all__ = ["METADATA", "index_name", "physical", "quoted"]

METADATA: Final = "_metadata"
"""The table that holds the stamp; no declared table has a physical name that begins so."""

_ESCAPED = re.compile("[A-Z^\0]")
_RESERVED = ("_", "sqlite_")


def physical(name: str) -> str:
    """The name as SQLite holds it; different names have different ones, whatever their case."""
    escaped = _ESCAPED.sub(lambda found: _escape(found[0]), name)
    return f"^.{escaped}" if escaped.startswith(_RESERVED) else escaped


def quoted(name: str) -> str:
    """The physical name as an identifier within a statement."""
    inner = physical(name).replace('"', '""')
    return f'"{inner}"'


def index_name(table: str, columns: Iterable[str]) -> str:
    """The identifier of the index on these columns. No table can have its name, nor an index on others."""
    parts = "_".join(f"{len(name)}_{name}" for name in (table, *columns))
    inner = physical(f"idx_{parts}").replace('"', '""')
    return f'"^.{inner}"'


def _escape(character: str) -> str:
    if character == "^":
        return "^^"
    return "^0" if character == "\0" else f"^{character.lower()}"
