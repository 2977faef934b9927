"""What a tool has to say about the way its calls are handled, besides what it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import msgspec
from msgspec import Struct

from greenroom.runtime.pipeline.invocations import Invocation
from greenroom.runtime.pipeline.outcomes import MalformedOutcome, Outcome, compact, error_text
from greenroom.runtime.pipeline.snapshot import thaw

__all__ = ["PLAIN", "Card", "Handling", "call_card", "result_card"]


@final
class Card(Struct, frozen=True):
    """How a call is shown to a person: a line, and what there is to read beneath it."""

    title: str
    body: str = ""


@final
class Handling(Struct, frozen=True, kw_only=True):
    """How calls of a tool are handled while there is a policy. The functions are plain and pure; none may wait.

    `concurrent` says whether a call may run beside its neighbours in a batch, for all arguments or for these; a
    function that raises says no. `returns` is the type that values must have (`msgspec.convert`, strictly). `render`
    makes the text that a model is shown of the arguments and the value. `finalize` has the last word about that text,
    whatever the call came to. `present_call` and `present_result` make what a person is shown, of the arguments, and of
    the arguments and the outcome; where one raises or makes no `Card`, a general one is shown.
    """

    concurrent: bool | Callable[[Any], bool] = False
    returns: Any = None
    render: Callable[[Any, Any], str] | None = None
    finalize: Callable[[Invocation, Outcome], str] | None = None
    present_call: Callable[[Any], Card] | None = None
    present_result: Callable[[Any, Outcome], Card] | None = None

    def may_overlap(self, arguments: Any) -> bool:
        """Whether a call with these arguments may run beside others."""
        if isinstance(self.concurrent, bool):
            return self.concurrent
        try:
            return self.concurrent(arguments) is True
        except Exception:
            return False

    def rendered(self, arguments: Any, value: Any) -> str:
        """The text of a value. Raises `MalformedOutcome` INVALID_TOOL_OUTPUT for a value of another type than
        `returns`, and for a renderer that raises or makes no text."""
        if self.returns is not None:
            try:
                msgspec.convert(thaw(value), self.returns, strict=True)
            except msgspec.ValidationError as error:
                raise MalformedOutcome(
                    "INVALID_TOOL_OUTPUT", f"the tool returned what it should not: {error}"
                ) from None
        if self.render is None:
            return compact(value)
        try:
            text: Any = self.render(arguments, value)
        except Exception as error:
            reason = f"what the tool returned cannot be rendered: {error_text(error)}"
            raise MalformedOutcome("INVALID_TOOL_OUTPUT", reason) from error
        if not isinstance(text, str):
            raise MalformedOutcome("INVALID_TOOL_OUTPUT", "what the tool returned was rendered as what is no text")
        return text


PLAIN = Handling()
"""How a tool's calls are handled that says nothing."""


def call_card(handling: Handling, call: Invocation) -> Card:
    """What a person is shown of a call that has not run."""
    if handling.present_call is not None:
        try:
            card = handling.present_call(call.arguments)
            if _is_card(card):
                return card
        except Exception:
            pass  # it is shown all the same
    return Card(call.name, compact(call.arguments))


def _is_card(made: Any) -> bool:
    return isinstance(made, Card) and all(isinstance(text, str) for text in msgspec.structs.astuple(made))


def result_card(handling: Handling, call: Invocation, outcome: Outcome) -> Card:
    """What a person is shown of a call that is over, of nothing but what a record keeps."""
    if handling.present_result is not None:
        try:
            card = handling.present_result(call.arguments, outcome)
            if _is_card(card):
                return card
        except Exception:
            pass  # it is shown all the same
    return Card(call.name, outcome.content or "")
