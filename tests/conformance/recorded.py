"""What several areas need to write an answer in the recorded form: errors, placeholders of ids, fixtures."""

from __future__ import annotations

import json
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from greenroom.protocol.errors import GreenroomError
from tests.conformance.values import is_list, is_object

__all__ = ["CASES", "Placeholders", "beside", "error", "fixture"]

CASES = Path(__file__).parent / "cases"

beside: ContextVar[Path] = ContextVar("beside", default=CASES)
"""The folder of the file of cases that is being run."""


def error(raised: Exception) -> dict[str, Any]:
    """`{"error": {"code", "context"}}`, without a context if there is nothing in it.

    An exception that is no `GreenroomError` has no code that a program could read: null.
    """
    if not isinstance(raised, GreenroomError):
        return {"error": {"code": None}}
    told: dict[str, Any] = {"code": raised.code}
    if raised.context:
        told["context"] = raised.context
    return {"error": told}


def fixture(name: str) -> Any:
    """The JSON file `name` beside the cases that are being run, else the one kept in the repository."""
    here = beside.get() / name
    path = here if here.is_file() else CASES / name
    return json.loads(path.read_text(encoding="utf-8"))


class Placeholders:
    """The ids that came up in one case: `$1` is the first that was written, `$2` the second."""

    def __init__(self) -> None:
        self._placeholders: dict[str, str] = {}

    def write(self, value: Any) -> Any:
        """A copy of `value` in which every string that is a known id is its placeholder."""
        return _mapped(value, self._placeholders)

    def issue(self, identifier: str) -> str:
        """The placeholder of this id; a new one if the id has not come up before."""
        return self._placeholders.setdefault(identifier, f"${len(self._placeholders) + 1}")

    def read(self, value: Any) -> Any:
        """A copy of `value` in which every issued placeholder is the real id; others stand as they are."""
        return _mapped(value, {placeholder: identifier for identifier, placeholder in self._placeholders.items()})


def _mapped(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, str):
        return names.get(value, value)
    if is_list(value):
        return [_mapped(entry, names) for entry in value]
    if is_object(value):
        return {name: _mapped(member, names) for name, member in value.items()}
    return value
