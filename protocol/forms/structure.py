"""Reading a document of unknown origin into structs, exactly: known members, exact types, nothing else.

What a struct may hold is derived from the struct itself. A document comes as JSON values or as structs that nobody has
checked yet; either is copied, so that what is returned belongs to the reader alone. Nothing here raises, whatever
comes, and nothing recurses into it: the levels of a document are fixed, and `meta` is walked with a stack.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import partial
from inspect import iscoroutinefunction
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, cast

from msgspec import UNSET, Struct, inspect, structs

from greenroom.protocol.errors import FormError
from greenroom.protocol.forms import limits
from greenroom.protocol.forms.quoting import quoted, shown
from greenroom.protocol.forms.schema import (
    FIELD_TYPES,
    FieldChoice,
    FieldError,
    FieldRule,
    FormField,
    FormGroup,
    FormSchema,
)

__all__ = [
    "SchemaFault",
    "copy_meta",
    "is_number",
    "plain_number",
    "read_error",
    "read_field",
    "read_schema",
    "refusal",
]

_LARGEST: Final = sys.float_info.max
_SAFE: Final = 2**53 - 1

_REFUSED: Final[Any] = object()
"""What is read of a value that was reported."""

_Read: TypeAlias = Callable[["_Reading", object, str, str | None], Any]
"""Reads the value of a member: the reading, the value, its path, the name of the field that it belongs to."""


_S = TypeVar("_S", bound=Struct)


class SchemaFault(Struct, frozen=True):
    """One thing that is wrong with a schema: a stable `code`, the name of the field concerned if any, a sentence."""

    code: str
    field: str | None
    detail: str


def refusal(faults: list[SchemaFault]) -> FormError:
    """The error SCHEMA that these faults come to; its context lists all of them as `problems`."""
    first = faults[0]
    where = "" if first.field is None else f"field {quoted(first.field)}: "
    others = len(faults) - 1
    more = "" if not others else " There is 1 more problem." if others == 1 else f" There are {others} more problems."
    return FormError(
        "SCHEMA",
        f"This schema cannot be asked: {where}{first.detail}{more}",
        {"problems": [_problem(fault) for fault in faults]},
    )


def _problem(fault: SchemaFault) -> dict[str, str | None]:
    return {"code": fault.code, "field": None if fault.field is None else shown(fault.field), "detail": fault.detail}


def is_number(value: object) -> bool:
    """Whether `value` is a finite number within the range of a double. A `bool` never is one."""
    return (type(value) is int or type(value) is float) and -_LARGEST <= value <= _LARGEST


def plain_number(value: int | float) -> int | float:
    """The number as it prints in JSON: an `int` where it is integral and safely held (`5` for 5.0, `0` for -0.0)."""
    if type(value) is float and value.is_integer() and -_SAFE <= value <= _SAFE:
        return int(value)
    return value


def copy_meta(meta: dict[str, Any]) -> dict[str, Any] | None:
    """A deep copy of `meta`, or `None` if it holds anything but JSON values or nests too deep.

    Copying ends beyond the number of nodes that a document may have; the audit refuses what is so large.
    """
    copy: dict[str, Any] = {}
    stack: list[tuple[Any, Any, bool, int]] = [(meta, copy, False, 1)]
    nodes = 0
    while stack:
        source, target, listed, depth = stack.pop()
        for key, item in _pairs(source):
            nodes += 1
            if nodes > limits.NODES:
                return copy
            copied: Any = item
            kind = type(item)
            if kind is dict or kind is list:
                if depth == limits.META_DEPTH:
                    return None
                copied = {} if kind is dict else []
                stack.append((item, copied, kind is list, depth + 1))
            elif not (item is None or kind is str or kind is bool or is_number(item)):
                return None
            if listed:
                target.append(copied)
            elif type(key) is str:
                target[key] = copied
            else:
                return None
    return copy


def _pairs(container: list[object] | dict[object, object]) -> Iterable[tuple[object, object]]:
    return enumerate(container) if isinstance(container, list) else container.items()


def read_schema(document: object, *, wire: bool = False) -> tuple[FormSchema | None, list[SchemaFault]]:
    """The schema that `document` (a dict or a `FormSchema`) spells, or `None` with what keeps it from being one.

    A document from the `wire` may hold anything as a rule's `custom`: it is passed over. A rule without members is
    dropped.
    """
    reading = _Reading(wire)
    return reading.record(FormSchema, document, "", None), reading.faults


def read_field(document: object) -> tuple[FormField | None, list[SchemaFault]]:
    """The same for a single field."""
    reading = _Reading(False)
    field = reading.field(document, "")
    return (None if field is _REFUSED else field), reading.faults


def read_error(document: object) -> FieldError | None:
    """The field error that `document` spells, or `None`."""
    return _Reading(False).record(FieldError, document, "", None)


class _Reading:
    """One document while it is read, and what was found wrong with it."""

    __slots__ = ("faults", "refused", "wire")

    def __init__(self, wire: bool) -> None:
        self.wire = wire
        self.refused = 0
        self.faults: list[SchemaFault] = []

    def refuse(self, code: str, field: str | None, detail: str) -> Any:
        self.refused += 1
        if self.refused <= limits.FAULTS:
            self.faults.append(SchemaFault(code, field, detail))
        return _REFUSED

    def record(self, cls: type[_S], source: object, path: str, field: str | None) -> _S | None:
        """An instance of `cls` from a dict or from an unchecked instance."""
        shape = _SHAPES[cls]
        kind = type(source)
        items: Iterable[tuple[object, object]]
        if kind is dict:
            items = cast("dict[object, object]", source).items()
        elif kind is cls:
            items = [(key, value) for key in shape.members if (value := getattr(source, key)) is not UNSET]
        else:
            self.refuse("TYPE", field, f"{path or 'The document'} must be {shape.noun}.")
            return None
        refused = self.refused
        found: dict[str, Any] = {}
        for key, value in items:
            if type(key) is not str:
                self.refuse("MEMBER", field, f"{path or 'The document'} has a member whose name is no text.")
            elif (member := shape.members.get(key)) is not None:
                if type(value) is member.kind:
                    found[key] = value
                elif not (self.wire and key == "custom"):
                    found[key] = member.read(self, value, _at(path, key), field)
            elif not (shape.tagged and key == "control"):
                known = ", ".join(shape.members)
                self.refuse(
                    "MEMBER", field, f"{_at(path, shown(key))} is no member of {shape.noun}; known are {known}."
                )
        for key in shape.required:
            if key not in found:
                self.refuse("MISSING", field, f"{_at(path, key)} is missing.")
        return cls(**found) if self.refused == refused else None

    def fields(self, source: object, path: str, _: str | None) -> Any:
        return self.items(source, path, None, self.field)

    def items(self, source: object, path: str, field: str | None, read: Callable[[object, str], Any]) -> Any:
        kind = type(source)
        if kind is not list and kind is not tuple:
            return self.refuse("TYPE", field, f"{path} must be a list.")
        items = cast("list[object]", source)
        return tuple([read(item, f"{path}[{index}]") for index, item in enumerate(items)])

    def field(self, source: object, path: str) -> Any:
        """A field of whichever control the source names; `path` is empty for a field that stands alone."""
        kind = type(source)
        name: object
        if kind in _FIELDS:
            cls, name = type(cast(FormField, source)), cast(FormField, source).name
        elif kind is dict:
            document = cast("dict[object, object]", source)
            if not all(type(key) is str for key in document):
                return self.refuse("MEMBER", None, f"{path or 'The document'} has a member whose name is no text.")
            name, control = document.get("name"), document.get("control")
            if type(control) is not str or control not in FIELD_TYPES:
                known = ", ".join(FIELD_TYPES)
                return self.refuse("CONTROL", _text(name), f"{_at(path, 'control')} must be one of {known}.")
            cls = FIELD_TYPES[control]
        else:
            return self.refuse("TYPE", None, f"{path or 'The document'} must be a field.")
        field = self.record(cls, source, path, _text(name))
        return _REFUSED if field is None else field

    def rule(self, source: object, path: str, field: str | None) -> Any:
        rule = self.record(FieldRule, source, path, field)
        # Not by comparing with an empty rule: a custom one may be an object that refuses to be compared.
        return rule if rule is None or any(member is not UNSET for member in structs.astuple(rule)) else UNSET

    def meta(self, source: object, path: str, field: str | None) -> Any:
        kind = type(source)
        copy = copy_meta(cast("dict[str, Any]", source)) if kind is dict else None
        if copy is None:
            depth = limits.META_DEPTH
            return self.refuse("META", field, f"{path} must be an object of JSON values, nested at most {depth} deep.")
        return copy

    def text(self, value: object, path: str, field: str | None) -> Any:
        return value if type(value) is str else self.refuse("TYPE", field, f"{path} must be a text.")

    def texts(self, value: object, path: str, field: str | None) -> Any:
        return self.items(value, path, field, lambda item, at: self.text(item, at, field))

    def flag(self, value: object, path: str, field: str | None) -> Any:
        return value if type(value) is bool else self.refuse("TYPE", field, f"{path} must be true or false.")

    def number(self, value: object, path: str, field: str | None) -> Any:
        if is_number(value):
            return plain_number(cast(float, value))
        return self.refuse("TYPE", field, f"{path} must be a finite number.")

    def operand(self, value: object, path: str, field: str | None) -> Any:
        """A number that answers are compared with: rounded, unlike an answer, to the double that it stands for."""
        if type(value) is int and -_SAFE <= value <= _SAFE:
            return value
        return self.number(float(value) if type(value) is int and is_number(value) else value, path, field)

    def limit(self, value: object, path: str, field: str | None) -> Any:
        """The same, or a date or time as text."""
        return value if type(value) is str else self.operand(value, path, field)

    def custom(self, value: object, path: str, field: str | None) -> Any:
        if not callable(value):
            return self.refuse("TYPE", field, f"{path} must be a function.")
        if iscoroutinefunction(value) or iscoroutinefunction(type(value).__call__):
            name = getattr(value, "__name__", type(value).__name__)
            return self.refuse("TYPE", field, f"{path} must be a plain function: nobody would await {name}.")
        return value


class _Member(NamedTuple):
    """One member of a struct: the type that is taken as it is, if there is one, and the reader of all else."""

    kind: type | None
    read: _Read


class _Shape(NamedTuple):
    """A struct as documents spell it."""

    noun: str
    members: dict[str, _Member]
    required: tuple[str, ...]
    tagged: bool


def _at(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _text(name: object) -> str | None:
    return name if type(name) is str else None


def _records(cls: type[Struct], reading: _Reading, source: object, path: str, field: str | None) -> Any:
    return reading.items(source, path, field, lambda item, at: reading.record(cls, item, at, field))


def _one_of(known: tuple[object, ...], reading: _Reading, value: object, path: str, field: str | None) -> Any:
    if type(value) is str and value in known:
        return value
    return reading.refuse("TYPE", field, f"{path} must be one of {', '.join(map(str, known))}.")


def _member(cls: type[Struct], field: inspect.Field) -> _Member:
    """How the member is read, by the type that the struct declares for it."""
    match field.type:
        case inspect.StrType():
            return _Member(str, _Reading.text)
        case inspect.BoolType():
            return _Member(bool, _Reading.flag)
        case inspect.UnionType(types=kinds) if cls is FieldRule:
            textual = any(isinstance(kind, inspect.StrType) for kind in kinds)
            return _Member(None, _Reading.limit if textual else _Reading.operand)
        case inspect.UnionType():
            return _Member(None, _Reading.number)
        case inspect.LiteralType(values=known):
            return _Member(None, partial(_one_of, known))
        case inspect.CustomType():
            return _Member(None, _Reading.custom)
        case inspect.DictType():
            return _Member(None, _Reading.meta)
        case inspect.StructType():
            return _Member(None, _Reading.rule)
        case inspect.VarTupleType(item_type=inspect.StrType()):
            return _Member(None, _Reading.texts)
        case inspect.VarTupleType(item_type=inspect.StructType(cls=nested)):
            return _Member(None, partial(_records, nested))
        case inspect.VarTupleType():
            return _Member(None, _Reading.fields)
        case other:
            raise TypeError(f"{cls.__name__}.{field.name} has a type that no document can hold: {other}")


def _shape(cls: type[Struct], noun: str) -> _Shape:
    info = inspect.type_info(cls)
    assert isinstance(info, inspect.StructType)
    return _Shape(
        noun,
        {field.name: _member(cls, field) for field in info.fields},
        tuple(field.name for field in info.fields if field.required),
        info.tag is not None,
    )


_FIELDS: Final = frozenset(FIELD_TYPES.values())
_SHAPES: Final[dict[type[Struct], _Shape]] = {
    FormSchema: _shape(FormSchema, "a form"),
    FormGroup: _shape(FormGroup, "a group"),
    FieldChoice: _shape(FieldChoice, "a choice"),
    FieldRule: _shape(FieldRule, "a rule"),
    FieldError: _shape(FieldError, "a field error"),
    **{cls: _shape(cls, f"a {control} field") for control, cls in FIELD_TYPES.items()},
}
