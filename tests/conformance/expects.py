"""What is given instead of a record, where that takes more than a literal. Each function sees (input, record)."""

from __future__ import annotations

from typing import Any, cast

from tests.conformance.predicates import is_refused_pattern

__all__ = ["fails_refused_patterns", "refuses_the_last_ask"]

_STRING_CONTROLS = ("text", "editor", "password", "date", "time", "datetime", "color", "select")
_NO_RULE: dict[str, Any] = {}
_BEFORE_PATTERN = ("required", "minimum", "maximum", "step")


def fails_refused_patterns(given: Any, record: Any) -> list[Any]:
    """The recorded field errors, and `pattern` for each present value whose pattern is refused.

    The order stays that of the fields and, within one, of the rules.
    """
    disabled = given.get("disabled")
    errors: list[Any] = []
    for field in given["schema"]["fields"]:
        name, pattern = field["name"], field.get("rule", _NO_RULE).get("pattern")
        own = [error for error in cast("list[Any]", record) if error["field"] == name]
        skipped = field.get("disabled", False) if disabled is None else name in disabled
        refused = is_refused_pattern(pattern) and field["control"] in _STRING_CONTROLS
        if refused and not skipped and isinstance(given["values"].get(name), str):
            before = [error for error in own if error.get("rule") in _BEFORE_PATTERN]
            after = [error for error in own if error.get("rule") not in (*_BEFORE_PATTERN, "pattern")]
            own = [*before, {"field": name, "rule": "pattern"}, *after]
        errors.extend(own)
    return errors


def refuses_the_last_ask(given: Any, record: Any) -> dict[str, Any]:
    """The recorded steps, the last of which is refused before anything is parked."""
    *earlier, last = record["steps"]
    error: dict[str, Any] = {"code": "SCHEMA"}
    if given["steps"][-1]["do"] == "park":
        return {"steps": [*earlier, {"error": error}]}
    if given["steps"][-1]["do"] == "tool.ask":
        error = {"code": "TOOL", "context": {"schema": "$input"}}
    return {"steps": [*earlier, {"ask": last["ask"], "settled": [{"ask": last["ask"], "error": error}]}]}
