"""Looking through files, and replacing what is found in them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple, TypeAlias, TypeVar, final

from msgspec import UNSET, Struct, UnsetType

from greenroom.protocol.workspace.editing import rewrite
from greenroom.protocol.workspace.files import File
from greenroom.protocol.workspace.matching import Matcher, Query
from greenroom.protocol.workspace.slicing import printable, put_in

__all__ = ["Check", "ReplaceResult", "Replacement", "SearchMatch", "find_replacements", "search_files", "unchecked"]

T = TypeVar("T")

Check: TypeAlias = Callable[[], None]
"""Called before each file and each match; what it raises ends the work. Nothing has been changed then."""


@final
class SearchMatch(Struct, frozen=True):
    """One match: its place, its length in units, and the whole line that it is in."""

    path: str
    line: int
    column: int
    length: int
    content: str


@final
class ReplaceResult(Struct, frozen=True, omit_defaults=True):
    """How many matches were replaced, in how many files. `note` says why there may be none."""

    occurrences: int
    files: int
    note: str | UnsetType = UNSET


class Replacement(NamedTuple):
    """The files as they are to be, and what that comes to."""

    files: list[File]
    result: ReplaceResult


def unchecked() -> None:
    """A check that lets the work go on, however long it takes."""


def search_files(
    files: Iterable[File], query: Query, check: Check = unchecked, *, each: int | None = None
) -> list[SearchMatch]:
    """The matches within each line of each text, in the order of the files: the first `each` of a line, or all.

    A pattern with a line feed finds nothing. Raises `WorkspaceError` PATTERN, also where there are no files.
    """
    matcher = Matcher(query)

    def matches() -> Iterator[SearchMatch]:
        for file, text in _texts(files, check):
            for line, content, start, end in _checked(matcher.hits(text, each), check):
                yield SearchMatch(file.path, line, start + 1, end - start, content)

    return _at_most(query.limit, matches())


def find_replacements(files: Iterable[File], query: Query, replacement: str, check: Check = unchecked) -> Replacement:
    """The texts in which the query matches, with the replacement put in as it stands: nothing in it is special.

    A match may span lines. Matches beyond the query's limit stay. Raises as `search_files` does.
    """
    matcher = Matcher(query)
    changed: list[File] = []
    left, occurrences = query.limit, 0
    crlf: str | None = None
    for file, text in _texts(files, check):
        if left == 0:
            break
        spans = _at_most(left, _checked(matcher.spans(text), check))
        if spans:
            changed.append(rewrite(file, put_in(text, spans, replacement)))
            occurrences += len(spans)
            left = None if left is None else left - len(spans)
        elif crlf is None and "\r\n" in text:
            crlf = file.path
    note: str | UnsetType = UNSET
    if crlf is not None and not occurrences and _has_bare_line_feed(query):
        note = f"Nothing matched, but lines in `{printable(crlf)}` end with CRLF: write \\r\\n where the query has \\n."
    return Replacement(changed, ReplaceResult(occurrences, len(changed), note))


def _texts(files: Iterable[File], check: Check) -> Iterator[tuple[File, str]]:
    for file in files:
        check()
        if (text := file.text) is not None:
            yield file, text


def _checked(found: Iterable[T], check: Check) -> Iterator[T]:
    for one in found:
        check()
        yield one


def _at_most(most: int | None, found: Iterable[T]) -> list[T]:
    return list(islice(found, None if most is None else min(most, sys.maxsize)))


def _has_bare_line_feed(query: Query) -> bool:
    text = query.text.replace(r"\n", "\n").replace(r"\r", "\r") if query.regex else query.text
    return "\n" in text and "\r" not in text
