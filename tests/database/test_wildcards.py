"""Patterns with wildcards, against a matcher that tries everything."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.protocol.database import compile_glob, compile_like
from tests.database.model import units, wildcard

texts = st.text("abAB.\0é\U0001f600\ue000ßİΣς", max_size=10)
patterns = st.text("abAB%_*?.\0é\U0001f600", max_size=8)


@given(texts, patterns)
def test_like_folds_case_and_takes_a_unit_for_each_underscore(text: str, pattern: str) -> None:
    assert compile_like(pattern)(text) is wildcard(units(text.lower()), units(pattern.lower()), "%", "_")


@given(texts, patterns)
def test_glob_is_exact(text: str, pattern: str) -> None:
    assert compile_glob(pattern)(text) is wildcard(units(text), units(pattern), "*", "?")


@given(texts)
def test_every_text_fits_itself_and_any_run(text: str) -> None:
    for pattern in (text, "%", "%%", f"%{text}", f"{text}%", f"%{text}%"):
        assert compile_like(pattern)(text)


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("é", "É", True),
        ("__", "\U0001f600", True),
        ("_", "\U0001f600", False),
        ("a\\%b", "a%b", False),
        ("a\\%b", "a\\xb", True),
        ("", "", True),
        ("%", "", True),
        ("_%_", "a", False),
        ("a%a", "a", False),
        ("%ab%ab%", "xabyab", True),
        ("%ab%ab%", "xaby", False),
        ("%\n%", "a\nb", True),
    ],
)
def test_like(pattern: str, text: str, fits: bool) -> None:
    assert compile_like(pattern)(text) is fits


def test_a_match_that_takes_long_can_be_ended_in_its_midst() -> None:
    class Enough(Exception):
        pass

    ticks = 0

    def tick() -> None:
        nonlocal ticks
        ticks += 1
        if ticks == 3:
            raise Enough

    with pytest.raises(Enough):
        compile_like(f"%{'a_' * 300}c%", tick)("a" * 1_000_000)


def test_patterns_without_single_wildcards_take_linear_time() -> None:
    begun = time.process_time()
    for pattern in ("%" + "a%" * 500 + "b", "%aaaaaaaab%" * 80, "a" * 1000 + "b%"):
        assert not compile_like(pattern)("a" * 200_000)
    assert time.process_time() - begun < 2
