"""What a question consists of, as callers spell it and as clients are shown it."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias, final

from msgspec import UNSET, Meta, Struct, UnsetType

__all__ = ["Kind", "Question", "QuestionChoice", "QuestionOptions", "QuestionRules"]

Kind: TypeAlias = Literal["input", "password", "confirm", "select", "checkbox", "editor"]
"""What a question is answered with: a line, a secret line, yes or no, one choice, several choices, several lines."""

_Count: TypeAlias = Annotated[int, Meta(ge=0)]


@final
class QuestionChoice(Struct, frozen=True, omit_defaults=True):
    """One offer of a `select` or `checkbox`: `name` is what a person reads, `value` what the answer is."""

    name: str
    value: str
    description: str | UnsetType = UNSET


@final
class QuestionRules(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What the text of an `input`, `password` or `editor` has to be."""

    required: bool | UnsetType = UNSET
    """Not empty, white space at its ends aside."""
    minimum: _Count | UnsetType = UNSET
    """The fewest characters (code points)."""
    maximum: _Count | UnsetType = UNSET
    """The most characters."""
    pattern: str | UnsetType = UNSET
    """A regular expression (ECMAScript) that is found in it."""
    email: bool | UnsetType = UNSET
    url: bool | UnsetType = UNSET
    """Begins with http:// or https:// and something more."""
    numeric: bool | UnsetType = UNSET
    """Digits, with a minus before them and a decimal fraction after them if need be."""
    integer: bool | UnsetType = UNSET
    """Digits, with a minus before them if need be."""
    alphanumeric: bool | UnsetType = UNSET
    """The digits 0 to 9 and the letters A to Z alone."""


@final
class QuestionOptions(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A question's text and what goes with its kind."""

    message: str
    default: str | bool | UnsetType = UNSET
    choices: tuple[QuestionChoice, ...] | UnsetType = UNSET
    mask: str | UnsetType = UNSET
    min: int | UnsetType = UNSET
    """The fewest choices that may be ticked."""
    max: int | UnsetType = UNSET
    validate: QuestionRules | UnsetType = UNSET


@final
class Question(Struct, frozen=True):
    """A question to be put."""

    kind: Kind
    options: QuestionOptions
