"""Putting an answer into a parked form, and what its answerer learns of a refusal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from greenroom.protocol.errors import FormError
from greenroom.protocol.forms import FieldError, Form
from greenroom.protocol.terminals import AnswerFailure, AnswerRefusal

__all__ = ["NO_MAPPING", "UNKNOWN", "fill_each", "fill_whole", "first_name", "refused", "rejected"]

UNKNOWN = AnswerFailure(error=AnswerRefusal("unknown"))

NO_MAPPING = "An answer gives each field a value: an object with the fields' names."

_RAISED = "This answer could not be checked. Try again, or answer differently."
"""What is said of a check that raised: nothing of the exception."""


def fill_each(form: Form, values: Mapping[str, Any]) -> AnswerFailure | None:
    """Fill field by field, in the given order, until one is refused; what came before stays."""
    if form.unobserved:
        try:
            form.fill(values)
        except FormError:
            pass  # by which field, and with what filled before it, the loop finds out
        else:
            return None
    for name, value in values.items():
        try:
            form.fill(name, value)
        except Exception as error:
            return refused(error, name)
    return None


def fill_whole(form: Form, values: Mapping[str, Any], opened: Mapping[str, Any] | None) -> AnswerFailure | None:
    """Try everything on a copy that starts from the values at parking;

    fill the form only if all of it would be accepted.
    """
    try:
        trial = form.trial(values, start=opened)
        if trial.errors:
            return rejected(trial.errors)
        form.fill({name: trial.values.get(name) for name in {**form.values, **trial.values}})
    except Exception as error:
        return refused(error, first_name(form))
    return None


def first_name(form: Form) -> str:
    """The field that is named where no other can be: the first, else the schema, else the form as such."""
    schema = form.schema
    return schema.fields[0].name if schema.fields else (schema.name or "form")


def refused(error: Exception, field: str) -> AnswerFailure:
    """What the answerer learns of a raise: the form's own words, and nothing of what a custom rule raised."""
    if isinstance(error, FormError):
        return rejected([FieldError(error.context.get("field", field), error.message)])
    return rejected([FieldError(field, _RAISED)])


def rejected(errors: Iterable[FieldError]) -> AnswerFailure:
    return AnswerFailure(error=AnswerRefusal("rejected", tuple(errors)))
