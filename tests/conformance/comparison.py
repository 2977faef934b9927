"""When an answer counts as equal to a record."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from tests.conformance.values import is_list, is_number, is_object

__all__ = ["Member", "Path", "difference", "matches_path"]

Path = tuple[str, ...]
_SHOWN = 200


class Member(NamedTuple):
    """A member that is not compared in the usual way.

    `path` leads to it from the output, with `*` for any index or name. `kind` says how: `added` is a member that
    greenroom has beyond the record (ignored only where the record has none), `uncompared` is a recorded one that it
    need not match, `set` is a list whose order is open.
    """

    path: Path
    kind: Literal["added", "uncompared", "set"]


def difference(record: Any, answer: Any, members: Iterable[Member] = (), path: Path = ()) -> str | None:
    """The first place where `answer` is not what `record` says, described in one line; None if they are equal.

    A missing member equals null, but null in a list is an entry. Numbers are of one kind and a bool is none of them.
    The order of an object's members is free. A recorded `"$input"` is an echo of the caller's own argument: the
    member must be there, and its content is free.
    """
    return _Comparison(tuple(members)).difference(record, answer, path)


def matches_path(pattern: Path, path: Path) -> bool:
    """Does `path` lead where `pattern` says, `*` standing for any one step?"""
    return len(pattern) == len(path) and all(p in ("*", step) for p, step in zip(pattern, path, strict=True))


class _Comparison(NamedTuple):
    members: tuple[Member, ...]

    def difference(self, record: Any, answer: Any, path: Path) -> str | None:
        if record == "$input" or self._is(path, "uncompared"):
            return None
        if is_object(record) and is_object(answer):
            return self._objects(record, answer, path)
        if is_list(record) and is_list(answer):
            if self._is(path, "set"):
                return self._sets(record, answer, path)
            return self._lists(record, answer, path)
        if is_number(record) and is_number(answer):
            equal = record == answer or (math.isnan(record) and math.isnan(answer))
        else:
            equal = type(record) is type(answer) and not _is_container(record) and record == answer
        return None if equal else _told(path, record, answer)

    def _objects(self, record: Mapping[str, Any], answer: Mapping[str, Any], path: Path) -> str | None:
        for name in [*record, *(name for name in answer if name not in record)]:
            here = (*path, name)
            recorded, answered = record.get(name), answer.get(name)
            if recorded is None and self._only_added(answered, here):
                continue
            if recorded == "$input" and name not in answer and not self._is(here, "uncompared"):
                return f"{_shown_path(here)}: the record echoes an argument here, and the answer has no such member"
            told = self.difference(recorded, answered, here)
            if told is not None:
                return told
        return None

    def _only_added(self, answered: Any, path: Path) -> bool:
        """Is all of this an addition: the member itself, or everything in it?"""
        if self._is(path, "added"):
            return True
        return (
            is_object(answered)
            and len(answered) > 0
            and all(self._only_added(inner, (*path, name)) for name, inner in answered.items())
        )

    def _lists(self, record: Sequence[Any], answer: Sequence[Any], path: Path) -> str | None:
        for index, (recorded, answered) in enumerate(zip(record, answer, strict=False)):
            told = self.difference(recorded, answered, (*path, str(index)))
            if told is not None:
                return told
        if len(record) != len(answer):
            return f"{_shown_path(path)}: recorded {len(record)} entries, answered {len(answer)}"
        return None

    def _sets(self, record: Sequence[Any], answer: Sequence[Any], path: Path) -> str | None:
        left = list(answer)
        for index, recorded in enumerate(record):
            here = (*path, str(index))
            found = next((i for i, other in enumerate(left) if self.difference(recorded, other, here) is None), None)
            if found is None:
                return f"{_shown_path(path)}: recorded an entry {_shown(recorded)} that is not in the answer"
            del left[found]
        if left:
            return f"{_shown_path(path)}: answered an entry {_shown(left[0])} that is not in the record"
        return None

    def _is(self, path: Path, kind: str) -> bool:
        return any(member.kind == kind and matches_path(member.path, path) for member in self.members)


def _is_container(value: Any) -> bool:
    return is_object(value) or is_list(value)


def _told(path: Path, record: Any, answer: Any) -> str:
    return f"{_shown_path(path)}: recorded {_shown(record)}, answered {_shown(answer)}"


def _shown_path(path: Path) -> str:
    return ".".join(("$", *path))


def _shown(value: Any) -> str:
    """One line of plain ASCII, so that a lone surrogate or a line separator in a value can be printed."""
    text = json.dumps(value, default=repr)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"
