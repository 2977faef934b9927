"""Which inputs a departure speaks of. Each predicate sees the expanded, translated input of a case and nothing else."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from tests.conformance.values import is_list, is_object

__all__ = [
    "asks_a_refused_pattern_last",
    "describes_the_database_tool",
    "field_gets_lossy_digits",
    "finds_only_by_refused_patterns",
    "holds_a_wide_character",
    "includes_a_name_of_every_object",
    "posted_status",
    "posts_half_a_surrogate_pair",
    "posts_json_that_is_no_utf8",
    "record_gets_lossy_digits",
    "schema_holds_a_refused_pattern",
    "tool_raises_a_text",
    "tool_returns_nothing",
]

# Escapes and classes come first, so that a parenthesis within them opens no group.
_TOKENS = re.compile(r"\\[1-9][0-9]*|\\.|\[(?:\\.|[^\]\\])*\]|\(\?<?[=!]|\(\?<|\(\?:|\(|.", re.DOTALL)
_LOOKAROUND = frozenset({"(?=", "(?!", "(?<=", "(?<!"})


def schema_holds_a_refused_pattern(given: Any) -> bool:
    """A field of the schema has a pattern with lookaround or a back-reference."""
    return any(is_refused_pattern(pattern) for pattern in _patterns(given.get("schema")))


def asks_a_refused_pattern_last(given: Any) -> bool:
    """The last step of the script, and no other, asks or parks a form with such a pattern.

    Only then nothing that comes later could depend on the form that was not parked.
    """
    *earlier, last = [_step_schema(step) for step in given["steps"]]
    return any(map(is_refused_pattern, _patterns(last))) and not any(
        is_refused_pattern(pattern) for schema in earlier for pattern in _patterns(schema)
    )


def field_gets_lossy_digits(given: Any) -> bool:
    """A number field is given a string of digits that no double prints back."""
    return _is_lossy(given["field"], given.get("input"))


def record_gets_lossy_digits(given: Any) -> bool:
    """Some number field of the schema is given such a string of digits."""
    answers = given.get("input")
    return is_object(answers) and any(
        _is_lossy(field, answers.get(field["name"])) for field in _fields(given["schema"])
    )


def tool_returns_nothing(given: Any) -> bool:
    """The wrapped tool's handler returns no value."""
    return _kind(given) == "absent"


def tool_raises_a_text(given: Any) -> bool:
    """The wrapped tool's handler throws a string, which Python has no counterpart of."""
    return _kind(given) == "throwsText"


def posts_json_that_is_no_utf8(given: Any) -> bool:
    """A body that is posted is JSON once what is no UTF-8 in it is replaced."""
    return any(posted_status(step) == 400 for step in given["steps"])


def posts_half_a_surrogate_pair(given: Any) -> bool:
    """An answer that is posted has half of a surrogate pair, spelled as an escape, in its id or its values."""
    return any(posted_status(step) == 422 for step in given["steps"])


def describes_the_database_tool(given: Any) -> bool:
    """The schema is that of the database tool's arguments."""
    return bool(given["tool"] == "database")


def includes_a_name_of_every_object(given: Any) -> bool:
    """An include path names what every ECMAScript object has by itself."""
    own = ("__proto__", "constructor", "hasOwnProperty", "isPrototypeOf", "toString", "valueOf")
    return any(name in own for path in given.get("paths") or () for name in path.split("."))


def posted_status(step: Any) -> int | None:
    """The status of a step that posts an answer in which something has no UTF-8; None for any other step."""
    if step["do"] != "post":
        return None
    body = bytes.fromhex(step["hex"]) if "hex" in step else step.get("body", "").encode(errors="replace")
    try:
        posted = step["json"] if "json" in step else json.loads(body.decode(errors="replace"))
    except ValueError:
        return None
    if not _is_utf8(body):
        return 400
    answer = [posted.get("id"), posted.get("values")] if is_object(posted) else []
    return None if _is_utf8(answer) else 422


def finds_only_by_refused_patterns(given: Any) -> bool:
    """The script only reads, and searches and replaces by patterns with lookaround or a back-reference.

    Only then the files stay as they were given, and what is read later is known.
    """
    steps: list[Any] = given["steps"]
    found = [step for step in steps if step.get("operation") in ("search", "replace")]
    return (
        len(found) > 0
        and all(step.get("regex") is True and is_refused_pattern(step.get("query")) for step in found)
        and all(step in found or step.get("operation") == "read" for step in steps)
    )


def holds_a_wide_character(given: Any) -> bool:
    """Some text holds a character of two UTF-16 units, or half of one, so that an edit may leave a half."""
    if isinstance(given, str):
        return any(char > "\uffff" or "\ud800" <= char <= "\udfff" for char in given)
    if is_object(given):
        return any(map(holds_a_wide_character, given.values()))
    return is_list(given) and any(map(holds_a_wide_character, given))


def is_refused_pattern(source: Any) -> bool:
    """Does an ECMAScript pattern hold lookaround or a back-reference?

    A digit escape refers back only if there are as many groups (ECMA-262, annex B.1.2: it is an octal escape
    otherwise), and `\\k` only if some group has a name.
    """
    if not isinstance(source, str):
        return False
    tokens = _TOKENS.findall(source)
    if not _LOOKAROUND.isdisjoint(tokens):
        return True
    named = tokens.count("(?<")
    if named and "\\k" in tokens:
        return True
    groups = named + tokens.count("(")
    references = [int(token[1:]) for token in tokens if token[0] == "\\" and token[1:].isdecimal()]
    return any(0 < reference <= groups for reference in references)


def _is_lossy(field: Any, value: Any) -> bool:
    if field.get("control") != "number" or not isinstance(value, str):
        return False
    digits = value.strip().lstrip("+")
    if re.fullmatch(r"-?[0-9]+", digits) is None:
        return False
    held = float(digits)
    return math.isfinite(held) and int(held) != int(digits)


def _is_utf8(value: Any) -> bool:
    """Whether bytes are UTF-8, or all text of a JSON value has a UTF-8 form."""
    try:
        if isinstance(value, bytes):
            value.decode()
        else:
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeError:
        return False
    return True


def _kind(given: Any) -> str | None:
    kinds = {tool["name"]: tool["kind"] for tool in given["tools"]}
    return kinds.get(given["name"])


def _step_schema(step: Any) -> Any:
    """The schema that a step of a terminal script asks or parks, if it does."""
    if step["do"] in ("ask", "park"):
        return step.get("schema")
    if step["do"] == "tool.ask" and is_object(step.get("args")):
        return step["args"].get("schema")
    return None


def _fields(schema: Any) -> Iterator[dict[str, Any]]:
    """The fields of what may be a schema."""
    fields = schema.get("fields") if is_object(schema) else None
    return filter(is_object, fields if is_list(fields) else ())


def _patterns(schema: Any) -> Iterator[Any]:
    for field in _fields(schema):
        rule = field.get("rule")
        if is_object(rule):
            yield rule.get("pattern")
