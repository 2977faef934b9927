"""Names that greenroom has changed. A record is read with the new name, at the named place and nowhere else."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from tests.conformance.values import is_list, is_object

__all__ = ["TRANSLATIONS", "Translation", "translate"]


class Translation(NamedTuple):
    """One changed name: of a member (`what="name"`) or of a word that is a member's value (`what="value"`).

    `path` leads to the member from the case's `input` or `output` (`side`), with `*` for any index or name, and ends
    with the recorded name.
    """

    op: str
    side: Literal["input", "output"]
    path: tuple[str, ...]
    what: Literal["name", "value"]
    old: str
    new: str


def _behavior(op: str, side: Literal["input", "output"], root: str) -> Translation:
    return Translation(op, side, (root, "phases", "*", "tasks", "*", "run"), "name", "run", "behavior")


_REASON = ("steps", "*", "answer", "error", "reason")
_POSTED_REASON = ("steps", "*", "body", "error", "reason")

TRANSLATIONS = (
    # The reason of an answer to a terminal that is not there.
    Translation("terminal.script", "output", _REASON, "value", "terminal", "target"),
    Translation("wire.script", "output", _POSTED_REASON, "value", "terminal", "target"),
    # What names the behaviour of a task, in definitions and in drafts of them.
    _behavior("workflow.run", "input", "definition"),
    _behavior("workflow.author", "input", "args"),
    _behavior("workflow.author", "output", "definition"),
    _behavior("draft.complete", "input", "draft"),
    _behavior("draft.complete", "output", "definition"),
    _behavior("steps.expand", "output", "definition"),
)


def translate(op: str, side: Literal["input", "output"], value: Any) -> Any:
    """`value` with the names that greenroom has for it; the value itself where nothing applies."""
    for translation in TRANSLATIONS:
        if translation.op == op and translation.side == side:
            value = _translated(value, translation, translation.path)
    return value


def _translated(value: Any, translation: Translation, path: tuple[str, ...]) -> Any:
    if not path:
        return translation.new if translation.what == "value" and value == translation.old else value
    step, *rest = path
    if is_list(value):
        return [_translated(entry, translation, tuple(rest)) for entry in value] if step == "*" else value
    if not is_object(value):
        return value
    changed: dict[str, Any] = {}
    for name, member in value.items():
        here = step in ("*", name)
        renamed = here and not rest and translation.what == "name" and name == translation.old
        changed[translation.new if renamed else name] = (
            _translated(member, translation, tuple(rest)) if here else member
        )
    return changed
