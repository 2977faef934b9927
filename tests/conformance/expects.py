"""What is given instead of a record, where that takes more than a literal. Each function sees (input, record)."""

from __future__ import annotations

import re
from typing import Any, cast

from tests.conformance.predicates import is_refused_pattern, posted_status
from tests.conformance.values import is_list, is_object

__all__ = [
    "fails_refused_patterns",
    "includes_every_name_alike",
    "refuses_lone_surrogates",
    "refuses_patterns",
    "refuses_posts_without_utf8",
    "refuses_the_last_ask",
    "takes_both_spellings_of_a_type",
]

_STRING_CONTROLS = ("text", "editor", "password", "date", "time", "datetime", "color", "select")
_NO_RULE: dict[str, Any] = {}
_HALF = re.compile("[\ud800-\udfff]")
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


def refuses_patterns(given: Any, record: Any) -> dict[str, Any]:
    """Each search and each replacement is refused, and the one workspace stays as it was given."""
    files = {file["path"]: file for file in given["workspaces"][0]["files"]}

    def told(step: Any) -> dict[str, Any]:
        if step["operation"] == "read":
            return {"value": files.get(step["path"], {}).get("text")}
        return {"error": {"code": "PATTERN", "context": {"query": step["query"]}}}

    untouched = {
        path: {
            **record["files"][path],
            "text": file["text"],
            "state": "created",
            "size": len(file["text"].encode()),
            "lines": file["text"].count("\n") + 1,
        }
        for path, file in files.items()
    }
    return {"steps": [told(step) for step in given["steps"]], "order": [*files], "files": untouched}


def refuses_lone_surrogates(given: Any, record: Any) -> dict[str, Any]:
    """The record, but for results that hold half of a character: each is an error that says where the first one is."""
    steps = [_refused(step, recorded) for step, recorded in zip(given["steps"], record["steps"], strict=True)]
    return {**record, "steps": steps}


def _refused(step: Any, recorded: Any) -> Any:
    value = recorded.get("value")
    if isinstance(value, str) and (half := _HALF.search(value)):
        before = value[: half.start()]
        return _surrogate(str(step["path"]), before.count("\n") + 1, before.rpartition("\n")[2])
    if step.get("operation") == "search" and isinstance(value, list):
        matches: list[Any] = value
        for match in matches:
            if half := _HALF.search(match["content"]):
                return _surrogate(match["path"], match["line"], match["content"][: half.start()])
    return recorded


def _surrogate(path: str, line: int, before: str) -> dict[str, Any]:
    column = len(before.encode("utf-16-le", "surrogatepass")) // 2 + 1
    return {"error": {"code": "SURROGATE", "context": {"path": path, "line": line, "column": column}}}


def refuses_posts_without_utf8(given: Any, record: Any) -> dict[str, Any]:
    """The recorded steps, but posts in which something has no UTF-8 are refused without words, and set nothing off."""
    steps: list[Any] = []
    for step, told in zip(given["steps"], record["steps"], strict=True):
        status = posted_status(step)
        refused_before = told.get("status") in (401, 404, 413)
        steps.append(told if status is None or refused_before else {"status": status})
    return {"steps": steps}


def includes_every_name_alike(given: Any, record: Any) -> dict[str, Any]:
    """The recorded tree, with true for each name beneath which no path goes on."""
    return {name: includes_every_name_alike(given, below) or True for name, below in _members(record)}


def _members(record: Any) -> list[tuple[str, Any]]:
    return list(cast("dict[str, Any]", record).items()) if isinstance(record, dict) else []


def takes_both_spellings_of_a_type(given: Any, record: Any) -> Any:
    """The recorded schema, in which a column that has a `type` may have it under the name `primitive` instead."""
    if is_list(record):
        return [each for part in record for each in _spellings(takes_both_spellings_of_a_type(given, part))]
    if is_object(record):
        return {name: takes_both_spellings_of_a_type(given, member) for name, member in record.items()}
    return record


def _spellings(part: Any) -> list[Any]:
    if not is_object(part) or part.get("required") != ["type"]:
        return [part]
    properties = {"primitive" if name == "type" else name: member for name, member in part["properties"].items()}
    return [part, {**part, "properties": properties, "required": ["primitive"]}]
