"""Forms: documents, single answers, and scripts over one form at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from greenroom.protocol.emitter import Listener
from greenroom.protocol.errors import FormError
from greenroom.protocol.forms import (
    FORM_EVENTS,
    FieldError,
    Form,
    FormField,
    FormResult,
    FormSchema,
    FormSuccess,
    Outcome,
    Settled,
    applies_rule,
    audit_schema,
    compute_defaults,
    evaluate_form,
    extract_changes,
    extract_groups,
    is_form_schema,
    matches_answer,
    matches_field,
    parse_form,
    parse_value,
    parse_values,
    serialize_form,
)
from tests.conformance.customs import with_customs
from tests.conformance.recorded import error

RULES = ("required", "minimum", "maximum", "step", "pattern", "email", "url", "integer", "alphanumeric")


def parse(given: Any) -> Any:
    schema = parse_form(given.get("schema"))
    if schema is None:
        return {"accepted": False}
    brief = given.get("brief", False)
    return {"accepted": True, "schema": {"fields": len(schema.fields)} if brief else serialize_form(schema)}


def audit(given: Any) -> Any:
    document = given.get("schema")
    faults = audit_schema(document)
    if not is_form_schema(document):
        return {"structural": False, "sound": not faults}
    return {"structural": True, "sound": not faults, "faults": len(faults)}


def defaults(given: Any) -> Any:
    return compute_defaults(_sound(given["schema"]))


def value(given: Any) -> Any:
    read = parse_value(_field(given["field"]), given.get("input"))
    return {"refused": True} if read is None else {"value": read}


def values(given: Any) -> Any:
    read = parse_values(_sound(given["schema"]), given.get("input"))
    return {"refused": True} if read is None else {"values": read}


def matches(given: Any) -> Any:
    return matches_field(_field(given["field"]), given.get("value"))


def answered(given: Any) -> Any:
    return matches_answer(given.get("value"))


def evaluate(given: Any) -> Any:
    customs = given.get("custom")
    schema = with_customs(given["schema"], customs) if customs else given["schema"]
    return _errors(evaluate_form(schema, given["values"], disabled=given.get("disabled")))


def applies(given: Any) -> Any:
    return [rule for rule in RULES if applies_rule(given["control"], rule)]


def groups(given: Any) -> Any:
    return [group.name for group in extract_groups(_sound(given["schema"]))]


def changes(given: Any) -> Any:
    return sorted(extract_changes(given["current"], given["opened"]))


def script(given: Any) -> Any:
    schema, customs = given["schema"], given.get("custom")
    events: list[Any] = []
    try:
        form = Form(
            with_customs(schema, customs) if customs else schema, values=given.get("values"), on=_listeners(events)
        )
    except FormError as refused:
        return {"opened": error(refused)}
    ends: list[Outcome] = []
    form.on_end(ends.append)
    opened = _state(form)
    steps = [_step(form, step, events) for step in given["steps"]]
    return {"opened": opened, "steps": steps, "answer": _answer(ends)}


def _step(form: Form, step: Any, events: list[Any]) -> Any:
    events.clear()
    told: dict[str, Any] = {}
    try:
        result = _STEPS[step["do"]](form, step)
        if result is not None:
            told["result"] = _result(result)
    except FormError as refused:
        told.update(error(refused))
    return {**told, "events": [*events], "state": _state(form)}


def _fill(form: Form, step: Any) -> None:
    if "values" in step:
        form.fill(step["values"])
    else:
        form.fill(step["name"], step.get("value"))


_STEPS: Mapping[str, Callable[[Form, Any], FormResult | None]] = {
    "fill": _fill,
    "touch": lambda form, step: form.touch(step["name"]),
    "invalidate": lambda form, step: form.invalidate(step["name"], "told from outside"),
    "disable": lambda form, step: form.disable(step.get("names")),
    "enable": lambda form, step: form.enable(step.get("names")),
    "submit": lambda form, _: form.submit(),
    "clear": lambda form, _: form.clear(),
    "destroy": lambda form, _: form.destroy(),
}


def _listeners(events: list[Any]) -> dict[str, Listener]:
    def keep(event: str) -> Listener:
        def listener(*told: Any) -> None:
            events.append([event, *(_errors(errors) for errors in told)] if event == "validate" else [event, *told])

        return listener

    return {event: keep(event) for event in FORM_EVENTS}


def _state(form: Form) -> Any:
    return {
        "status": form.status,
        "valid": form.valid,
        "dirty": form.dirty,
        "values": form.values,
        "errors": _errors(form.errors),
        "touched": sorted(form.touched),
        "disabled": sorted(form.disabled),
    }


def _result(result: FormResult) -> Any:
    if isinstance(result, FormSuccess):
        return {"success": True, "value": result.value}
    return {"success": False, "errors": _errors(result.error)}


def _answer(ends: list[Outcome]) -> Any:
    if not ends:
        return {"waiting": True}
    (outcome,) = ends
    return {"value": outcome.values} if isinstance(outcome, Settled) else {"error": {"code": "ABANDONED"}}


def _errors(errors: list[FieldError]) -> Any:
    told = [msgspec.to_builtins(error) for error in errors]
    return [{name: member for name, member in error.items() if name != "message"} for error in told]


def _field(document: Any) -> FormField:
    field: FormField = msgspec.convert(document, FormField)
    return field


def _sound(document: Any) -> FormSchema:
    return msgspec.convert(document, FormSchema)


OPS: Mapping[str, Callable[[Any], Any]] = {
    "form.parse": parse,
    "form.audit": audit,
    "form.defaults": defaults,
    "form.value": value,
    "form.values": values,
    "form.matches": matches,
    "form.answered": answered,
    "form.evaluate": evaluate,
    "form.applies": applies,
    "form.groups": groups,
    "form.changes": changes,
    "form.script": script,
}
