"""The live form: answers under way, what is wrong with them, and how it ends.

A form costs little until it is used: it shares its schema's defaults and failures until something is written, and has
no emitter until somebody listens. Without a custom rule a change can affect only the failures of its own field, so only
those are evaluated afresh.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias, final, overload

from greenroom.protocol.emitter import Emitter, ErrorHandler, Listener
from greenroom.protocol.forms.compiled import NO_ERRORS, Changes, Evaluated, overlaid
from greenroom.protocol.forms.outcome import (
    Abandoned,
    FormFailure,
    FormResult,
    FormSuccess,
    Outcome,
    Settled,
    Trial,
    ended,
)
from greenroom.protocol.forms.quoting import quoted
from greenroom.protocol.forms.schema import FieldError, FormField, FormSchema, Value
from greenroom.protocol.forms.shared import open_schema
from greenroom.protocol.forms.values import own_value

__all__ = ["FORM_EVENTS", "Form", "FormStatus"]

FormStatus: TypeAlias = Literal["editing", "settled", "abandoned"]

FORM_EVENTS: Final = frozenset({"fill", "validate", "disable", "enable", "submit", "clear", "abandon"})
"""What a form announces: `fill(name, value)` with `None` for an answer taken away, `validate(errors)`, `disable(name)`,
`enable(name)`, `submit(values)`, `clear()`, `abandon()`."""


@final
class Form:
    """A form that somebody is filling in: `editing`, then `settled` by its first passing submit or `abandoned`.

    `schema` is a `FormSchema` or a document; `values` overlay its defaults, `None` taking one away; `messages` replaces
    the sentences of failed rules by rule name; `on` registers listeners by event and `error` takes what they raise
    (see `Emitter`). A form may open invalid; nothing is announced while it opens.

    Everything is synchronous: listeners are called before the call that they hear of returns, in the order of its
    events, and see what it has written. A listener may call the form again. `destroy` inside a listener takes effect
    when the outermost call ends: later writes are refused at once, events on their way still come, and a submit on its
    way may still settle the form. What a custom rule raises escapes from the call that evaluated it; the values stay
    written, beside the errors as they were.

    Errors, all `FormError`: SCHEMA from the constructor, with every problem in its context; FIELD for a name that the
    schema does not have; CONTROL for a value that the field cannot hold; SETTLED, ABANDONED for a write after the end.
    """

    __slots__ = (
        "__weakref__",
        "_announced",
        "_baseline",
        "_compiled",
        "_customs",
        "_depth",
        "_destroyed",
        "_disabled",
        "_emitter",
        "_ends",
        "_errors",
        "_external",
        "_failing",
        "_judged",
        "_moved",
        "_outcome",
        "_over",
        "_rounds",
        "_schema",
        "_stale",
        "_touched",
        "_values",
    )

    def __init__(
        self,
        schema: FormSchema | Mapping[str, Any],
        *,
        values: Changes | None = None,
        messages: Mapping[str, str] | None = None,
        on: Mapping[str, Listener] | None = None,
        error: ErrorHandler | None = None,
    ) -> None:
        opened = open_schema(schema, sound=True)
        compiled = opened.compiled.worded(messages)
        self._schema = opened.schema
        self._compiled = compiled
        self._customs = opened.customs
        self._disabled = compiled.disabled
        # `_values` is `_baseline` until the first write; both are the schema's defaults where nothing overlays them.
        self._baseline = compiled.defaults if values is None else overlaid(compiled.defaults, compiled.checked(values))
        self._values: dict[str, Value] = self._baseline
        self._failing, self._errors = self._opening()
        self._judged: dict[str, tuple[FieldError, ...]] = self._failing
        self._announced = self._errors
        self._emitter = None if on is None and error is None else Emitter(FORM_EVENTS, on=on, error=error)
        self._external: dict[str, FieldError] | None = None
        self._touched: set[str] | None = None
        self._outcome: Outcome | None = None
        self._ends: dict[object, Callable[[Outcome], object]] | None = None
        self._over = False
        self._destroyed = False
        self._depth = 0
        self._rounds = 0
        self._stale: list[str] | None = None
        self._moved = False

    # What the form holds.

    @property
    def schema(self) -> FormSchema:
        """The schema; it may be shared by forms of equal documents and is not to be changed."""
        return self._schema

    @property
    def published(self) -> FormSchema:
        """The schema as others get it: without custom rules, and shared by the forms of equal documents."""
        return self._compiled.schema

    @property
    def document(self) -> bytes:
        """The schema as JSON, encoded once for all forms of equal documents; custom rules are not in it."""
        return self._compiled.document

    @property
    def emitter(self) -> Emitter:
        """Where listeners register, see `FORM_EVENTS`. Closing it silences the form and does not end it."""
        if self._emitter is None:
            self._emitter = Emitter(FORM_EVENTS)
            if self._destroyed:
                self._emitter.close()
        return self._emitter

    @property
    def status(self) -> FormStatus:
        """`editing`, or how the form ended."""
        if self._outcome is None:
            return "editing"
        return "settled" if isinstance(self._outcome, Settled) else "abandoned"

    @property
    def outcome(self) -> Outcome | None:
        """How the form ended; `None` while it is edited."""
        return self._outcome

    @property
    def values(self) -> dict[str, Value]:
        """The answers held now, in schema order, those of disabled fields included; the record is the caller's."""
        return self._compiled.copied(self._values)

    def snapshot(self) -> Mapping[str, Value]:
        """The answers held now, as a record that no later write changes. It costs no copy, and is not to be changed."""
        return self._values

    @property
    def unobserved(self) -> bool:
        """Without listeners and custom rules: nobody can tell one write of several answers from several writes."""
        return self._emitter is None and self._customs is None

    @property
    def baseline(self) -> dict[str, Value]:
        """The answers that the form opened with, likewise."""
        return self._compiled.copied(self._baseline)

    @property
    def dirty(self) -> bool:
        """Whether the answers differ from the baseline; an empty text is not the same as no answer."""
        return self._values is not self._baseline and self._values != self._baseline

    @property
    def errors(self) -> list[FieldError]:
        """Failures of rules in schema order, then those told by `invalidate`; none of disabled fields."""
        return list(self._errors)

    @property
    def valid(self) -> bool:
        """Whether there are no errors."""
        return not self._errors

    @property
    def touched(self) -> frozenset[str]:
        """The fields that somebody has been at."""
        return frozenset(self._touched or ())

    @property
    def disabled(self) -> frozenset[str]:
        """The fields that are neither evaluated nor submitted."""
        return self._disabled

    def field(self, name: str) -> FormField | None:
        """The field of that name, if the schema has it."""
        return next((field for field in self._schema.fields if field.name == name), None)

    # What can be done with it.

    @overload
    def fill(self, target: str, value: Value | None, /) -> None: ...
    @overload
    def fill(self, target: Changes, /) -> None: ...
    def fill(self, target: str | Changes, value: Value | None = None, /) -> None:
        """Write one answer, or several: all are checked before any is written. `None` takes an answer away.

        Each named field loses the failure that `invalidate` told of it. Announces `fill` for each answer that changed,
        in the order of the mapping, with what is held by then; then `validate` if the errors changed.
        """
        self._refuse_if_ended()
        changes = {target: value} if isinstance(target, str) else target
        changed = self._write(changes)
        self._depth += 1
        try:
            if self._emitter is not None:
                for name in changed:
                    self._emitter.emit("fill", name, self._held(name))
            self._evaluate()
            self._announce()
        finally:
            self._leave()

    def touch(self, name: str) -> None:
        """Remember that somebody has been at the field."""
        self._refuse_if_ended()
        self._compiled.named(name)
        self._touch((name,))

    def invalidate(self, name: str, message: str) -> None:
        """Tell a failure from outside. A field has one at most: a second replaces its message and keeps its place."""
        self._refuse_if_ended()
        self._compiled.named(name)
        self._depth += 1
        try:
            if self._external is None:
                self._external = {}
            self._external[name] = FieldError(name, message)
            self._moved = True
            self._evaluate()
            self._announce()
        finally:
            self._leave()

    def disable(self, names: str | Iterable[str] | None = None) -> None:
        """Leave fields out of evaluation and submit; without `names` all of them.

        Announces `disable` for each field that was enabled, in schema order, then `validate` if the errors changed.
        """
        self._switch("disable", names)

    def enable(self, names: str | Iterable[str] | None = None) -> None:
        """Take fields in again, likewise, announcing `enable`. A failure from outside comes back with its field."""
        self._switch("enable", names)

    def submit(self) -> FormResult:
        """Settle the form if nothing is wrong, else say what is.

        On failure every enabled field is touched and the form goes on. Evaluates afresh; listeners of the `validate`
        that this may announce can repair the form or settle it. An error found at first fails the submit even then.
        """
        self._refuse_if_ended()
        self._depth += 1
        try:
            self._evaluate()
            first, rounds = self._errors, self._rounds
            if self._announce():
                if self._rounds != rounds and self._outcome is None:
                    self._evaluate()
                    self._announce()
                if isinstance(self._outcome, Settled):  # by a listener
                    return FormSuccess(True, self._compiled.copied(self._outcome.values))
            errors = first or self._errors
            if errors:
                self._touch(name for name in self._compiled.fields if name not in self._disabled)
                return FormFailure(False, list(errors))
            values = self._compiled.copied(self._values)
            for name in self._disabled:
                values.pop(name, None)
            self._end(Settled(values))
            return FormSuccess(True, self._compiled.again(values))
        finally:
            self._leave()

    def clear(self) -> None:
        """Go back to the answers and the disabled fields of the beginning, nothing touched, no failures from outside.

        Announces `clear`, then `validate` if the errors changed, and no single fill, enable or disable.
        """
        self._refuse_if_ended()
        self._depth += 1
        try:
            self._values = self._baseline
            self._disabled = self._compiled.disabled
            self._touched = self._external = None
            self._stale = list(self._compiled.fields)
            self._moved = True
            self._evaluate()
            if self._emitter is not None:
                self._emitter.emit("clear")
            self._announce()
        finally:
            self._leave()

    def destroy(self) -> None:
        """Abandon the form unless it has ended, announcing `abandon`, and close its emitter; idempotent."""
        self._destroyed = True
        if not self._depth:
            self._close()

    def on_end(self, listener: Callable[[Outcome], object]) -> Callable[[], None]:
        """Call `listener` once with the outcome, right after `submit` or `abandon` was announced; at once if it was.

        The function that comes back takes the listener away. An `Exception` of it goes to the form's `error`.
        """
        key = object()

        def off() -> None:
            if self._ends is not None:
                self._ends.pop(key, None)

        if self._over and self._outcome is not None:
            self._tell(listener, self._outcome)
        else:
            if self._ends is None:
                self._ends = {}
            self._ends[key] = listener
        return off

    def trial(self, changes: Changes, *, start: Changes | None = None) -> Trial:
        """What the form would hold and report after `fill(changes)` and `submit`, without doing either.

        `start` stands for the answers held now. Raises what `fill` would raise, and what a custom rule raises.
        """
        self._refuse_if_ended()
        changed = self._compiled.checked(changes)
        values = overlaid(self._values if start is None else overlaid({}, self._compiled.checked(start)), changed)
        failures = self._compiled.failures(values, self._disabled, self._customs)
        errors = [error for _, found in failures for error in found]
        for name, error in (self._external or {}).items():
            if name not in changed and name not in self._disabled:
                errors.append(error)
        return Trial(self._compiled.copied(values), errors)

    def __repr__(self) -> str:
        name = "" if not self._schema.name else f" {quoted(self._schema.name)}"
        return f"<Form{name} {self.status}, {len(self._schema.fields)} fields, {len(self._errors)} errors>"

    # How it is done.

    def _refuse_if_ended(self) -> None:
        """Every write passes here first. A form that a listener destroyed is over for writers at once."""
        if self._outcome is not None or self._destroyed:
            raise ended(self._outcome or Abandoned())

    def _held(self, name: str) -> Value | None:
        value = self._values.get(name)
        return value.copy() if isinstance(value, list) else value

    def _write(self, changes: Changes) -> list[str]:
        """Write changes, all or none; the names of those that made a difference.

        What is held is replaced, never changed in place, so that it can be shared and a refusal undoes nothing.
        What the named rules say of each is found out on the way, and told by whoever evaluates next: this call or one
        that a listener makes. Raises `FormError` FIELD or CONTROL for the first that cannot be written.
        """
        held, fields, disabled, judged = self._values, self._compiled.fields, self._disabled, self._judged
        failing = judged
        values: dict[str, Value] | None = None
        changed: list[str] = []
        for name, value in changes.items():
            field = fields.get(name) or self._compiled.named(name)
            if value is not None:  # as `accept` does it; here a call for each would be felt
                if not field.holds(value):
                    raise field.misfit()
                if field.owns:
                    value = own_value(field.field, value)
            if held.get(name) != value:
                changed.append(name)
                if values is None:
                    values = held.copy()
                if value is None:
                    del values[name]
                else:
                    values[name] = value
                found = NO_ERRORS
                if name in disabled:
                    pass
                elif value is None:
                    found = field.missing
                else:
                    for fails, error in field.checks:
                        if fails(value):
                            found += (error,)
                if found or name in failing:
                    if failing is judged:
                        failing = judged.copy()
                    if found:
                        failing[name] = found
                    else:
                        del failing[name]
        if values is not None:
            self._values, self._judged = values, failing
        if self._external:
            for name in changes:
                if self._external.pop(name, None) is not None:
                    self._moved = True
        return changed

    def _mark(self, names: list[str]) -> None:
        """Have the fields evaluated next time, whoever evaluates first."""
        self._stale = names if self._stale is None else self._stale + names

    def _touch(self, names: Iterable[str]) -> None:
        if self._touched is None:
            self._touched = set(names)
        else:
            self._touched.update(names)

    def _switch(self, event: Literal["disable", "enable"], names: str | Iterable[str] | None) -> None:
        self._refuse_if_ended()
        fields = self._compiled.fields
        chosen = fields.keys() if names is None else (names,) if isinstance(names, str) else dict.fromkeys(names)
        for name in chosen:
            self._compiled.named(name)
        disabling = event == "disable"
        moved = [name for name in fields if name in chosen and (name in self._disabled) is not disabling]
        if not moved:
            return
        self._depth += 1
        try:
            self._disabled = self._disabled.union(moved) if disabling else self._disabled.difference(moved)
            self._mark(moved)
            self._moved = True
            if self._emitter is not None:
                for name in moved:
                    self._emitter.emit(event, name)
            self._evaluate()
            self._announce()
        finally:
            self._leave()

    def _opening(self) -> Evaluated:
        """The failures that the form opens with, by field and in order."""
        compiled = self._compiled
        if self._values is compiled.defaults and self._customs is None:
            return compiled.fresh
        return compiled.evaluated(self._values, self._disabled, self._customs)

    def _evaluate(self) -> None:
        """Bring the errors up to date. Only what may have changed is looked at, unless a custom rule may see it all."""
        self._rounds += 1
        failing, moved = self._judged, self._moved
        if self._customs is not None:
            failing = dict(self._compiled.failures(self._values, self._disabled, self._customs))
        elif self._stale:
            failing = self._compiled.updated(failing, self._stale, self._values, self._disabled)
        self._stale, self._moved, self._judged = None, False, failing
        if moved or (failing is not self._failing and failing != self._failing):
            self._failing = failing
            self._errors = self._listed()

    def _listed(self) -> tuple[FieldError, ...]:
        failing, external = self._failing, self._external
        errors = (
            [error for name in self._compiled.fields if name in failing for error in failing[name]] if failing else []
        )
        if external:
            errors += [error for name, error in external.items() if name not in self._disabled]
        return tuple(errors)

    def _announce(self) -> bool:
        """Emit `validate` if the errors are not those that were announced last."""
        if self._errors is self._announced or self._errors == self._announced:
            return False
        self._announced = self._errors
        if self._emitter is not None:
            self._emitter.emit("validate", list(self._errors))
        return True

    def _leave(self) -> None:
        """A call ends. With the outermost one, a `destroy` that came from a listener takes effect."""
        self._depth -= 1
        if self._destroyed and not self._depth:
            self._close()

    def _close(self) -> None:
        if self._outcome is None:
            self._end(Abandoned())
        if self._emitter is not None:
            self._emitter.close()

    def _end(self, outcome: Outcome) -> None:
        self._outcome = outcome
        try:
            if self._emitter is not None:
                if isinstance(outcome, Settled):
                    self._emitter.emit("submit", self._compiled.copied(outcome.values))
                else:
                    self._emitter.emit("abandon")
        finally:
            self._over = True
            ends, self._ends = self._ends, None
            for listener in (ends or {}).values():
                self._tell(listener, outcome)

    def _tell(self, listener: Callable[[Outcome], object], outcome: Outcome) -> None:
        try:
            listener(outcome)
        except Exception as error:
            if self._emitter is not None:
                self._emitter.report(error, "end")
