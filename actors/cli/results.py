"""What a tool returned, shown to a person: rows as a table, text as text, everything else as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

from rich.table import Table
from rich.text import Text

from greenroom.actors.cli.drawing import plain
from greenroom.actors.cli.printing import print_json, screen
from greenroom.protocol.schemas.gates import is_array, is_record

__all__ = ["print_result", "print_table"]


class _Rows(NamedTuple):
    """Rows, and what else the result says."""

    rows: Sequence[Mapping[str, Any] | None]
    rest: Mapping[str, Any]


def print_result(value: object) -> None:
    """Print the value of a tool's result on standard output. Text that is not for a terminal is printed as it is."""
    if isinstance(value, str):
        _print_text(value)
        return
    found = _rows(value)
    if found is None:
        print_json(value)
        return
    rows = [row or {} for row in found.rows]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    if columns:
        print_table(columns, ([_cell(row[name]) if name in row else "" for name in columns] for row in rows))
    if found.rest:
        print_note("; ".join(f"{name} {_cell(each)}" for name, each in found.rest.items()))


def print_table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a table of texts, whatever is in them."""
    table = Table(box=None, header_style="dim")
    for column in columns:
        table.add_column(Text(plain(column)), overflow="fold")  # nothing of it is cut off
    for row in rows:
        table.add_row(*(Text(plain(cell)) for cell in row))
    screen().print(table)


def print_note(text: str) -> None:
    """Print something about what stands above."""
    screen().print(Text(plain(text), "dim"))


def _print_text(text: str) -> None:
    if sys.stdout.isatty():
        text = "\n".join(map(plain, text.split("\n")))
    print(text, end="" if text.endswith("\n") else "\n")


def _rows(value: object) -> _Rows | None:
    """The rows that the value consists of; None if it is no table.

    A table is a list of records, or a record with such a list, or with one `row`, in which nothing else has parts.
    """
    if _is_table(value):
        return _Rows(value, {})
    if not is_record(value):
        return None
    nested = [name for name, part in value.items() if is_record(part) or is_array(part)]
    if len(nested) != 1:
        return None
    inner = value[nested[0]]
    rest = {name: part for name, part in value.items() if name not in nested}
    if _is_table(inner) or (inner == [] and rest):
        return _Rows(inner, rest)
    return _Rows([inner], rest) if nested == ["row"] and is_record(inner) and inner else None


def _is_table(value: object) -> TypeGuard[list[dict[str, Any] | None]]:
    return is_array(value) and any(value) and all(row is None or is_record(row) for row in value)


def _cell(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
