"""A form that keeps nothing but what it was told, and works everything else out from scratch each time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from greenroom.protocol.errors import FormError
from greenroom.protocol.forms import (
    FieldError,
    FormSchema,
    Value,
    compute_defaults,
    evaluate_form,
    matches_field,
    matches_value,
    matches_values,
)

__all__ = ["Model"]


class Model:
    """What a form must be after each call. `events` holds what the last call had to announce."""

    def __init__(self, schema: FormSchema, values: Mapping[str, Value | None]) -> None:
        self.schema = schema
        self.fields = {field.name: field for field in schema.fields}
        self.status = "editing"
        self.baseline = self._merged(compute_defaults(schema), values)
        self.values = dict(self.baseline)
        self.disabled = self._flagged()
        self.touched: set[str] = set()
        self.external: dict[str, FieldError] = {}
        self.events: list[tuple[Any, ...]] = []

    @property
    def errors(self) -> list[FieldError]:
        found = evaluate_form(self.schema, self.values, disabled=self.disabled)
        return found + [error for name, error in self.external.items() if name not in self.disabled]

    @property
    def dirty(self) -> bool:
        return not matches_values(self.values, self.baseline)

    def fill(self, changes: Mapping[str, Value | None]) -> None:
        self._check(changes)

        def write() -> None:
            merged = self._merged(self.values, changes)
            changed = [name for name in changes if not matches_value(self.values.get(name), merged.get(name))]
            self.values = merged
            for name in changes:
                self.external.pop(name, None)
            self.events += [("fill", name, merged.get(name)) for name in changed]

        self._announcing(write)

    def touch(self, name: str) -> None:
        self._check({name: None})
        self.touched.add(name)

    def invalidate(self, name: str, message: str) -> None:
        self._check({name: None})
        self._announcing(lambda: self.external.update({name: FieldError(name, message)}))

    def disable(self, names: str | Collection[str] | None) -> None:
        self._switch("disable", names)

    def enable(self, names: str | Collection[str] | None) -> None:
        self._switch("enable", names)

    def submit(self) -> dict[str, Value] | list[FieldError]:
        self._check({})
        errors = self.errors
        if errors:
            self.touched |= self.fields.keys() - self.disabled
            return errors
        self.status = "settled"
        submitted = {name: value for name, value in self.values.items() if name not in self.disabled}
        self.events.append(("submit", submitted))
        return submitted

    def clear(self) -> None:
        self._check({})

        def reset() -> None:
            self.values = dict(self.baseline)
            self.disabled = self._flagged()
            self.touched.clear()
            self.external.clear()
            self.events.append(("clear",))

        self._announcing(reset)

    def destroy(self) -> None:
        if self.status == "editing":
            self.status = "abandoned"
            self.events.append(("abandon",))

    def trial(self, changes: Mapping[str, Value | None]) -> tuple[dict[str, Value], list[FieldError]]:
        self._check(changes)
        tried = Model(self.schema, self._merged(self.values, changes))
        tried.values, tried.disabled = tried._merged(self.values, changes), self.disabled
        tried.external = {name: error for name, error in self.external.items() if name not in changes}
        return tried.values, tried.errors

    def _check(self, changes: Mapping[str, Value | None]) -> None:
        if self.status != "editing":
            raise FormError(self.status.upper(), "")
        for name, value in changes.items():
            if name not in self.fields:
                raise FormError("FIELD", "")
            if value is not None and not matches_field(self.fields[name], value):
                raise FormError("CONTROL", "")

    def _switch(self, event: str, names: str | Collection[str] | None) -> None:
        chosen = self.fields if names is None else [names] if isinstance(names, str) else names
        self._check(dict.fromkeys(chosen))

        def move() -> None:
            moved = [name for name in self.fields if name in chosen and (name in self.disabled) != (event == "disable")]
            self.disabled = self.disabled ^ set(moved)
            self.events += [(event, name) for name in moved]

        self._announcing(move)

    def _announcing(self, write: Callable[[], None]) -> None:
        before = self.errors
        write()
        if self.errors != before:
            self.events.append(("validate", self.errors))

    def _merged(self, values: Mapping[str, Value], changes: Mapping[str, Value | None]) -> dict[str, Value]:
        merged = {**values, **changes}
        return {name: value for name in self.fields if (value := merged.get(name)) is not None}

    def _flagged(self) -> set[str]:
        return {field.name for field in self.schema.fields if field.disabled is True}
