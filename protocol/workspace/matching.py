"""Queries: what is looked for, and where it is in a text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from operator import itemgetter
from typing import NamedTuple, final

from msgspec import Struct

from greenroom.protocol.errors import PatternError, WorkspaceError
from greenroom.protocol.patterns import compile_pattern
from greenroom.protocol.patterns.units import to_units
from greenroom.protocol.workspace.slicing import Span, printable

__all__ = ["Hit", "Matcher", "Query"]


@final
class Query(Struct, frozen=True):
    """What is looked for: a text as it stands or, with `regex`, an ECMAScript pattern without flags.

    `sensitive` tells upper from lower case. `limit` is how many matches there may be over all files, `None` for any
    number.
    """

    text: str
    regex: bool = False
    sensitive: bool = True
    limit: int | None = None


class Hit(NamedTuple):
    """A match within a line: the number of the line from 1, the line itself, and the match's units in it from 0."""

    line: int
    content: str
    start: int
    end: int


@final
class Matcher:
    """A query, compiled. Raises `WorkspaceError` PATTERN, with the `query`, for one that cannot be.

    All units of a text count, so that a query may match half a character. Matches do not overlap, and an empty one is
    followed by the next one unit further (`RegExp.prototype[@@matchAll]`, ECMA-262 22.2.6.9). Finding one takes time
    linear in the text, so that finding all may take its square.
    """

    __slots__ = ("_needle", "_pattern", "_query")

    def __init__(self, query: Query) -> None:
        self._query = query
        self._needle = to_units(query.text) if query.text and query.sensitive and not query.regex else None
        source = query.text if query.regex else re.escape(query.text)
        try:
            self._pattern = (
                compile_pattern(source, ignore_case=not query.sensitive, limit=None) if self._needle is None else None
            )
        except PatternError as error:
            raise WorkspaceError(
                "PATTERN",
                f"The query `{printable(query.text[:80])}` cannot be searched for. {error.message}",
                {"query": printable(query.text)},
            ) from None

    def spans(self, text: str) -> Iterator[Span]:
        """Where it is in the whole text, where `^` and `$` mean the ends of the text."""
        if self._pattern is not None:
            return self._pattern.spans(text)
        assert self._needle is not None, "one of the two is there"
        return _occurrences(to_units(text), self._needle)

    def hits(self, text: str, most: int | None = None) -> Iterable[Hit]:
        """Where it is in each line by itself, where `^` and `$` mean the ends of the line: the first `most` of each."""
        if self._query.regex:
            return self._hits_by_line(text, most)
        # What is taken literally cannot cross the end of a line, so that the text is gone through only once. Most texts
        # hold nothing of it.
        if "\n" in self._query.text or (self._needle is not None and self._needle not in to_units(text)):
            return ()
        lines = groupby(_in_lines(text, self.spans(text)), key=itemgetter(0))
        return (hit for _, hits in lines for hit in islice(hits, most))

    def _hits_by_line(self, text: str, most: int | None) -> Iterator[Hit]:
        for number, line in enumerate(text.split("\n"), start=1):
            for start, end in islice(self.spans(line), most):
                yield Hit(number, line, start, end)


def _occurrences(units: str, needle: str) -> Iterator[Span]:
    at = units.find(needle)
    while at >= 0:
        end = at + len(needle)
        yield at, end
        at = units.find(needle, end)


def _in_lines(text: str, spans: Iterable[Span]) -> Iterator[Hit]:
    """Spans of the text as hits in its lines, of which each span lies in one."""
    units = text
    lines: list[str] = []
    line = begin = at = 0
    for start, end in spans:
        if not lines:
            units, lines = to_units(text), text.split("\n")
        line += units.count("\n", at, start)
        begin = max(begin, units.rfind("\n", at, start) + 1)
        at = start
        yield Hit(line + 1, lines[line], start - begin, end - begin)
