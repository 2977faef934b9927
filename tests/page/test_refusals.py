"""Rules are checked while somebody types, and the server has the last word: it is shown, and nothing typed is lost."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.page.looking import card, field, form_of, message, send
from tests.page.stage import Stage


def test_a_rule_is_a_hint_while_one_types_and_an_error_when_one_leaves(stage: Stage, page: Page) -> None:
    stage.ask(form_of({"control": "text", "name": "x", "label": "Name", "rule": {"minimum": 3, "required": True}}))
    name = page.get_by_label("Name")
    expect(message(page, "x")).to_be_hidden()
    name.press_sequentially("Al")
    expect(message(page, "x")).to_have_text("Write at least 3 characters.")
    expect(field(page, "x")).to_have_attribute("data-state", "hint")
    expect(name).not_to_have_attribute("aria-invalid", "true")
    name.blur()
    expect(field(page, "x")).to_have_attribute("data-state", "error")
    expect(name).to_have_attribute("aria-invalid", "true")
    expect(name).to_have_accessible_description("Write at least 3 characters.")
    name.press("End")
    name.press_sequentially("an")
    expect(message(page, "x")).to_be_hidden()
    name.fill("")
    expect(message(page, "x")).to_have_text("Answer this question.")


def test_what_the_server_refuses_is_shown_at_its_field_and_can_be_corrected(stage: Stage, page: Page) -> None:
    """Patterns are the server's alone; the other answer, and the password, stay where they were typed."""
    fields = (
        {"control": "text", "name": "code", "label": "Code", "rule": {"pattern": "^[A-Z]{3}$"}},
        {"control": "text", "name": "note", "label": "Note"},
        {"control": "password", "name": "pin", "label": "Pin"},
    )
    asked = stage.ask(form_of(*fields))
    page.get_by_label("Note").fill("typed once")
    page.get_by_label("Pin").fill("hunter2")
    page.get_by_label("Code").fill("abc")
    expect(message(page, "code")).to_be_hidden()
    send(page)
    expect(message(page, "code")).to_have_text("Enter this in the expected format.")
    expect(page.get_by_role("alert")).to_have_text("One answer was not accepted.")
    expect(page.get_by_label("Code")).to_be_focused()
    expect(page.get_by_label("Note")).to_have_value("typed once")
    assert not asked.answered
    page.get_by_label("Code").fill("ABC")
    expect(message(page, "code")).to_be_hidden()
    send(page)
    assert asked.answer == {"code": "ABC", "note": "typed once", "pin": "hunter2"}


def test_a_refusal_of_a_field_that_is_not_shown_is_told_with_its_title(stage: Stage, page: Page) -> None:
    fields = (
        {"control": "text", "name": "h", "label": "The hidden one", "hidden": True, "rule": {"required": True}},
        {
            "control": "number",
            "name": "l",
            "label": "The locked one",
            "locked": True,
            "default": 1,
            "rule": {"minimum": 2},
        },
        {"control": "text", "name": "x", "label": "Shown", "rule": {"required": True}},
    )
    stage.ask(form_of(*fields))
    send(page)
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("The hidden one: Answer this question.")
    expect(alert).to_contain_text("The locked one: Enter 2 or more.")
    expect(alert).to_contain_text("One answer was not accepted.")
    expect(page.get_by_label("Shown")).to_be_focused()


def test_a_rule_of_the_host_is_told_in_its_own_words(stage: Stage, page: Page) -> None:
    def unlike(value: Any, values: Any) -> str | None:
        return "Not the same as the name." if value == values.get("name") else None

    fields = (
        {"control": "text", "name": "name", "label": "Name"},
        {"control": "text", "name": "nick", "label": "Nick", "rule": {"custom": unlike}},
    )
    asked = stage.ask(form_of(*fields))
    page.get_by_label("Name").fill("Ada")
    page.get_by_label("Nick").fill("Ada")
    send(page)
    expect(message(page, "nick")).to_have_text("Not the same as the name.")
    page.get_by_label("Nick").fill("Countess")
    send(page)
    assert asked.answer == {"name": "Ada", "nick": "Countess"}


