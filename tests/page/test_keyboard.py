"""By keyboard alone, by screen reader, on a small screen, in the dark."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import FilePayload, Locator, Page, expect

from tests.page.conftest import Open
from tests.page.looking import form_of, notice
from tests.page.stage import Stage

CHOICES = [{"value": "a", "label": "Apple"}, {"value": "b", "label": "Bread"}]

ALL: list[dict[str, Any]] = [
    {"control": "text", "name": "text", "label": "Name", "group": "g", "rule": {"required": True}},
    {"control": "editor", "name": "editor", "label": "Notes", "group": "g"},
    {"control": "password", "name": "password", "label": "Phrase"},
    {"control": "number", "name": "number", "label": "Number"},
    {"control": "date", "name": "date", "label": "Day"},
    {"control": "time", "name": "time", "label": "Hour"},
    {"control": "datetime", "name": "datetime", "label": "Moment"},
    {"control": "color", "name": "color", "label": "Tint"},
    {"control": "confirm", "name": "confirm", "label": "Sure"},
    {"control": "select", "name": "select", "label": "One", "choices": CHOICES},
    {"control": "select", "name": "open", "label": "Any", "open": True, "choices": CHOICES},
    {"control": "checkbox", "name": "checkbox", "label": "Some", "choices": CHOICES},
    {"control": "file", "name": "file", "label": "File"},
]
ONE_FILE = FilePayload(name="one.txt", mimeType="text/plain", buffer=b"")
ALL_CONTROLS = form_of(*ALL, groups=[{"name": "g", "label": "Group", "help": "Both together."}])


def focused(page: Page) -> Locator:
    return page.locator(":focus")


def test_a_whole_form_is_answered_without_a_pointer(stage: Stage, open_page: Open) -> None:
    asked = stage.ask(ALL_CONTROLS)
    page = open_page(stage.url)
    page.on("filechooser", lambda chooser: chooser.set_files(ONE_FILE))
    keys = page.keyboard

    def tab_to(name: str) -> None:
        for _ in range(12):  # a date is made of parts, each a stop
            keys.press("Tab")
            if page.evaluate("(name) => document.activeElement.labels?.[0]?.textContent.startsWith(name)", name):
                return
        raise AssertionError(f"the focus does not come to {name}")

    keys.press("Tab")
    expect(focused(page)).to_have_text("Skip to the forms")
    for _ in range(6):
        keys.press("Tab")
        if focused(page).get_by_text(stage.home).count():
            break
    keys.press("Enter")
    expect(page.get_by_role("heading", name=stage.home)).to_be_focused()
    expect(page.get_by_role("article")).to_be_visible()
    keys.press("Tab")
    expect(focused(page)).to_have_text("A form")
    for label, typed in (
        ("Name", "Ada"),
        ("Notes", "one\ntwo"),
        ("Phrase", "hunter2"),
        ("Number", "42"),
        ("Day", "02282026"),
        ("Hour", "0930AM"),
        ("Moment", "022820260930AM"),
    ):
        tab_to(label)
        keys.type(typed)
    tab_to("Tint")
    keys.type("#123456")
    tab_to("Sure")
    keys.press("Space")
    tab_to("One")
    keys.type("B")
    tab_to("Any")
    keys.type("Figs")
    tab_to("Apple")
    tab_to("Bread")
    keys.press("Space")
    tab_to("File")
    keys.press("Enter")
    expect(page.get_by_label("File")).to_have_value(re.compile(r"one\.txt$"))
    keys.press("Tab")
    expect(focused(page)).to_have_text("Send answer")
    keys.press("Enter")
    assert asked.answer == {
        "text": "Ada",
        "editor": "one\ntwo",
        "password": "hunter2",
        "number": 42,
        "date": "2026-02-28",
        "time": "09:30",
        "datetime": "2026-02-28T09:30",
        "color": "#123456",
        "confirm": True,
        "select": "b",
        "open": "Figs",
        "checkbox": ["b"],
        "file": ["one.txt"],
    }
    expect(notice(page)).to_be_focused()


def test_the_skip_link_leads_past_the_list_of_terminals(stage: Stage, open_page: Open) -> None:
    stage.ask(ALL_CONTROLS)
    page = open_page()
    expect(page.get_by_role("article")).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    page.keyboard.press("Tab")
    expect(focused(page)).to_have_text("A form")


def test_what_has_the_focus_is_seen(stage: Stage, page: Page) -> None:
    stage.ask(ALL_CONTROLS)
    expect(page.get_by_role("article")).to_be_visible()
    for _ in range(30):
        page.keyboard.press("Tab")
        outline = (
            focused(page).evaluate("(one) => getComputedStyle(one).outline") if focused(page).count() else "3px solid"
        )
        assert "3px" in outline


def test_every_control_has_a_name_and_says_what_is_said_of_it(stage: Stage, page: Page) -> None:
    stage.ask(
        form_of(*({**field, "help": f"Help for {field['name']}."} for field in ALL), groups=ALL_CONTROLS["groups"])
    )
    expect(page.get_by_role("article", name="A form")).to_be_visible()
    for field in ALL:
        if field["control"] == "checkbox":
            control = page.get_by_role("group", name=field["label"])
        else:
            control = page.get_by_label(re.compile(f"^{field['label']}"))
        expect(control).to_have_accessible_description(re.compile(f"Help for {field['name']}."))
    unnamed = page.evaluate(
        """[...document.querySelectorAll("input, select, textarea, button")].filter((one) => one.checkVisibility()
            && !one.labels?.length && !one.getAttribute("aria-label") && !one.textContent.trim()).length"""
    )
    assert unnamed == 0
    expect(page.get_by_role("group", name="Group")).to_be_visible()
    expect(page.get_by_role("banner")).to_have_count(1)
    expect(page.get_by_role("navigation", name="Terminals")).to_have_count(1)
    expect(page.get_by_role("main")).to_have_count(1)
    expect(page.get_by_role("complementary", name="Who is here")).to_have_count(1)


@pytest.mark.parametrize("width", [320, 768, 1440])
def test_nothing_is_wider_than_the_screen(stage: Stage, open_page: Open, width: int) -> None:
    long = "unbreakable" * 30
    stage.ask(
        form_of(
            *ALL,
            {"control": "text", "name": long[:100], "label": long, "help": long},
            label=long,
            groups=ALL_CONTROLS["groups"],
        ),
        from_=long,
    )
    stage.ask(form_of({"control": "select", "name": "x", "choices": [{"value": long, "label": long}]}, label="More"))
    page = open_page(viewport={"width": width, "height": 700})
    expect(page.get_by_role("article")).to_have_count(2)
    for summary in page.locator("summary").all():
        if summary.evaluate("(one) => !one.parentElement.open"):
            summary.click()
    expect(page.locator("#waits li").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    narrowest = page.locator("#queue input:visible, #queue textarea:visible").evaluate_all(
        "(all) => Math.max(...all.map((one) => one.getBoundingClientRect().right))"
    )
    assert narrowest <= width


CONTRAST = """() => {
  const channels = (color) => color.match(/[0-9.]+/g).map(Number);
  const luminance = (color) => {
    const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = channels(color).map((channel) => linear(channel / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (node) => {
    for (let one = node; one; one = one.parentElement) {
      const color = getComputedStyle(one).backgroundColor;
      if ((channels(color)[3] ?? 1) > 0) return color;
    }
    return "rgb(255, 255, 255)";
  };
  const ratio = (a, b) => (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  const says = (one) => [...one.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.data.trim());
  const texts = [...document.querySelectorAll("body *")].filter((one) => one.checkVisibility() && says(one));
  return texts
    .map((one) => [ratio(luminance(getComputedStyle(one).color), luminance(ground(one))), one.textContent.slice(0, 40)])
    .filter(([found]) => found < 4.5);
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_legible_in_both_themes(stage: Stage, open_page: Open, scheme: str) -> None:
    """At least 4.5 to 1 (WCAG 2.2, success criterion 1.4.3), refusals, hints and notices included."""
    page = open_page(color_scheme=scheme)
    goes = stage.ask(form_of(label="Goes"), timeout=0.2)
    expect(notice(page)).to_be_visible()
    assert goes.answered
    stage.ask(ALL_CONTROLS, timeout=30, from_="planner")
    page.get_by_role("button", name="Send answer").click()
    expect(page.get_by_role("alert")).to_contain_text("not accepted")
    expect(page.locator("#waits li b").first).to_be_visible()
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light dark"
    assert page.evaluate(CONTRAST) == []
    expected = {"light": "rgb(244, 245, 241)", "dark": "rgb(15, 20, 17)"}[scheme]
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == expected


def test_nothing_moves_for_who_wants_nothing_to_move(stage: Stage, open_page: Open) -> None:
    page = open_page(reduced_motion="reduce")
    stage.ask(form_of(label="Still"))
    expect(page.get_by_role("article")).to_be_visible()
    assert page.evaluate("document.getAnimations().length") == 0


def test_what_moves_between_press_and_release_does_not_take_the_click_away(stage: Stage, page: Page) -> None:
    asked = stage.ask(
        form_of(
            {"control": "text", "name": "x", "label": "Text"},
            {"control": "text", "name": "y", "label": "Why", "rule": {"required": True}},
        )
    )
    page.get_by_label("Why").focus()
    page.wait_for_function("() => document.getAnimations().length === 0")
    button = page.get_by_role("button", name="Send answer").bounding_box()
    assert button is not None
    page.mouse.move(button["x"] + 10, button["y"] + 3)
    page.mouse.down()
    page.mouse.up()
    expect(page.get_by_role("alert")).to_have_text("One answer was not accepted.")
    assert not asked.answered
