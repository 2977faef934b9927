"""What holds for every pattern, and agreement with a backtracking matcher written from ECMA-262's own rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from greenroom.protocol.errors import PatternError
from greenroom.protocol.patterns import Pattern, compile_pattern
from greenroom.protocol.text import utf16_length

texts = st.text(st.characters(codec=None), max_size=12)  # lone surrogates and characters beyond U+FFFF too
short_texts = st.text("aab ", max_size=6)

pieces = st.one_of(
    st.sampled_from(
        [
            *(
                "a",
                "b",
                "-",
                "1",
                "😀",
                "\ud83d",
                ".",
                "|",
                "(",
                ")",
                "(?:",
                "(?=",
                "(?!",
                "(?<n>",
                "(?<m>",
                "(?<=",
                "(?i:",
            ),
            *(
                "[",
                "]",
                "[^",
                "{",
                "}",
                "{2}",
                "{1,2}",
                "{,2}",
                "{2,1}",
                "{0}",
                "{3,}",
                "*",
                "+",
                "?",
                "*?",
                "+?",
                "^",
                "$",
            ),
            *(
                r"\b",
                r"\B",
                r"\d",
                r"\W",
                r"\s",
                r"\1",
                r"\2",
                r"\k",
                r"\k<n>",
                r"\c",
                r"\cA",
                r"\x",
                r"\x61",
                r"\u0061",
            ),
            *(r"\u{2}", r"\0", r"\012", r"\8", "\\", r"\]", r"\p{L}", "<", ">", ",", "a-z", "z-a", "\u2028", "\n"),
        ]
    ),
    st.characters(codec=None),
)
sources = st.lists(pieces, max_size=10).map("".join)


def compiled(source: str, *, ignore_case: bool = False) -> Pattern | PatternError:
    try:
        return compile_pattern(source, ignore_case=ignore_case)
    except PatternError as error:
        return error


@settings(max_examples=500)
@given(sources, texts, st.booleans())
def test_any_source_is_refused_or_finds_what_it_says_it_finds(source: str, text: str, ignore_case: bool) -> None:
    pattern = compiled(source, ignore_case=ignore_case)
    if isinstance(pattern, PatternError):
        assert pattern.code in {"INVALID", "LOOKAROUND", "BACKREFERENCE", "REPEAT"}
        assert 0 <= pattern.context.get("position", 0) <= utf16_length(source)
        assert pattern.message.encode()
        return
    spans = list(pattern.spans(text))
    assert pattern.matches(text) == bool(spans)
    assert all(0 <= start <= end <= utf16_length(text) for start, end in spans)
    for (start, end), following in pairwise(spans):
        assert end <= following[0]
        assert start < end or following != (end, end)


@given(texts)
def test_an_escaped_text_matches_itself_and_nothing_longer(text: str) -> None:
    literal = re.escape(text)
    whole = compile_pattern(f"^{literal}$")
    assert whole.matches(text)
    assert not whole.matches(text + "x")
    assert next(compile_pattern(literal).spans(text)) == (0, utf16_length(text))


@given(texts, texts)
def test_an_escaped_text_is_found_where_it_stands(before: str, text: str) -> None:
    assume(text not in before + text[:-1])
    assume(not re.search("[\ud800-\udfff]", before[-1:] + text))
    start = utf16_length(before)
    assert next(compile_pattern(re.escape(text)).spans(before + text)) == (start, start + utf16_length(text))


@given(sources, sources, texts)
def test_a_choice_is_found_where_one_of_its_sides_is(left: str, right: str, text: str) -> None:
    assume("(" not in left + right)  # the names and numbers of groups reach across
    first, second, either = compiled(left), compiled(right), compiled(f"{left}|{right}")
    if isinstance(first, Pattern) and isinstance(second, Pattern):
        assert isinstance(either, Pattern)
        assert either.matches(text) == (first.matches(text) or second.matches(text))


Then: TypeAlias = Callable[[int], int | None]


@dataclass(frozen=True)
class Node:
    """A pattern with its meaning: `run(text, at, then)` tries its ways in order until `then` accepts an end."""

    source: str
    run: Callable[[str, int, Then], int | None]


def literal(character: str) -> Node:
    def run(text: str, at: int, then: Then) -> int | None:
        return then(at + 1) if text.startswith(character, at) else None

    return Node(character, run)


def condition(source: str, holds: Callable[[str, int], bool]) -> Node:
    return Node(source, lambda text, at, then: then(at) if holds(text, at) else None)


def sequence(parts: list[Node]) -> Node:
    def run(text: str, at: int, then: Then, index: int = 0) -> int | None:
        if index == len(parts):
            return then(at)
        return parts[index].run(text, at, lambda end: run(text, end, then, index + 1))

    return Node("".join(part.source for part in parts), run)


def choice(sides: list[Node]) -> Node:
    def run(text: str, at: int, then: Then) -> int | None:
        ends = (side.run(text, at, then) for side in sides)
        return next((end for end in ends if end is not None), None)

    return Node(f"(?:{'|'.join(side.source for side in sides)})", run)


def repetition(body: Node, low: int, more: int | None, lazy: bool) -> Node:
    high = None if more is None else low + more
    bounds = f"{{{low},{'' if high is None else high}}}"

    def run(text: str, at: int, then: Then, low: int = low, high: int | None = high) -> int | None:
        # `RepeatMatcher` of ECMA-262, 22.2.2.3.1.
        if high == 0:
            return then(at)

        def once_more(at: int) -> int | None:
            def turned(end: int) -> int | None:
                if low == 0 and end == at:
                    return None
                return run(text, end, then, max(low - 1, 0), None if high is None else high - 1)

            return body.run(text, at, turned)

        if low > 0:
            return once_more(at)
        ends = (way(at) for way in ((then, once_more) if lazy else (once_more, then)))
        return next((end for end in ends if end is not None), None)

    return Node(f"(?:{body.source}){bounds}{'?' if lazy else ''}", run)


def is_word(text: str, at: int) -> bool:
    return 0 <= at < len(text) and text[at].isalnum()


nodes = st.recursive(
    st.one_of(
        st.sampled_from("ab").map(literal),
        st.just(condition("^", lambda text, at: at == 0)),
        st.just(condition("$", lambda text, at: at == len(text))),
        st.just(condition(r"\b", lambda text, at: is_word(text, at) != is_word(text, at - 1))),
        st.just(condition(r"\B", lambda text, at: is_word(text, at) == is_word(text, at - 1))),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(sequence),
        st.lists(inner, min_size=2, max_size=3).map(choice),
        st.builds(repetition, inner, st.integers(0, 2), st.sampled_from([None, 0, 1, 2]), st.booleans()),
    ),
    max_leaves=6,
)


def backtracked(node: Node, text: str) -> Iterator[tuple[int, int]]:
    at = 0
    while at <= len(text):
        end = node.run(text, at, lambda end: end)
        if end is None:
            at += 1
        else:
            yield at, end
            at = end if end > at else end + 1


@settings(max_examples=500, deadline=None)
@given(nodes, short_texts)
def test_the_same_spans_are_found_as_by_backtracking(node: Node, text: str) -> None:
    pattern = compile_pattern(node.source, limit=None)
    assert list(pattern.spans(text)) == list(backtracked(node, text))
    assert pattern.matches(text) == any(True for _ in backtracked(node, text))


atoms = st.sampled_from(
    ["a", "b", ".", "[ab]", "[^a]", r"\d", r"\w", r"\W", r"\s", r"\S", "[a-c1]", r"\x61", r"\n", "a1"]
)
marks = st.sampled_from(["", "*", "+?", "{1,2}", "{2,}", "?", "*?"])
shared = st.recursive(
    st.tuples(atoms, marks).map(lambda parts: f"(?:{parts[0]}){parts[1]}"),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda sides: f"(?:{'|'.join(sides)})"),
        st.tuples(atoms, inner, marks).map(lambda parts: f"({parts[0]}{parts[1]}){parts[2]}"),
    ),
    max_leaves=5,
)


@settings(max_examples=300, deadline=None)
@given(shared, st.text("ab1_- \n", max_size=9), st.sampled_from(["", "^", r"\b"]))
def test_what_both_dialects_have_means_what_python_finds(source: str, text: str, prefix: str) -> None:
    # Only the first match: after an empty one Python goes on otherwise.
    found = re.search(prefix + source, text, re.ASCII)
    assert next(compile_pattern(prefix + source, limit=None).spans(text), None) == (found and found.span())


@pytest.mark.parametrize("code", range(0, 0x10000, 0x101))
def test_every_unit_is_found_by_its_escape(code: int) -> None:
    unit = chr(code)
    assert list(compile_pattern(f"\\u{code:04x}").spans(f"😀{unit}")) == [(2, 3)]
    assert list(compile_pattern(f"[^\\u{code:04x}]").spans(f"{unit}a")) == [(1, 2)]