@pytest.mark.case("reports/forms", 2)
def test_too_many_ticks_are_told_and_fewer_are_taken(stage: Stage, page: Page) -> None:
    choices = [{"value": value, "label": value.upper()} for value in "abcde"]
    described = {"control": "checkbox", "name": "x", "label": "Some", "choices": choices, "rule": {"maximum": 2}}
    asked = stage.ask(form_of({**described, "default": ["a", "b", "c"]}))
    expect(page.get_by_label("C", exact=True)).to_be_checked()
    expect(message(page, "x")).to_have_text("Tick at most 2 of these.")
    expect(field(page, "x")).to_have_attribute("data-state", "error")
    send(page)
    expect(page.get_by_role("alert")).to_have_text("One answer was not accepted.")
    page.get_by_label("B", exact=True).uncheck()
    expect(message(page, "x")).to_be_hidden()
    send(page)
    assert asked.answer == {"x": ["a", "c"]}


@pytest.mark.parametrize("typed", ["9007199254740993", "0.10000000000000000001", "1e400", "twelve", "1,5"])
def test_a_number_is_never_rounded_on_the_way(stage: Stage, page: Page, typed: str) -> None:
    asked = stage.ask(form_of({"control": "number", "name": "x", "label": "How many"}))
    page.get_by_label("How many").fill(typed)
    send(page)
    expect(page.get_by_role("alert")).to_have_text("One answer was not accepted.")
    expect(message(page, "x")).to_contain_text("a finite number")
    expect(page.get_by_label("How many")).to_have_value(typed)
    page.get_by_label("How many").fill("9007199254740992")
    send(page)
    assert asked.answer == {"x": 9007199254740992}


def test_an_input_that_is_filled_in_only_in_part_is_not_taken_for_no_answer(stage: Stage, page: Page) -> None:
    asked = stage.ask(form_of({"control": "date", "name": "x", "label": "Day"}))
    page.get_by_label("Day").press_sequentially("0203")
    send(page)
    expect(message(page, "x")).to_have_text("Complete this, or clear it.")
    expect(page.get_by_role("alert")).to_contain_text("only in part")
    assert not asked.answered
    page.get_by_label("Day").fill("2026-03-02")
    send(page)
    assert asked.answer == {"x": "2026-03-02"}


def test_half_of_a_character_is_not_sent(stage: Stage, page: Page) -> None:
    asked = stage.ask(form_of({"control": "text", "name": "x", "label": "Text"}))
    page.get_by_label("Text").evaluate(
        r"(input) => { input.value = 'a\ud83d'; input.dispatchEvent(new Event('input', { bubbles: true })); }"
    )
    send(page)
    expect(page.get_by_role("alert")).to_contain_text("half of a character")
    expect(page.get_by_label("Text")).to_be_focused()
    page.get_by_label("Text").fill("a😀")
    send(page)
    assert asked.answer == {"x": "a😀"}


FILL = """(text) => {
  for (const area of document.querySelectorAll("#queue textarea")) {
    area.value = text;
    area.dispatchEvent(new Event("input", { bubbles: true }));
  }
}"""


def test_answers_that_no_message_can_carry_keep_the_connection(stage: Stage, page: Page) -> None:
    fields = [{"control": "editor", "name": f"t{number}", "label": f"Text {number}."} for number in range(20)]
    asked = stage.ask(form_of(*fields))
    expect(card(page)).to_be_visible()
    page.evaluate(FILL, "x" * 60_000)
    send(page)
    expect(page.get_by_role("alert")).to_contain_text("too long to be sent")
    expect(page.locator("#connection")).to_have_text("Connected")
    page.evaluate(FILL, "")
    page.get_by_label("Text 0.").fill("short enough")
    send(page)
    assert asked.answer == {"t0": "short enough"}


def test_a_form_without_fields_is_answered_by_sending_it(stage: Stage, page: Page) -> None:
    asked = stage.ask(form_of(label="Just say so"))
    expect(card(page, "Just say so")).to_be_visible()
    send(page)
    assert asked.answer == {}
