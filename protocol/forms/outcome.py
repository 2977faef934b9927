"""How a form ends, what a submit returns, and what a trial finds."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from greenroom.protocol.errors import FormError
from greenroom.protocol.forms.schema import FieldError, Value

__all__ = ["Abandoned", "FormFailure", "FormResult", "FormSuccess", "Outcome", "Settled", "Trial", "ended"]


class Settled(Struct, frozen=True):
    """The form was submitted. `values` are the answers of its enabled fields, in schema order."""

    values: dict[str, Value]

    def __repr__(self) -> str:
        return f"Settled({_names(self.values)})"


class Abandoned(Struct, frozen=True):
    """The form was destroyed before it was submitted."""


Outcome: TypeAlias = Settled | Abandoned


def ended(outcome: Outcome) -> FormError:
    """The error of a write after the end: SETTLED or ABANDONED."""
    if isinstance(outcome, Settled):
        return FormError(
            "SETTLED", "This form was submitted already, its answers stand: open a new one to change them."
        )
    return FormError("ABANDONED", "This form was abandoned before it was submitted: open a new one to ask again.")


class FormSuccess(Struct, frozen=True):
    """A submit that settled the form; `value` belongs to the caller."""

    success: Literal[True]
    value: dict[str, Value]

    def __repr__(self) -> str:
        return f"FormSuccess({_names(self.value)})"


class FormFailure(Struct, frozen=True):
    """A submit that found `error`; the form goes on."""

    success: Literal[False]
    error: list[FieldError]


FormResult: TypeAlias = FormSuccess | FormFailure


class Trial(Struct, frozen=True):
    """What a form would hold after some changes, and what a submit would then report."""

    values: dict[str, Value]
    errors: list[FieldError]

    def __repr__(self) -> str:
        return f"Trial({_names(self.values)}, errors={self.errors!r})"


def _names(values: dict[str, Value]) -> str:
    # The answers may hold a password, and what is printed of an object ends up in logs.
    return f"answers to {', '.join(values)}" if values else "no answers"
