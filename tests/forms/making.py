"""Short ways to write the fields, schemas and listeners of these tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from greenroom.protocol.emitter import Listener
from greenroom.protocol.forms import (
    FORM_EVENTS,
    CustomRule,
    FieldError,
    FieldRule,
    Form,
    FormField,
    FormSchema,
    TextField,
    Value,
    audit_schema,
    evaluate_field,
    parse_form,
)

__all__ = ["codes", "failed", "field", "fields_of", "heard", "names", "parsed", "text", "then"]


def field(control: str, name: str = "f", **members: Any) -> FormField:
    """A field of the control; `rule` may be a dict of its rules, lists may be written as lists."""
    made: FormField = msgspec.convert({"control": control, "name": name, **members}, FormField)
    return made


def text(name: str, *, custom: CustomRule | None = None, **rules: Any) -> TextField:
    """A text field with these rules."""
    if custom is not None:
        rules["custom"] = custom
    return TextField(name=name, rule=FieldRule(**rules)) if rules else TextField(name=name)


def failed(field: FormField, value: Value | None) -> list[str]:
    """The rules that the value fails, in the order in which they are reported; a custom one is `custom`."""
    return names(evaluate_field(field, value))


def names(errors: list[FieldError]) -> list[str]:
    """The rules of errors, `custom` for those without a named one."""
    return ["custom" if error.rule is msgspec.UNSET else error.rule for error in errors]


def codes(*fields: Any, **members: Any) -> list[str]:
    """The codes of the faults of a document with these fields."""
    return [fault.code for fault in audit_schema({"fields": list(fields), **members})]


def parsed(*fields: Any, **members: Any) -> FormSchema | None:
    """What a document with these fields is parsed into."""
    return parse_form({"fields": list(fields), **members})


def heard(form: Form) -> list[tuple[Any, ...]]:
    """A list that grows by each event from now on: its name and arguments, errors as (field, rule)."""
    events: list[tuple[Any, ...]] = []

    def listen(event: str) -> None:
        def listener(*told: Any) -> None:
            if event == "validate":
                events.append(
                    (event, [(error.field, name) for error, name in zip(told[0], names(told[0]), strict=True)])
                )
            else:
                events.append((event, *told))

        form.emitter.on(event, listener)

    for event in sorted(FORM_EVENTS):
        listen(event)
    return events


def then(call: Callable[[], object]) -> Listener:
    """A listener that makes this call, whatever it is told."""

    def listener(*_: object) -> None:
        call()

    return listener


def fields_of(*made: FormField) -> FormSchema:
    """A schema of these fields."""
    return FormSchema(fields=made)
