"""Each control takes an answer and gives it to the asker as it was meant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import FilePayload, Locator, Page, expect

from greenroom.protocol.forms import FieldError
from greenroom.protocol.terminals import AnswerFailure, AnswerRefusal
from tests.page.looking import card, field, form_of, message, send
from tests.page.stage import Stage

CHOICES = [
    {"value": "a", "label": "Apple"},
    {"value": "b", "label": "Bread", "help": "Baked today."},
    {"value": "c", "label": "Cake", "disabled": True},
    {"value": "d", "label": "Dates"},
]


def files(*names: str) -> list[FilePayload]:
    return [FilePayload(name=name, mimeType="text/plain", buffer=b"what is in it") for name in names]


Act = Callable[[Locator], object]

ANSWERS: dict[str, tuple[dict[str, Any], Act, Any]] = {
    "text": ({"control": "text"}, lambda x: x.fill("Ada Lovelace"), "Ada Lovelace"),
    "text, blanks around": ({"control": "text"}, lambda x: x.fill(" Ada "), " Ada "),
    "editor": ({"control": "editor"}, lambda x: x.fill("one\ntwo"), "one\ntwo"),
    "password": ({"control": "password", "mask": "#"}, lambda x: x.fill("hunter2"), "hunter2"),
    "number": ({"control": "number"}, lambda x: x.fill(" -1.5e3 "), -1500),
    "number, hexadecimal": ({"control": "number"}, lambda x: x.fill("0x1F"), 31),
    "date": ({"control": "date"}, lambda x: x.fill("2026-02-28"), "2026-02-28"),
    "time": ({"control": "time"}, lambda x: x.fill("09:30"), "09:30"),
    "datetime": ({"control": "datetime"}, lambda x: x.fill("2026-02-28T09:30"), "2026-02-28T09:30"),
    "color": ({"control": "color"}, lambda x: x.fill("#00fF7f"), "#00fF7f"),
    "confirm, yes": ({"control": "confirm"}, lambda x: x.check(), True),
    "select": ({"control": "select", "choices": CHOICES}, lambda x: x.select_option("Bread"), "b"),
    "select, open": ({"control": "select", "open": True, "choices": CHOICES}, lambda x: x.fill("Figs"), "Figs"),
    "file": ({"control": "file"}, lambda x: x.set_input_files(files("one.txt")), ["one.txt"]),
    "files": (
        {"control": "file", "multiple": True, "accept": [".txt"]},
        lambda x: x.set_input_files(files("one.txt", "two.txt")),
        ["one.txt", "two.txt"],
    ),
}


@pytest.mark.parametrize(("described", "act", "expected"), ANSWERS.values(), ids=ANSWERS)
def test_a_control_is_answered(stage: Stage, page: Page, described: dict[str, Any], act: Act, expected: Any) -> None:
    asked = stage.ask(form_of({"name": "x", "label": "The question", **described}))
    act(page.get_by_label("The question", exact=True))
    send(page)
    assert asked.answer == {"x": expected}


def test_a_checkbox_field_is_answered_in_the_order_of_its_choices(stage: Stage, page: Page) -> None:
    asked = stage.ask(form_of({"control": "checkbox", "name": "x", "label": "The question", "choices": CHOICES}))
    ticks = page.get_by_role("group", name="The question")
    expect(ticks.get_by_label("Cake")).to_be_disabled()
    ticks.get_by_label("Dates").check()
    ticks.get_by_label("Apple").check()
    send(page)
    assert asked.answer == {"x": ["a", "d"]}


def test_the_swatch_of_a_colour_writes_the_colour_down(stage: Stage, page: Page) -> None:
    asked = stage.ask(form_of({"control": "color", "name": "x", "label": "Tint"}))
    page.get_by_label("Pick a colour for Tint").fill("#123456")
    expect(page.get_by_label("Tint", exact=True)).to_have_value("#123456")
    send(page)
    assert asked.answer == {"x": "#123456"}


def test_a_choice_is_explained_when_it_is_chosen(stage: Stage, page: Page) -> None:
    stage.ask(form_of({"control": "select", "name": "x", "label": "Food", "choices": CHOICES}))
    food = page.get_by_label("Food")
    expect(food).not_to_have_accessible_description("Baked today.")
    food.select_option("Bread")
    expect(food).to_have_accessible_description("Baked today.")


@pytest.mark.case("reports/forms", 1)
def test_a_confirmation_that_is_not_touched_is_a_no(stage: Stage, page: Page) -> None:
    required = {"control": "confirm", "name": "agree", "rule": {"required": True}}
    asked = stage.ask(form_of(required))
    assert stage.answer({}) == AnswerFailure(
        error=AnswerRefusal("rejected", (FieldError("agree", "Answer yes or no.", "required"),))
    )
    send(page)
    assert asked.answer == {"agree": False}
    again = stage.ask(form_of(required))
    stage.answer({"agree": False})
    assert again.answer == {"agree": False}


def test_what_is_not_touched_stays_as_the_server_has_it(stage: Stage, page: Page) -> None:
    """Inputs cannot hold some answers (a day that no calendar has, line ends in one line) or spell them anew."""
    defaults = {
        "text": "one\r\ntwo\u2028three",
        "editor": "one\r\ntwo",
        "date": "2026-02-31",
        "time": "09:30:00",
        "datetime": "2026-02-01T09:30:00",
        "color": "#ABCDEF",
        "number": 1e21,
    }
    fields = [{"control": control, "name": control, "default": held} for control, held in defaults.items()]
    exact = {"minimum": "2026-02-01T09:30:00"}
    choices = {"control": "checkbox", "name": "ticks", "choices": CHOICES, "default": ["d", "a"]}
    asked = stage.ask(
        form_of(*(field | {"rule": exact} if field["name"] == "datetime" else field for field in fields), choices)
    )
    expect(page.get_by_label("date", exact=True)).to_have_value("2026-02-31")
    expect(page.locator("[data-state=error]")).to_have_count(0)
    send(page)
    assert asked.answer == {**defaults, "ticks": ["d", "a"]}


def test_seconds_that_a_limit_has_are_asked_for_and_sent(stage: Stage, page: Page) -> None:
    rule = {"minimum": "2026-02-01T09:30:00"}
    asked = stage.ask(form_of({"control": "datetime", "name": "x", "label": "When", "rule": rule}))
    page.get_by_label("When").fill("2026-02-01T09:30:00")
    expect(message(page, "x")).to_be_hidden()
    send(page)
    assert asked.answer == {"x": "2026-02-01T09:30:00"}


def test_an_answer_can_be_taken_away(stage: Stage, page: Page) -> None:
    fields = (
        {"control": "text", "name": "t", "label": "Text", "default": "held"},
        {"control": "number", "name": "n", "label": "Number", "default": 5},
        {"control": "select", "name": "s", "label": "Choice", "choices": CHOICES, "default": "a"},
        {"control": "text", "name": "blank", "label": "Blank"},
        {"control": "date", "name": "day", "label": "Day"},
    )
    asked = stage.ask(form_of(*fields))
    page.get_by_label("Text").fill("")
    page.get_by_label("Number").fill("  ")
    page.get_by_label("Choice").select_option("No answer")
    page.get_by_label("Blank").fill("   ")
    send(page)
    assert asked.answer == {}


def test_a_choice_with_line_ends_is_sent_as_it_is(stage: Stage, page: Page) -> None:
    choice = {"value": "one\r\ntwo", "label": "Both"}
    asked = stage.ask(form_of({"control": "select", "open": True, "name": "x", "label": "Which", "choices": [choice]}))
    page.get_by_label("Which").fill("onetwo")
    expect(page.get_by_label("Which")).to_have_accessible_description("Both")
    send(page)
    assert asked.answer == {"x": "one\r\ntwo"}


def test_hidden_and_disabled_fields_are_not_shown_and_locked_ones_cannot_be_changed(stage: Stage, page: Page) -> None:
    fields = (
        {"control": "text", "name": "h", "label": "Hidden", "hidden": True, "default": "kept"},
        {"control": "text", "name": "d", "label": "Disabled", "disabled": True, "default": "left out"},
        {"control": "text", "name": "l", "label": "Commit", "locked": True, "default": "9f3c2d1"},
        {"control": "select", "name": "c", "label": "Food", "locked": True, "choices": CHOICES, "default": "b"},
        {
            "control": "checkbox",
            "name": "m",
            "label": "More",
            "locked": True,
            "choices": CHOICES,
            "default": ["a", "d"],
        },
        {"control": "confirm", "name": "y", "label": "Sure", "locked": True, "default": True},
        {"control": "number", "name": "n", "label": "None yet", "locked": True},
    )
    asked = stage.ask(form_of(*fields))
    expect(card(page)).to_be_visible()
    expect(field(page, "h")).to_have_count(0)
    expect(field(page, "d")).to_have_count(0)
    for name, text in (
        ("Commit", "9f3c2d1"),
        ("Food", "Bread"),
        ("More", "Apple, Dates"),
        ("Sure", "Yes"),
        ("None yet", "No answer"),
    ):
        expect(page.get_by_role("group", name=f"{name} locked")).to_contain_text(text)
    expect(card(page).get_by_role("textbox")).to_have_count(0)
    send(page)
    assert asked.answer == {"h": "kept", "l": "9f3c2d1", "c": "b", "m": ["a", "d"], "y": True}


def test_fields_stand_in_their_order_under_the_headings_of_their_groups(stage: Stage, page: Page) -> None:
    fields = (
        {"control": "text", "name": name, **({"group": name[0]} if name[0] != "z" else {})}
        for name in ("a1", "a2", "z1", "b1", "a3")
    )
    groups = [{"name": "b", "label": "Second"}, {"name": "a", "label": "First", "help": "Comes first."}]
    stage.ask(form_of(*fields, groups=groups, help="Before all.\nTwo lines."))
    expect(card(page)).to_contain_text("Before all.")
    expect(card(page).get_by_role("group")).to_have_count(3)
    first = page.get_by_role("group", name="First").first
    expect(first).to_contain_text("Comes first.")
    expect(first.get_by_role("textbox")).to_have_count(2)
    names = card(page).locator("[data-name]").evaluate_all("fields => fields.map((field) => field.dataset.name)")
    assert names == ["a1", "a2", "z1", "b1", "a3"]
