"""Text of a form on its way to a terminal."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.protocol.forms import display_line, display_lines, sanitize_display_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain \u00e9 \N{GRINNING FACE}", "plain \u00e9 \N{GRINNING FACE}"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[1;1Hgone", "gone"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPdevice\x1b\\text", "text"),
        ("\x1b]never ended", "never ended"),
        ("\x1bMup", "up"),
        ("\x1b(Bcharset", "charset"),
        ("a\tb\nc\rd\x00e\x7ff", "abcdef"),
        ("\x85\x9c", ""),
        ("\u202aevil\u202e\u2066\u2069", "evil"),
        ("one\u2028two\u2029", "onetwo"),
        ("\x1b\x1b[0m[31m", "[31m"),
    ],
)
def test_nothing_that_moves_the_cursor_or_the_reading_order_is_left(text: str, shown: str) -> None:
    assert sanitize_display_text(text) == shown


@given(st.text(st.sampled_from("ab[]()\x1b\x9b\x9d\x07\\;0m?\n\u202e\u2028")))
def test_what_is_shown_holds_no_control_whatever_it_was_made_of(text: str) -> None:
    shown = sanitize_display_text(text)
    assert not set(shown) & set("\x1b\x9b\x9d\x07\n\u202e\u2028")
    assert sanitize_display_text(shown) == shown


@pytest.mark.parametrize("beginning", ["\x1b]", "\x9d", "\x9d\x9b0", "\x9b", "\x1b "])
def test_a_text_full_of_beginnings_is_shown_in_linear_time(beginning: str) -> None:
    began = time.process_time()
    shown = sanitize_display_text(beginning * 50_000)
    assert set(shown) <= set("0 ")
    assert time.process_time() - began < 2, "looking through it from each of them takes half a minute"


def test_a_string_that_is_never_ended_only_loses_its_beginning() -> None:
    assert sanitize_display_text("\x9done \x1b]two\x9b31mred") == "one twored"
    assert sanitize_display_text("\x9done\x07 two\x1bXthree") == " twothree"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\v", "\f", "\x85", "\u2028", "\u2029"])
def test_whatever_ends_a_line_is_seen(end: str) -> None:
    text = f"echo safe # list files{end}sleep 987\x1b[2J &"
    assert display_lines(text) == ["echo safe # list files", "sleep 987 &"]
    assert display_line(text) == "echo safe # list files\\nsleep 987 &"


def test_a_tab_is_white_space_and_nothing_else_of_a_line_is_lost() -> None:
    assert display_line("\x1b[31m1\x1b[0m\tone") == "1       one"
    assert display_lines("     1\tone\n\n  two ") == ["     1  one", "", "  two "]
    assert (display_lines(""), display_line(""), display_line(" ")) == ([], "", " ")


@given(st.text(st.sampled_from("ab[]()\x1b\x9b\x9d\x07\\;0m?\n\r\t\u202e\u2028")))
def test_no_line_holds_a_control_whatever_it_was_made_of(text: str) -> None:
    shown = "".join(display_lines(text))
    assert not set(shown) & set("\x1b\x9b\x9d\x07\n\r\t\u202e\u2028")
