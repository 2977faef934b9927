"""Random scripts on random forms: what a form keeps up to date is what a model works out from scratch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from greenroom.protocol.errors import FormError
from greenroom.protocol.forms import (
    FORM_EVENTS,
    Abandoned,
    FieldRule,
    Form,
    FormSchema,
    FormSuccess,
    Outcome,
    Settled,
    Value,
    evaluate_form,
)
from tests.forms.model import Model
from tests.forms.strategies import NAMES, answers, junk, schemas

REFUSED = object()


def with_custom(schema: FormSchema) -> FormSchema:
    """The schema with a rule on its first field that looks at its last."""

    def same(value: Value | None, values: Mapping[str, Value]) -> str | None:
        return None if value == values.get(last.name) else "differs"

    if not schema.fields:
        return schema
    first, *_, last = (*schema.fields, schema.fields[-1])
    named = FieldRule() if first.rule is msgspec.UNSET else first.rule
    ruled = msgspec.structs.replace(first, rule=msgspec.structs.replace(named, custom=same))
    return msgspec.structs.replace(schema, fields=(ruled, *schema.fields[1:]))


class FormMachine(RuleBasedStateMachine):
    """Every call is made on a form and on the model, and must do, announce, return or refuse the same."""

    @initialize(data=st.data(), schema=schemas(2), custom=st.booleans(), seeded=st.booleans(), listening=st.booleans())
    def open(self, data: st.DataObject, schema: FormSchema, custom: bool, seeded: bool, listening: bool) -> None:
        if custom:
            schema = with_custom(schema)
        values = data.draw(answers(schema)) if seeded else None
        self.events: list[tuple[Any, ...]] = []
        self.listening = listening
        self.form = Form(schema, values=values, on=self._listeners() if listening else None)
        self.model = Model(schema, values or {})
        self.ends: list[Outcome] = []
        self.form.on_end(self.ends.append)

    @rule(data=st.data(), single=st.booleans())
    def fill(self, data: st.DataObject, single: bool) -> None:
        changes = data.draw(answers(self.model.schema))
        if single and changes:
            name, value = changes.popitem()
            self.both(lambda: self.form.fill(name, value), lambda: self.model.fill({name: value}))
        else:
            self.both(lambda: self.form.fill(changes), lambda: self.model.fill(changes))

    @rule(data=st.data(), name=st.sampled_from(NAMES), value=junk())
    def fill_anything(self, data: st.DataObject, name: str, value: Any) -> None:
        changes = {**data.draw(answers(self.model.schema)), name: value}
        self.both(lambda: self.form.fill(changes), lambda: self.model.fill(changes))

    @rule(data=st.data())
    def touch(self, data: st.DataObject) -> None:
        name = data.draw(self.name())
        self.both(lambda: self.form.touch(name), lambda: self.model.touch(name))

    @rule(data=st.data(), message=st.sampled_from(["taken", "gone"]))
    def invalidate(self, data: st.DataObject, message: str) -> None:
        name = data.draw(self.name())
        self.both(lambda: self.form.invalidate(name, message), lambda: self.model.invalidate(name, message))

    @rule(data=st.data())
    def disable(self, data: st.DataObject) -> None:
        names = data.draw(self.several())
        self.both(lambda: self.form.disable(names), lambda: self.model.disable(names))

    @rule(data=st.data())
    def enable(self, data: st.DataObject) -> None:
        names = data.draw(self.several())
        self.both(lambda: self.form.enable(names), lambda: self.model.enable(names))

    @rule()
    def submit(self) -> None:
        def told() -> object:
            result = self.form.submit()
            return result.value if isinstance(result, FormSuccess) else result.error

        self.both(told, self.model.submit)

    @rule()
    def clear(self) -> None:
        self.both(self.form.clear, self.model.clear)

    @rule(chance=st.integers(0, 9))
    def destroy(self, chance: int) -> None:
        if chance == 9:
            self.both(self.form.destroy, self.model.destroy)

    @rule(data=st.data())
    def trial(self, data: st.DataObject) -> None:
        changes = data.draw(answers(self.model.schema))

        def tried() -> object:
            trial = self.form.trial(changes)
            return trial.values, trial.errors

        self.both(tried, lambda: self.model.trial(changes))

    @invariant()
    def holds_the_same(self) -> None:
        form, model = self.form, self.model
        assert form.status == model.status
        assert list(form.values.items()) == list(model.values.items())
        assert form.baseline == model.baseline
        assert form.errors == model.errors
        assert form.valid is not bool(model.errors)
        assert form.dirty is model.dirty
        assert form.touched == model.touched
        assert form.disabled == model.disabled

    @invariant()
    def keeps_what_evaluating_everything_finds(self) -> None:
        everything = evaluate_form(self.form.schema, self.form.values, disabled=self.form.disabled)
        assert self.form.errors[: len(everything)] == everything

    @invariant()
    def has_told_its_end_once(self) -> None:
        expected: dict[str, list[type]] = {"editing": [], "settled": [Settled], "abandoned": [Abandoned]}
        assert [type(outcome) for outcome in self.ends] == expected[self.form.status]

    def name(self) -> st.SearchStrategy[str]:
        """A field's name, seldom one that there may not be."""
        return st.sampled_from([*self.model.fields] * 3 + [NAMES[0]])

    def several(self) -> st.SearchStrategy[str | list[str] | None]:
        """What `disable` takes."""
        return st.none() | self.name() | st.lists(self.name(), max_size=3)

    def both(self, real: Callable[[], object], modelled: Callable[[], object]) -> None:
        self.events.clear()
        self.model.events.clear()
        assert _tried(real) == _tried(modelled)
        if self.listening:
            assert self.events == self.model.events

    def _listeners(self) -> dict[str, Callable[..., None]]:
        def keep(event: str) -> Callable[..., None]:
            def listener(*told: Any) -> None:
                self.events.append((event, *told))

            return listener

        return {event: keep(event) for event in FORM_EVENTS}


def _tried(call: Callable[[], object]) -> object:
    """What the call returns, or the code that it is refused with."""
    try:
        return call()
    except FormError as refused:
        return REFUSED, refused.code


TestForms = FormMachine.TestCase
TestForms.settings = settings(max_examples=150, stateful_step_count=25)
