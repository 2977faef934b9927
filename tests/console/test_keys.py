"""What was pressed, read from what a terminal sends."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.actors.console import Key, parse_key, split_keys

CHUNKS = st.text(st.sampled_from("\x1b[O~0134;ABCDFHZ aA\r\n\t\x7f\x9bé")) | st.text(st.characters())


@pytest.mark.parametrize(
    ("chunk", "name"),
    [
        ("\r", "return"),
        ("\n", "return"),
        ("\b", "backspace"),
        ("\x7f", "backspace"),
        ("\t", "tab"),
        ("\x1b", "escape"),
        (" ", "space"),
        ("q", "q"),
        ("é", "é"),
        ("😀", "😀"),
    ],
)
def test_a_plain_key_has_a_name(chunk: str, name: str) -> None:
    assert parse_key(chunk) == Key(name, chunk)


@pytest.mark.parametrize(("chunk", "name"), [("\x03", "c"), ("\x04", "d"), ("\x15", "u"), ("\x01", "a"), ("\x05", "e")])
def test_a_key_with_control_is_its_letter(chunk: str, name: str) -> None:
    assert parse_key(chunk) == Key(name, chunk, ctrl=True)


@pytest.mark.parametrize(
    ("chunk", "name"),
    [
        *(
            (f"\x1b{introducer}{final}", name)
            for introducer in "[O"
            for final, name in [("A", "up"), ("B", "down"), ("C", "right"), ("D", "left")]
        ),
        *((f"\x1b[{ending}", "home") for ending in ("H", "1~", "7~")),
        *((f"\x1b[{ending}", "end") for ending in ("F", "4~", "8~")),
        ("\x1b[3~", "delete"),
    ],
)
def test_an_escape_sequence_is_one_key(chunk: str, name: str) -> None:
    assert parse_key(chunk) == Key(name, chunk, meta=True)
    assert split_keys(f"a{chunk}b") == ["a", chunk, "b"]


@pytest.mark.parametrize("chunk", ["", "\x00", "\x02", "\x1b[Z", "\x1b[99~", "\x1bOH", "\x9b", "\u202e", "\x1bx"])
def test_what_is_not_known_has_no_name(chunk: str) -> None:
    assert parse_key(chunk) == Key("", chunk)


def test_a_capital_letter_was_shifted() -> None:
    assert parse_key("A") == Key("A", "A", shift=True)
    assert parse_key("É").shift
    assert not any(parse_key(key).shift for key in ("a", "1", "ß", "漢", ":"))


def test_a_chunk_of_text_is_named_by_its_first_character_and_kept_whole() -> None:
    assert parse_key("hello") == Key("h", "hello")


def test_what_is_pasted_falls_into_keys() -> None:
    assert split_keys("ab\r\nc\x1b[A\n\x1b") == ["a", "b", "\r\n", "c", "\x1b[A", "\n", "\x1b"]


@given(CHUNKS)
def test_every_chunk_is_a_key(chunk: str) -> None:
    key = parse_key(chunk)
    assert key.sequence == chunk
    assert (key.ctrl and key.meta) is False
    assert len(key.name) == 1 or not key.shift


@given(CHUNKS)
def test_splitting_loses_nothing_and_splits_no_key(chunk: str) -> None:
    keys = split_keys(chunk)
    assert "".join(keys) == chunk
    assert all(split_keys(key) == [key] for key in keys)
