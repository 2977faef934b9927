"""Schemas made ready for use: checks, defaults and failures, built once and shared by all forms of a schema."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from inspect import iscoroutine
from types import MappingProxyType
from typing import Final, TypeAlias, cast, final

import msgspec
from msgspec import UNSET

from greenroom.protocol.errors import FormError
from greenroom.protocol.forms.messages import TAKES, format_message
from greenroom.protocol.forms.quoting import listed, quoted, shown
from greenroom.protocol.forms.rules import LISTS, compile_checks
from greenroom.protocol.forms.schema import (
    Control,
    CustomRule,
    FieldError,
    FormField,
    FormSchema,
    RuleName,
    Value,
    control_of,
)
from greenroom.protocol.forms.values import compute_defaults, holder, own_value

__all__ = ["NO_ERRORS", "Changes", "CompiledField", "CompiledSchema", "Customs", "Evaluated", "judge", "overlaid"]

NO_ERRORS: Final[tuple[FieldError, ...]] = ()

_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "number": (int, float),
    "confirm": (bool,),
    "checkbox": (list,),
    "file": (list,),
}
"""The types of answers by control, where they are not texts."""

_WORDINGS: Final = 8
"""Sets of messages for which a schema keeps its failures."""

Customs: TypeAlias = Mapping[str, CustomRule]
"""Custom rules by the name of their field."""

Changes: TypeAlias = Mapping[str, Value | None]
"""Answers to be written by the name of their field; `None` takes one away."""

Evaluated: TypeAlias = tuple[dict[str, tuple[FieldError, ...]], tuple[FieldError, ...]]
"""Failures by the name of their field, and all of them in a row."""


@final
class CompiledField:
    """A field with the test of what it holds and its checks; a failure is built here once, not each time it occurs."""

    __slots__ = ("_kinds", "checks", "control", "field", "holds", "missing", "name", "owns")

    def __init__(self, field: FormField, messages: Mapping[str, str] | None = None) -> None:
        control, name = control_of(field), field.name

        def error(rule: RuleName, limit: int | float | str | None = None) -> FieldError:
            return FieldError(name, format_message(control, rule, limit, messages), rule)

        self.field = field
        self.name = name
        self.control: Control = control
        self.holds = holder(field)
        # Texts and flags are kept as they come; asking `own_value` about each would be most of what checking costs.
        self.owns = control == "number" or control in LISTS
        self.checks = tuple((check.fails, error(check.rule, check.limit)) for check in compile_checks(field))
        self.missing = (error("required"),) if field.rule is not UNSET and field.rule.required is True else NO_ERRORS
        # A record that no form has checked may hold anything; rules judge only answers of the control's own kind.
        self._kinds = _KINDS.get(control, (str,))

    def failures(self, value: object) -> tuple[FieldError, ...]:
        """What the named rules report of a value; `None` is an absent one."""
        if value is None:
            return self.missing
        found = NO_ERRORS
        if type(value) in self._kinds:
            for fails, error in self.checks:
                if fails(value):
                    found += (error,)
        return found

    def misfit(self) -> FormError:
        """The refusal of a value that the field cannot hold."""
        return FormError(
            "CONTROL",
            f"The field {quoted(self.name)} cannot hold this value: it takes {TAKES[self.control]}.",
            {"field": self.name, "control": self.control},
        )


@final
class CompiledSchema:
    """What all forms of one document share. Nothing here is ever written to."""

    __slots__ = (
        "_document",
        "_fresh",
        "_worded",
        "defaults",
        "disabled",
        "fields",
        "immutable",
        "lists",
        "names",
        "order",
        "schema",
    )

    def __init__(self, schema: FormSchema, messages: Mapping[str, str] | None = None) -> None:
        self.schema = schema
        self.order = tuple(CompiledField(field, messages) for field in schema.fields)
        self.fields = {field.name: field for field in self.order}
        self.names = tuple(self.fields)
        self.disabled = frozenset(field.name for field in schema.fields if field.disabled is True)
        self.lists = frozenset(field.name for field in self.order if field.control in LISTS)
        self.defaults = compute_defaults(schema)
        self.immutable = all(field.meta is UNSET for field in schema.fields)
        self._document: bytes | None = None
        self._fresh: Evaluated | None = None
        self._worded: dict[tuple[tuple[str, str], ...], CompiledSchema] = {}

    @property
    def document(self) -> bytes:
        """The schema as JSON, members in canonical order."""
        if self._document is None:
            self._document = msgspec.json.encode(self.schema)
        return self._document

    @property
    def fresh(self) -> Evaluated:
        """What the named rules report of the defaults: where every form starts that has no values and custom rules."""
        if self._fresh is None:
            self._fresh = self.evaluated(self.defaults, self.disabled)
        return self._fresh

    def evaluated(
        self, values: Mapping[str, Value], disabled: Container[str], customs: Customs | None = None
    ) -> Evaluated:
        """All failures, by field and in a row."""
        failing = dict(self.failures(values, disabled, customs))
        return failing, tuple(error for errors in failing.values() for error in errors)

    def failures(
        self, values: Mapping[str, Value], disabled: Container[str], customs: Customs | None = None
    ) -> Iterator[tuple[str, tuple[FieldError, ...]]]:
        """Each failing field that is not disabled, in schema order, with what is wrong. A custom rule may raise."""
        for field in self.order:
            name = field.name
            if name in disabled:
                continue
            value = values.get(name)
            errors = field.failures(value)
            if customs is not None and name in customs:
                errors += judge(name, customs[name], value, values)
            if errors:
                yield name, errors

    def updated(
        self,
        failing: dict[str, tuple[FieldError, ...]],
        names: Iterable[str],
        values: Mapping[str, Value],
        disabled: Container[str],
    ) -> dict[str, tuple[FieldError, ...]]:
        """`failing`, as a copy, with what the named rules now report of some fields of a form."""
        failing = failing.copy()
        for name in names:
            found = NO_ERRORS if name in disabled else self.fields[name].failures(values.get(name))
            if found:
                failing[name] = found
            else:
                failing.pop(name, None)
        return failing

    def named(self, name: str) -> CompiledField:
        """The field of that name. Raises `FormError` FIELD if there is none."""
        field = self.fields.get(name)
        if field is None:
            raise FormError(
                "FIELD",
                f"This form has no field {quoted(str(name))}; its fields are: {listed(self.fields)}.",
                {"field": shown(str(name))},
            )
        return field

    def accept(self, name: str, value: Value | None) -> Value | None:
        """The answer to a field as a form keeps it. Raises `FormError` FIELD or CONTROL if none can."""
        field = self.fields.get(name) or self.named(name)
        if value is None:
            return None
        if not field.holds(value):
            raise field.misfit()
        return own_value(field.field, value) if field.owns else value

    def checked(self, changes: Changes) -> dict[str, Value | None]:
        """All the changes as a form keeps them. Raises what `accept` raises, for the first that it refuses."""
        return {name: self.accept(name, value) for name, value in changes.items()}

    def again(self, values: Mapping[str, Value]) -> dict[str, Value]:
        """A copy of a record that is in schema order already."""
        return self._own_lists(dict(values))

    def _own_lists(self, record: dict[str, Value]) -> dict[str, Value]:
        for name in self.lists:
            if name in record:
                record[name] = list(cast("list[str]", record[name]))
        return record

    def copied(self, values: Mapping[str, Value]) -> dict[str, Value]:
        """A record of this schema for somebody else: in schema order, with lists of its own."""
        names = self.names
        if len(values) == len(names):
            record = {name: values[name] for name in names}
        else:
            record = {name: values[name] for name in names if name in values}
        return self._own_lists(record)

    def worded(self, messages: Mapping[str, str] | None) -> CompiledSchema:
        """The same schema whose failures say what `messages` has for their rules."""
        if not messages:
            return self
        key = tuple(sorted(messages.items()))
        found = self._worded.get(key)
        if found is None:
            if len(self._worded) >= _WORDINGS:
                self._worded.clear()
            found = self._worded[key] = CompiledSchema(self.schema, messages)
        return found


def overlaid(values: Mapping[str, Value], changes: Changes) -> dict[str, Value]:
    """A new record: `values` with the changes made, those that are `None` taking an answer away."""
    merged = {**values, **changes}
    return {name: value for name, value in merged.items() if value is not None}


def judge(name: str, custom: CustomRule, value: Value | None, values: Mapping[str, Value]) -> tuple[FieldError, ...]:
    """What a custom rule reports of a value; what it raises escapes, and TypeError for a coroutine."""
    message: object = custom(value, MappingProxyType(values))
    if isinstance(message, str):
        return (FieldError(name, message),)
    if iscoroutine(message):
        message.close()
        raise TypeError(f"The custom rule of {name} is async; a rule is a plain function, since nobody awaits it")
    return NO_ERRORS
