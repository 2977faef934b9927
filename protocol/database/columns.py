"""Columns: how they are declared, and what a value that is written to one becomes."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias, TypeGuard, get_args

from msgspec import Struct

from greenroom.protocol.database.values import Cell, fits_64_bits, invalid, is_mapping
from greenroom.protocol.schemas.gates import encodable
from greenroom.protocol.text import exact_number, number_text, parse_number, trim

__all__ = [
    "PRIMITIVES",
    "ColumnPrimitive",
    "ColumnSchema",
    "ColumnSpec",
    "Misfit",
    "Reader",
    "compile_column",
    "compile_column_primitive",
    "is_column_primitive",
    "is_column_spec",
    "reader",
]

ColumnPrimitive: TypeAlias = Literal["string", "integer", "number", "boolean"]
PRIMITIVES: Final[tuple[ColumnPrimitive, ...]] = get_args(ColumnPrimitive)

ColumnSpec: TypeAlias = str | Mapping[str, Any]
"""A primitive, or `{"type": primitive, "optional"?: bool}`; `primitive` is another spelling of `type`, which wins."""

Reader: TypeAlias = Callable[[Any], Cell]
"""Turns a value that is to be written into the cell that is stored, or raises `Misfit`."""

_DIGITS = re.compile(r"[+-]?[0-9]+")
_LONGEST: Final = 20
"""How many digits the longest integer of 64 bits has; Python refuses to read integers beyond 4,300."""


class Misfit(ValueError):
    """Why a value is none of a column's."""


class ColumnSchema(Struct, frozen=True):
    """A column as it is stored. `optional` means that a cell may be absent; null is no cell of any column."""

    name: str
    storage: ColumnPrimitive
    optional: bool = False
    nullable: bool = False


def is_column_primitive(value: object) -> TypeGuard[ColumnPrimitive]:
    """Whether the value is one of the four words."""
    return isinstance(value, str) and value in PRIMITIVES


def is_column_spec(value: object) -> bool:
    """Whether the value declares a column."""
    return _declared(value) is not None


def compile_column(name: str, spec: object) -> ColumnSchema:
    """The column that a spec declares. Raises `DatabaseError` VALIDATION for one that declares none."""
    declared = _declared(spec)
    if declared is None:
        raise invalid(
            f"column {name!r} is declared as {spec!r}; declare it as one of {', '.join(PRIMITIVES)}, or as"
            ' {"type": one of them, "optional": true}',
            column=name,
        )
    return ColumnSchema(name, *declared)


def compile_column_primitive(primitive: ColumnPrimitive) -> dict[str, Any]:
    """The JSON Schema of a cell of that kind."""
    return {"type": primitive}


def reader(column: ColumnSchema) -> Reader:
    """What reads values for the column. It is lenient towards text that spells the value, and towards nothing else."""
    return _READERS[column.storage]


def _declared(spec: object) -> tuple[ColumnPrimitive, bool] | None:
    if is_column_primitive(spec):
        return spec, False
    if not is_mapping(spec):
        return None
    primitive = spec.get("type", spec.get("primitive"))
    optional = spec.get("optional", False)
    return (primitive, optional) if is_column_primitive(primitive) and isinstance(optional, bool) else None


def _string(value: Any) -> str:
    if type(value) is str and value.isascii():
        return value
    if isinstance(value, str):
        if not encodable(value):
            raise Misfit("it holds a lone surrogate, which cannot be stored")
        return str(value)
    if isinstance(value, bool):
        raise Misfit(f"{_shown(value)} is no text")
    if isinstance(value, float) and math.isfinite(value):
        return number_text(value)
    if isinstance(value, int):
        if exact_number(value) is None:
            raise Misfit(f"{value} is a number whose digits are not all kept on the way; send it as text")
        return number_text(value)
    raise Misfit(f"{_shown(value)} is no text")


def _number(value: Any) -> float:
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        held = exact_number(value)
        if held is None:
            raise Misfit(f"{value} has more digits than a number keeps; declare an integer or a string column for it")
        return float(held)
    read = parse_number(value) if isinstance(value, str) else None
    if read is None:
        raise Misfit(f"{_shown(value)} is no finite number")
    return float(read)


def _integer(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        number: int | float = int(value)
    elif isinstance(value, str) and _DIGITS.fullmatch(text := trim(value)) and len(text.lstrip("+-0")) < _LONGEST:
        number = int(text)  # all digits count: a double would round the long ones
    else:
        number = _number(value)
    if isinstance(number, float):
        if not number.is_integer():
            raise Misfit(f"{_shown(value)} has a fraction")
        number = int(number)
    if not fits_64_bits(number):
        raise Misfit(f"{_shown(value)} is beyond 64 bits; declare a string column for it")
    return number


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        read = {"true": True, "1": True, "false": False, "0": False}.get(value)
    else:
        read = bool(value) if isinstance(value, int | float) and value in (0, 1) else None
    if read is None:
        raise Misfit(f"{_shown(value)} is neither true nor false")
    return read


_READERS: Final[Mapping[ColumnPrimitive, Reader]] = {
    "string": _string,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
}


def _shown(value: Any) -> str:
    """A value as a message names it: as JSON has it, and not at length."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        text = repr(value)
        return text if len(text) <= 60 else f"{text[:60]}... ({len(value)} characters)"
    if isinstance(value, int | float):
        return f"{value}" if not isinstance(value, int) or abs(value) < 10**60 else "the number"
    return "a list" if isinstance(value, list) else "an object"
