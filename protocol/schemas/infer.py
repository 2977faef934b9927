"""Inference: the JSON Schema that samples have in common, and the formats that texts show.

Equal samples give equal schemas, member for member, whatever their order: everything that could depend on it is sorted
by canonical text (JSON without spaces, members sorted, names and texts compared by UTF-16 units).
"""

from __future__ import annotations

import datetime
import json
import math
import re
from calendar import isleap, monthrange
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final, cast, final

from greenroom.protocol.errors import ToolError
from greenroom.protocol.schemas.gates import is_array
from greenroom.protocol.text import WHITE_SPACE, number_text

__all__ = ["MAX_DEPTH", "MAX_PROPERTIES", "infer_schema", "schema_to_object", "text_format"]

MAX_DEPTH: Final = 32
"""Nested containers that are described; deeper ones are anything."""
MAX_PROPERTIES: Final = 256
"""Members of a record, and elements of a list, that are looked at."""

_MOST_DISTINCT: Final = 12
"""Different values that a column of repeating ones may hold to be an enumeration."""
_LONGEST: Final = 128
"""Characters up to which a text may have a format."""

_Schema = dict[str, Any]


def infer_schema(
    samples: list[Any],
    *,
    format: bool = False,
    enum: bool = False,
    max_depth: int = MAX_DEPTH,
    max_properties: int = MAX_PROPERTIES,
    closed: bool = True,
) -> _Schema:
    """The schema that every sample fits, as narrow as the samples show it.

    Records merge: members that every one has are required. What differs otherwise becomes an `anyOf`. With `format`,
    texts that all look alike get that `format`; with `enum`, columns of few and repeating values list them. `closed`
    refuses members that no sample has. A budget that is no positive number counts as the default.

    Raises `ToolError` (TOOL) if `samples` is no list or a switch no bool. The samples are neither changed nor kept.
    Equal parts of the schema may be one dict, as parts of the samples may.
    """
    if type(samples) is not list or not all(type(switch) is bool for switch in (format, enum, closed)):
        raise ToolError("TOOL", "Inference takes a list of samples, and true or false for format, enum and closed.")
    depth = min(max_depth, MAX_DEPTH) if type(max_depth) is int and max_depth > 0 else MAX_DEPTH
    breadth = max_properties if type(max_properties) is int and max_properties > 0 else MAX_PROPERTIES
    return _Inference(format, enum, breadth, closed).slot(samples, depth)


def schema_to_object(schema: _Schema) -> _Schema:
    """The schema itself if it is one of an object; else one of an object with that as its required member `value`."""
    if schema.get("type") == "object":
        return schema
    return {"type": "object", "properties": {"value": schema}, "required": ["value"], "additionalProperties": False}


