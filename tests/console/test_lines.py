"""Line mode: what a line means to each control, and how lines are read."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from greenroom.actors.console import LinePrompts, LineReader
from greenroom.protocol.errors import FormError
from greenroom.protocol.forms import Form
from tests.console.piping import form_of, piped, walk

CHOICES = [
    {"value": "a", "label": "Apple"},
    {"value": "b", "label": "Pear", "disabled": True},
    {"value": "c", "label": "Plum", "help": "A sour one."},
]


async def answer_to(field: dict[str, Any], text: str) -> Any:
    """The value of a field that these lines answer; None if it has none."""
    return (await walk(form_of(field), text)).values.get("x")


@pytest.mark.parametrize(("control", "end"), [("text", ""), ("editor", ".\n")])
@pytest.mark.parametrize(("typed", "held"), [("new", "new"), ("", "old"), ("  ", "old"), (" new ", " new ")])
async def test_a_text_is_taken_as_it_is_and_a_blank_takes_the_default(
    control: str, end: str, typed: str, held: str
) -> None:
    assert await answer_to({"control": control, "default": "old"}, f"{typed}\n{end}") == held


@pytest.mark.parametrize(
    ("control", "typed", "held", "cue"),
    [
        ("number", "0x10", 16, "(number)"),
        ("date", "2026-03-31", "2026-03-31", "(YYYY-MM-DD)"),
        ("time", "09:30", "09:30", "(HH:MM)"),
        ("datetime", "2026-03-31T09:30", "2026-03-31T09:30", "(YYYY-MM-DDTHH:MM)"),
        ("color", "#00ff80", "#00ff80", "(#rrggbb)"),
        ("password", "hunter2", "hunter2", ""),
        ("file", "a.txt", ["a.txt"], "(path)"),
    ],
)
async def test_a_shape_is_told_and_read(control: str, typed: str, held: Any, cue: str) -> None:
    done = await walk(form_of({"control": control, "label": "Field"}), f"{typed}\n")
    assert done.values == {"x": held}
    assert done.lines == [f"Field {cue}".strip()]
    assert await answer_to({"control": control}, "\n") is None


@pytest.mark.parametrize(
    ("control", "typed"),
    [
        ("number", "1_000"),
        ("date", "31.3.2026"),
        ("time", "9:30"),
        ("datetime", "2026-03-31 09:30"),
        ("color", "red"),
        ("confirm", "maybe"),
    ],
)
async def test_another_shape_is_refused(control: str, typed: str) -> None:
    form = Form(form_of({"control": control}))
    with pytest.raises(FormError):
        await walk(form, typed)
    assert form.values == {}


@pytest.mark.parametrize(
    ("typed", "held"),
    [("y", True), ("YES", True), ("n", False), ("No", False), (" y ", True), ("true", True), ("false", False)],
)
async def test_a_confirmation_is_a_word(typed: str, held: bool) -> None:
    assert await answer_to({"control": "confirm"}, f"{typed}\n") is held


async def test_a_blank_confirmation_is_the_default_and_no_without_one() -> None:
    assert await answer_to({"control": "confirm", "rule": {"required": True}}, "\n") is False
    assert await answer_to({"control": "confirm", "default": True}, "\n") is True


@pytest.mark.parametrize(
    ("typed", "held"),
    [
        ("1", "a"),
        ("2", "c"),
        ("2x", "c"),
        (" 2 ", "c"),
        ("0", None),
        ("3", None),
        ("-1", None),
        ("a", None),
        ("", None),
        ("1" * 5000, None),
        ("٢", None),
    ],
)
async def test_a_choice_is_its_number_among_those_on_offer_and_anything_else_is_none(
    typed: str, held: str | None
) -> None:
    field = {"control": "select", "choices": CHOICES, "default": "a"}
    done = await walk(form_of(field), f"{typed}\n")
    assert done.values.get("x") == held
    assert done.lines == ["x", "  1. Apple", "  2. Plum: A sour one."]


@pytest.mark.parametrize(
    ("typed", "held"),
    [("1,2", ["a", "c"]), ("2, 1", ["c", "a"]), ("2,9,x,,1", ["c", "a"]), ("", []), ("none", [])],
)
async def test_ticks_are_numbers_and_bad_ones_are_dropped(typed: str, held: list[str]) -> None:
    field = {"control": "checkbox", "choices": CHOICES, "default": ["a"]}
    assert await answer_to(field, f"{typed}\n") == held


async def test_too_many_ticks_are_refused_with_the_limit_and_a_repeat_is_refused() -> None:
    choices = [{"value": letter, "label": letter.upper()} for letter in "abcde"]
    field = {"control": "checkbox", "choices": choices, "default": ["a", "b", "c"], "rule": {"maximum": 2}}
    done = await walk(form_of(field), "1,2,3\n1,1\n1,2\n")
    assert done.values == {"x": ["a", "b"]}
    too_many = "x: Tick at most 2 of these."
    assert [line for line in done.lines if line.startswith("x:")] == [
        too_many,
        too_many,
        "x: Choose any of what is on offer, each at most once.",
    ]


async def test_an_open_choice_takes_any_text_and_lists_what_is_on_offer() -> None:
    field = {"control": "select", "choices": CHOICES, "open": True, "default": "c"}
    done = await walk(form_of(field), "other\n")
    assert done.values == {"x": "other"}
    assert done.lines == ["x [c]", "  a (Apple)", "  c (Plum)"]
    assert await answer_to(field, "\n") == "c"
    assert await answer_to(field, "b\nd\n") == "d"


async def test_files_are_read_until_a_blank_line() -> None:
    field = {"control": "file", "multiple": True, "accept": [".txt", ".pdf"]}
    done = await walk(form_of(field, {"name": "y"}), "a.txt\nb.pdf\n\nnext\n")
    assert done.values == {"x": ["a.txt", "b.pdf"], "y": "next"}
    assert done.lines[0] == "x (path) .txt, .pdf (lines, then an empty one)"


async def test_an_editor_takes_lines_up_to_one_with_a_single_dot_and_the_next_field_goes_on_after_it() -> None:
    done = await walk(form_of({"control": "editor"}, {"name": "y"}), "one\n\n  two.\n...\n.\nnext\n")
    assert done.values == {"x": "one\n\n  two.\n...", "y": "next"}
    assert done.lines == ["x (lines, then one with a single .)", "y"]


async def test_the_end_of_the_input_ends_the_text_of_an_editor_and_the_list_of_files() -> None:
    assert await answer_to({"control": "editor"}, "one\n\n  two\n") == "one\n\n  two"
    assert await answer_to({"control": "file", "multiple": True}, "a.txt\nb.pdf") == ["a.txt", "b.pdf"]


async def test_what_is_no_utf_8_is_refused_rather_than_replaced() -> None:
    done = await walk(form_of({"rule": {"required": True}}), b"caf\xe9\ncaf\xc3\xa9\n")
    assert done.values == {"x": "café"}


# -------------------------------------------------------------------- the reader


async def test_lines_end_with_lf_or_crlf_and_with_nothing_else() -> None:
    with piped("a\r\nb\u2028c\x0bd\x85e\rf\n\nlast") as reader:
        assert [await reader.line() for _ in range(5)] == ["a", "b\u2028c\x0bd\x85e\rf", "", "last", None]
        assert reader.ended


@given(st.text(st.sampled_from("a\r\né\u2028"), max_size=40), st.integers(1, 5))
def test_lines_are_the_same_however_they_arrive(text: str, size: int) -> None:
    async def read() -> None:
        data = text.encode()
        source, sink = os.pipe()

        async def send() -> None:
            for start in range(0, len(data), size):
                os.write(sink, data[start : start + size])
                await trio.lowlevel.checkpoint()
            os.close(sink)

        reader, lines = LineReader(source), []
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            while (line := await reader.line()) is not None:
                lines.append(line)
        os.close(source)
        *whole, last = text.split("\n")
        assert lines == [line.removesuffix("\r") for line in whole] + ([last] if last else [])

    trio.run(read)


async def test_a_regular_file_and_an_empty_device_are_input_too(tmp_path: Path) -> None:
    file = tmp_path / "answers"
    file.write_text("one\ntwo\n")
    async with await trio.open_file(file, "rb") as opened:
        reader = LineReader(opened.fileno())
        assert [await reader.line(), await reader.line(), await reader.line()] == ["one", "two", None]
    async with await trio.open_file(os.devnull, "rb") as opened:
        assert await LineReader(opened.fileno()).line() is None


async def test_a_cancelled_read_loses_nothing(autojump_clock: object) -> None:
    source, sink = os.pipe()
    reader = LineReader(source)
    os.write(sink, b"half a ")
    with trio.move_on_after(1) as scope:
        await reader.line()
    assert scope.cancelled_caught
    os.write(sink, b"line\n")
    assert await reader.line() == "half a line"
    os.close(sink)
    os.close(source)


async def test_lines_that_are_left_are_counted_as_soon_as_there_is_one() -> None:
    with piped("") as reader:
        assert await reader.lines_left() == 0
        assert reader.ended
    with piped("left\nbegun") as reader:
        assert await reader.lines_left() == 2
        assert await reader.line() == "left"
        assert await reader.lines_left() == 1


async def test_whoever_waits_between_two_forms_with_lines_left_is_told_so_once(autojump_clock: object) -> None:
    notes = io.StringIO()
    with piped("one\ntwo\n") as reader:
        prompts = LinePrompts(reader, io.StringIO(), notes=notes)
        for _ in range(2):
            with trio.move_on_after(60) as scope:
                await prompts.wait_left()
            assert scope.cancelled_caught
        assert notes.getvalue() == "2 lines of the input are left; waiting for the next form.\n"
        await reader.line()
        with trio.move_on_after(60):
            await prompts.wait_left()
        assert notes.getvalue().endswith("1 line of the input is left; waiting for the next form.\n")
        await reader.line()
        await prompts.wait_left()


# -------------------------------------------------------------------- strict


@pytest.mark.parametrize(
    ("typed", "held"),
    [
        ("1", "a"),
        (" 2 ", "c"),
        ("c", "c"),
        ("Plum", "c"),
        ("", "a"),
        ("none", None),
    ],
)
async def test_a_strict_choice_is_a_number_a_value_or_a_label_and_nothing_is_the_default(
    typed: str, held: str | None
) -> None:
    field = {"control": "select", "choices": CHOICES, "default": "a"}
    done = await walk(form_of(field), f"{typed}\n", strict=True)
    assert done.values.get("x") == held
    assert done.lines == ["x [Apple]", "  1. Apple", "  2. Plum: A sour one."]


@pytest.mark.parametrize("typed", ["2 bananas", "2x", "0", "3", "-1", "b", "Pear", "apple", "1" * 5000, "٢", "1,2"])
async def test_any_other_line_for_a_strict_choice_is_refused_and_asked_again(typed: str) -> None:
    field = {"control": "select", "choices": CHOICES, "default": "a"}
    done = await walk(form_of(field), f"{typed}\nc\n", strict=True)
    assert done.values == {"x": "c"}
    assert "x: Enter one that is on offer." in done.lines


@pytest.mark.parametrize(
    ("typed", "held"),
    [("1,2", ["a", "c"]), ("c, Apple", ["c", "a"]), ("", ["a"]), ("none", []), ("2", ["c"])],
)
async def test_strict_ticks_are_numbers_values_or_labels(typed: str, held: list[str]) -> None:
    field = {"control": "checkbox", "choices": CHOICES, "default": ["a"]}
    done = await walk(form_of(field), f"{typed}\n", strict=True)
    assert done.values == {"x": held}
    assert done.lines[0] == "x [Apple]"


@pytest.mark.parametrize("typed", ["users,support", "1,9", "1,,2", "none,1", "1,1", "2 bananas"])
async def test_ticks_are_refused_whole_with_what_to_enter(typed: str) -> None:
    done = await walk(form_of({"control": "checkbox", "choices": CHOICES}), f"{typed}\n2\n", strict=True)
    assert done.values == {"x": ["c"]}
    assert "x: Choose any of what is on offer, each at most once." in done.lines


async def test_a_choice_that_is_called_none_is_one_and_a_label_that_two_have_is_none() -> None:
    choices = [{"value": "none", "label": "No"}, {"value": "b", "label": "Same"}, {"value": "c", "label": "Same"}]
    select, ticks = ({"control": control, "choices": choices} for control in ("select", "checkbox"))
    done = await walk(form_of({**select, "name": "s"}, {**ticks, "name": "t"}), "none\nnone\n", strict=True)
    assert done.values == {"s": "none", "t": ["none"]}
    assert (await walk(form_of(select), "Same\n3\n", strict=True)).values == {"x": "c"}
