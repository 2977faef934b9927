"""Every control at a real terminal: which keys give which answer, and what is seen meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import trio

from greenroom.actors.console import Console
from greenroom.actors.console.tty import TtyPrompts
from greenroom.protocol.forms import Form, Value
from tests.console.person import PATIENCE, Person, opened
from tests.console.piping import form_of

UP, DOWN = "\x1b[A", "\x1b[B"
CHOICES = [
    {"value": "a", "label": "Apple"},
    {"value": "b", "label": "Pear", "disabled": True},
    {"value": "c", "label": "Plum", "help": "A sour one."},
    {"value": "d", "label": "Quince"},
]


async def fill_in(person: Person, schema: Mapping[str, Any] | Form, *script: tuple[str, str]) -> dict[str, Value]:
    """Have a person fill in a form: for each question that is seen, these keys are typed."""
    form = schema if isinstance(schema, Form) else Form(schema)
    person.rest()
    before = person.mode
    values: dict[str, Value] = {}
    with opened(person.slave) as (stdin, stdout), trio.fail_after(2 * PATIENCE):
        console = Console(TtyPrompts(stdin, stdout))

        async def ask() -> None:
            values.update(await console.ask(form))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            for question, keys in script:
                await person.answers(question, keys)
    assert person.mode == before
    return values


async def answer_to(person: Person, field: dict[str, Any], keys: str) -> Any:
    """The value that a field has after these keys; None if it has none."""
    return (await fill_in(person, form_of({"label": "Field", **field}), ("Field", keys))).get("x")


@pytest.mark.parametrize(
    ("field", "keys", "value"),
    [
        ({}, "Ada\r", "Ada"),
        ({}, "Ada\n", "Ada"),
        ({}, "\r", None),
        ({}, "  \r", None),
        ({"default": "old"}, "\r", "old"),
        ({"default": "old"}, "new\r", "new"),
        ({}, "Adam\x7f\x08a\r", "Ada"),
        ({}, "gone\x15Ada\r", "Ada"),
        ({}, "😀x\x7f\x7fb\r", "b"),
        ({}, "b\x01a\x05c\r", "abc"),
        ({}, "ac\x1b[Db\r", "abc"),
        ({}, "bc\x1b[7~a\x1b[8~d\r", "abcd"),
        ({}, "xabc\x1b[H\x1b[3~\x1b[F!\r", "abc!"),
        ({}, "a\tb\x04\r", "ab"),
        ({"control": "number"}, "0x1F\r", 31),
        ({"control": "number", "default": 7}, "\r", 7),
        ({"control": "date"}, "2026-03-31\r", "2026-03-31"),
        ({"control": "time"}, "09:30\r", "09:30"),
        ({"control": "datetime"}, "2026-03-31T09:30\r", "2026-03-31T09:30"),
        ({"control": "color", "default": "#00ff80"}, "\r", "#00ff80"),
        ({"control": "select", "open": True, "choices": CHOICES, "default": "c"}, "\r", "c"),
        ({"control": "select", "open": True, "choices": CHOICES}, "fig\r", "fig"),
        ({"control": "file"}, "a.txt\r", ["a.txt"]),
        ({"control": "file"}, "\r", None),
        ({"control": "file", "multiple": True}, "a.txt\rb.txt\r\r", ["a.txt", "b.txt"]),
        ({"control": "password"}, "hunter2\r", "hunter2"),
        ({"control": "password"}, "\r", None),
        ({"control": "editor"}, "one\rtwo\x04", "one\ntwo"),
        ({"control": "editor"}, "one\r\rtwo\r\x04", "one\n\ntwo"),
        ({"control": "editor", "default": "old\n"}, "\x04", "old\n"),
        ({"control": "editor"}, "\x04", None),
        ({"control": "confirm"}, "y", True),
        ({"control": "confirm"}, "Y", True),
        ({"control": "confirm", "default": True}, "n", False),
        ({"control": "confirm", "default": True}, "N", False),
        ({"control": "confirm", "default": True}, "\r", True),
        ({"control": "confirm"}, "x\x04 7\x1b[Ay", True),
        ({"control": "select", "choices": CHOICES}, "\r", "a"),
        ({"control": "select", "choices": CHOICES, "default": "c"}, "\r", "c"),
        ({"control": "select", "choices": CHOICES}, f"{DOWN}\r", "c"),
        ({"control": "select", "choices": CHOICES}, "\x1bOB\r", "c"),
        ({"control": "select", "choices": CHOICES}, "jj\r", "d"),
        ({"control": "select", "choices": CHOICES}, "jjj\r", "a"),
        ({"control": "select", "choices": CHOICES}, f"{UP}\r", "d"),
        ({"control": "select", "choices": CHOICES, "default": "d"}, "kx\x04\r", "c"),
        ({"control": "select", "choices": [CHOICES[1]]}, "", None),
        ({"control": "checkbox", "choices": CHOICES}, "\r", []),
        ({"control": "checkbox", "choices": CHOICES, "default": ["d", "a"]}, "\r", ["a", "d"]),
        ({"control": "checkbox", "choices": CHOICES, "default": ["a"]}, f" {UP} {UP} \r", ["c", "d"]),
        ({"control": "checkbox", "choices": CHOICES}, "jj kk \r", ["a", "d"]),
        ({"control": "checkbox", "choices": []}, "", []),
    ],
)  # fmt: skip
async def test_keys_give_an_answer(person: Person, field: dict[str, Any], keys: str, value: Any) -> None:
    assert await answer_to(person, field, keys) == value


@pytest.mark.case("forms", 38)
async def test_what_was_refused_is_asked_again_and_nothing_else(person: Person) -> None:
    form = form_of(
        {"name": "name", "label": "Name", "rule": {"required": True}},
        {"name": "other", "label": "Other"},
        {"control": "number", "name": "age", "label": "Age"},
    )
    values = await fill_in(
        person, form, ("Name", "\r"), ("Other", "o\r"), ("Age", "old\r"), ("? Name", "Ada\r"), ("? Age", "42\r")
    )
    assert values == {"name": "Ada", "other": "o", "age": 42}
    assert "Age: Enter a number" in person.text
    assert person.text.count("? Other  \n") <= 1


async def test_a_default_outside_its_own_bounds_is_shown_and_has_to_be_corrected(person: Person) -> None:
    field = {
        "control": "checkbox",
        "label": "Fruit",
        "choices": CHOICES,
        "default": ["a", "c", "d"],
        "rule": {"maximum": 2},
    }
    values = await fill_in(person, form_of(field), ("Quince", "\r"), ("Tick at most 2", ""), ("Quince", " \r"))
    assert values == {"x": ["c", "d"]}
    assert "● Apple" in person.text


async def test_a_password_is_never_shown(person: Person) -> None:
    for mask, shown in [({}, "*******"), ({"mask": "•"}, "•••••••"), ({"mask": "\x1b[31m"}, "*******")]:
        assert await answer_to(person, {"control": "password", **mask}, "hunter2\r") == "hunter2"
        assert shown in person.rest()
    assert "hunter2" not in person.raw
    assert "hunte" not in person.raw


async def test_what_was_typed_and_refused_comes_back_with_the_arrow(person: Person) -> None:
    field = {"control": "editor", "label": "Notes", "rule": {"minimum": 12}}
    values = await fill_in(person, form_of(field), ("Ctrl-D ends", "one\rtwo\x04"), ("before]", f"{UP} three\x04"))
    assert values == {"x": "one\ntwo three"}


async def test_a_paste_is_taken_as_if_it_had_been_typed(person: Person) -> None:
    form = form_of({"name": "a", "label": "First"}, {"name": "b", "label": "Second"}, {"name": "c", "label": "Third"})
    pasted = "\x1b[200~one \x1b[31mtwo\r\nthree\n\x1b[201~"
    assert await fill_in(person, form, ("First", pasted), ("Third", "4\r")) == {"a": "one two", "b": "three", "c": "4"}


async def test_a_long_paste_is_no_work(person: Person) -> None:
    long = "x" * 60_000
    with opened(person.slave) as (stdin, stdout):
        form = Form(form_of({"label": "Field"}))

        async def paste() -> None:
            await person.sees("Field")
            for chunk in ("\x1b[200~", *[long[:2_000]] * 30, "\x1b[201~\r"):
                await trio.to_thread.run_sync(person.types, chunk)

        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(paste)
                assert await Console(TtyPrompts(stdin, stdout)).ask(form) == {"x": long}


async def test_a_paste_is_no_choice(person: Person) -> None:
    for field in ({"control": "confirm"}, {"control": "select", "choices": CHOICES}):
        before_it = await answer_to(person, field, "\r")
        assert await answer_to(person, field, "\x1b[200~yj\r\x1b[201~\r") == before_it


async def test_an_editor_takes_a_paste_with_everything_in_it(person: Person) -> None:
    pasted = "\x1b[200~all:\n\tmake\n\x1b[201~\x04"
    assert await answer_to(person, {"control": "editor"}, pasted) == "all:\n\tmake"


async def test_what_is_typed_ahead_answers_the_next_field_and_not_the_next_form(person: Person) -> None:
    form = form_of({"name": "a", "label": "First"}, {"name": "b", "label": "Second"})
    assert await fill_in(person, form, ("First", "1\r2\r3\r4\r")) == {"a": "1", "b": "2"}
    assert await fill_in(person, form, ("First", "5\r"), ("Second", "6\r")) == {"a": "5", "b": "6"}


async def test_what_belongs_to_a_field_is_shown_with_it(person: Person) -> None:
    form = form_of(
        {"name": "l", "label": "Version", "locked": True, "default": "4.2"},
        {"control": "number", "name": "n", "label": "Share", "help": "In percent.", "default": 25, "group": "g"},
        {"name": "p", "label": "Reason", "placeholder": "Why so"},
        {"control": "select", "name": "s", "label": "Fruit", "choices": CHOICES},
        groups=[{"name": "g", "label": "Details"}],
    )
    await fill_in(
        person,
        form,
        ("Version (locked) 4.2\nDetails\nIn percent.\n? Share (number)  [25]", "\r"),
        ("Reason Why so", "\r"),
        ("Fruit", f"{DOWN}"),
        ("Description: A sour one.", "\r"),
    )
    assert "Pear" not in person.text