@final
class _Inference:
    """One inference: its switches, the containers on the way, and the schemas that were made so far."""

    def __init__(self, format: bool, enum: bool, breadth: int, closed: bool) -> None:
        self._format = format
        self._enum = enum
        self._breadth = breadth
        self._closed = closed
        self._path: set[int] = set()
        """The containers that what is looked at stands in: one that is met again is a circle."""
        self._known: dict[tuple[object, int], _Schema] = {}
        """By what was looked at, and how deep there was to go. Shared containers would take exponential time else."""
        self._made: dict[tuple[object, ...], _Schema] = {}
        """What values alone come to, by the identity of its parts: equal schemas are one, and compared as such."""
        self._texts: dict[int, str] = {}
        """The canonical texts of such schemas, where they were needed."""
        self._plain: dict[type, _Schema] = {kind: {"type": name} for kind, name in _PLAIN.items()}
        self._number: _Schema = {"type": "number"}
        self._anything: _Schema = {}

    def slot(self, values: Sequence[Any], depth: int) -> _Schema:
        """The schema of all that stands at one place."""
        if not values:
            return {}
        if depth > 0 and all(type(value) is dict and id(value) not in self._path for value in values):
            return self._remembered(tuple(map(id, values)), depth, lambda: self._merge(values, depth))
        if self._enum and (members := _enumeration(values)) is not None:
            return {"enum": members}
        schema = self._unify(values, depth).copy()
        if self._format and schema == {"type": "string"} and (found := _common_format(values)) is not None:
            schema["format"] = found
        return schema

    def _merge(self, rows: Sequence[dict[Any, Any]], depth: int) -> _Schema:
        """One record for all rows, each member a place of its own."""
        here = {id(row) for row in rows}
        self._path |= here
        columns: defaultdict[str, list[Any]] = defaultdict(list)
        for row in rows:
            for name, value in row.items():
                columns[name].append(value)
        names = sorted(columns, key=_units)
        kept = names[: self._breadth]
        properties = {name: self.slot(columns[name], depth - 1) for name in kept}
        self._path -= here
        required = [name for name in kept if len(columns[name]) == len(rows)]
        return self._record(properties, required, cut=len(kept) < len(names))

    def _record(self, properties: _Schema, required: list[str], *, cut: bool) -> _Schema:
        schema: _Schema = {"type": "object"}
        if properties:
            schema["properties"] = properties
        if required:
            schema["required"] = required
        schema["additionalProperties"] = True if cut else not self._closed
        return schema

    def _unify(self, values: Sequence[Any], depth: int) -> _Schema:
        """What each value is by itself; one schema if they agree, else an `anyOf` of the different ones."""
        found: dict[int, _Schema] = {}
        for value in values:
            schema = self._alone(value, depth)
            found[id(schema)] = schema
        if id(self._number) in found:
            found.pop(id(self._plain[int]), None)
        if len(found) == 1:
            return next(iter(found.values()))
        variants = sorted(found.values(), key=lambda schema: _units(self._text(schema)))
        return self._one(("anyOf", *map(id, variants)), lambda: {"anyOf": variants})

    def _alone(self, value: Any, depth: int) -> _Schema:
        """A value by itself; of a container neither formats nor enumerations beneath, and all members required."""
        kind = type(value)  # pyright: ignore[reportUnknownVariableType]  # of anything
        plain = self._plain.get(kind)  # pyright: ignore[reportUnknownArgumentType]
        if plain is not None:
            return plain
        if kind is float:
            if not math.isfinite(value):
                return self._anything
            return self._plain[int] if value.is_integer() else self._number
        if kind is list or kind is dict:
            if depth <= 0 or id(value) in self._path:
                return self._anything
            return self._remembered(id(value), depth, lambda: self._describe(value, depth))
        return self._plain[str] if isinstance(value, datetime.datetime) else self._anything

    def _describe(self, value: Any, depth: int) -> _Schema:
        here = id(value)
        self._path.add(here)
        if is_array(value):
            elements = value[: self._breadth]
            items = self._unify(elements, depth - 1) if elements else None
            schema = self._one(
                ("array", id(items)), lambda: {"type": "array"} if items is None else {"type": "array", "items": items}
            )
        else:
            record: dict[str, Any] = value
            names = sorted(record, key=_units)
            kept = names[: self._breadth]
            cut = len(kept) < len(names)
            properties = {name: self._alone(record[name], depth - 1) for name in kept}
            schema = self._one(
                ("object", cut, *kept, *map(id, properties.values())),
                lambda: self._record(properties, list(kept), cut=cut),
            )
        self._path.remove(here)
        return schema

    def _remembered(self, what: object, depth: int, infer: Callable[[], _Schema]) -> _Schema:
        known = self._known.get((what, depth))
        if known is None:
            known = self._known[what, depth] = infer()
        return known

    def _one(self, parts: tuple[object, ...], make: Callable[[], _Schema]) -> _Schema:
        """The one schema of these parts, which are kept, so that an identity is never another one's later."""
        made = self._made.get(parts)
        if made is None:
            made = self._made[parts] = make()
        return made

    def _text(self, schema: _Schema) -> str:
        text = self._texts.get(id(schema))
        if text is None:
            text = self._texts[id(schema)] = _canonical(schema)
        return text


_PLAIN: Final[dict[type, str]] = {str: "string", int: "integer", bool: "boolean", type(None): "null"}
"""Types of values, and how a schema names them. Whether a float is whole depends on its value."""


def _enumeration(values: Sequence[Any]) -> list[Any] | None:
    """The different values, sorted, of a column that repeats few texts or few numbers; None if it is no such column."""
    if len(values) < 2:
        return None
    kinds = set(map(type, values))
    if kinds != {str} and not (kinds <= {int, float} and all(map(_is_number, values))):
        return None
    seen: set[Any] = set()
    members: dict[str, Any] = {}
    for value in values:
        if value in seen:
            continue
        seen.add(value)
        members.setdefault(_leaf(value), value)
        if len(members) > _MOST_DISTINCT:
            return None
    return [members[text] for text in sorted(members, key=_units)] if len(members) < len(values) else None


def _common_format(values: Sequence[Any]) -> str | None:
    """The format that all of these texts show, if they do."""
    format = _format_of(values[0])
    return format if format is not None and all(_format_of(value) == format for value in values) else None


def _format_of(value: Any) -> str | None:
    return text_format(value) if type(value) is str else None


def _is_number(value: Any) -> bool:
    return type(value) is int or (type(value) is float and math.isfinite(value))


_QUOTED: Final = json.JSONEncoder(ensure_ascii=False).encode


def _leaf(value: Any) -> str:
    """Canonical text of something that holds nothing else."""
    if type(value) is str:
        return _QUOTED(value)
    if _is_number(value):
        try:
            return number_text(value)
        except ValueError:  # an integer beyond the range of a double
            return str(value)
    return json.dumps(value)


def _canonical(schema: Any) -> str:
    """Canonical text of a schema, which is as deep as what it was inferred from."""
    if isinstance(schema, dict):
        record = cast("dict[str, Any]", schema)
        members = (f"{_leaf(name)}:{_canonical(record[name])}" for name in sorted(record, key=_units))
        return "{" + ",".join(members) + "}"
    if is_array(schema):
        return "[" + ",".join(map(_canonical, schema)) + "]"
    return _leaf(schema)


def _units(text: str) -> str | bytes:
    """What texts are sorted by: UTF-16 units, which is the same as characters while all are below the surrogates."""
    return text.encode("utf-16-be", "surrogatepass")


# -------------------------------------------------------------------- formats


_DATE = re.compile("([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]+)?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_CLOCK = re.compile(_TIME)
_MOMENT = re.compile(f"([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})T{_TIME}")
_UUID = re.compile("[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_URI = re.compile("[A-Za-z][A-Za-z0-9+.-]*://")
_SPACE = re.compile(f"[{re.escape(WHITE_SPACE)}]")


def text_format(text: str) -> str | None:
    """The format that a text shows, the first that fits: `uuid`, `date-time`, `date`, `time`, `email` or `uri`."""
    if len(text) > _LONGEST:
        return None
    if _UUID.fullmatch(text):
        return "uuid"
    if (moment := _MOMENT.fullmatch(text)) and _is_day(moment[1]):
        return "date-time"
    if _is_day(text):
        return "date"
    if _CLOCK.fullmatch(text):
        return "time"
    if _is_email(text):
        return "email"
    return "uri" if _URI.match(text) else None


def _is_day(text: str) -> bool:
    """A day of the Gregorian calendar, of which the year 0 is one too."""
    found = _DATE.fullmatch(text)
    if found is None:
        return False
    year, month, day = map(int, found.groups())
    if not 1 <= month <= 12:
        return False
    days = monthrange(2004 if isleap(year) else 2005, month)[1]
    return 1 <= day <= days


def _is_email(text: str) -> bool:
    local, at, domain = text.partition("@")
    return bool(local and at) and "@" not in domain and "." in domain[1:-1] and _SPACE.search(text) is None
