"""Nothing that a schema says is ever markup, passes for what it is not, or is changed on its way to the asker."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.page.conftest import Open, Watch
from tests.page.looking import card, field, form_of, message, notice, send
from tests.page.stage import Stage

MARKUP = '<img src=x onerror="document.title=1"><script>alert(1)</script>&amp;</fieldset>'
ESCAPES = "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x9b1mbold \x00\x07\x08\x7f\x85"
BIDI = "\u202egnp.exe\u202c \u2066x\u2069 \u2028 \u2029"
NASTY = f"{MARKUP}{ESCAPES}{BIDI}"
SEEN = f"{MARKUP}red  bold  gnp.exe x"
"""What of it can be seen: text."""


def everywhere() -> dict[str, Any]:
    """A form that says it wherever a form can say anything."""

    def said(control: str, **members: Any) -> dict[str, Any]:
        return {
            "control": control,
            "name": f"{control} {NASTY[:90]}",
            "label": f"{control} {NASTY}",
            "help": NASTY,
            **members,
        }

    choices = [{"value": NASTY, "label": NASTY, "help": NASTY}, {"value": "plain", "label": "Plain"}]
    return {
        "name": NASTY[:100],
        "label": NASTY,
        "help": NASTY,
        "groups": [{"name": NASTY[:100], "label": NASTY, "help": NASTY}],
        "fields": [
            said("text", default=NASTY, placeholder=NASTY, group=NASTY[:100], meta={"html": NASTY}),
            said("editor", default=NASTY, placeholder=NASTY),
            said("password", mask=NASTY),
            said("number", placeholder=NASTY),
            said("select", choices=choices, default=NASTY),
            said("checkbox", choices=choices, default=[NASTY]),
            said("file", accept=[NASTY]),
            said("confirm"),
            said("color", default="#aabbcc", locked=True),
        ],
    }


def test_it_is_shown_as_text_and_reaches_the_answer_unchanged(stage: Stage, page: Page) -> None:
    elements = page.evaluate("document.querySelectorAll('img, script, iframe').length")
    asked = stage.ask(everywhere(), from_=NASTY)
    expect(page.get_by_role("article")).to_be_visible()
    text = page.locator("#queue").evaluate("(queue) => queue.textContent")
    assert text.count("<img src=x") > 20
    assert not set(text) & set("\x1b\x9b\x00\x07\x08\x7f\x85\u202e\u202c\u2066\u2069\u2028\u2029")
    assert "title\x07" not in text
    attributes = page.locator("#queue *").evaluate_all(
        "(all) => all.flatMap((one) => [...one.attributes].map((attribute) => attribute.value)).join('')"
    )
    assert not set(attributes) & set("\x1b\x9b\x00\u202e\u2066\u2028")
    assert page.evaluate("document.querySelectorAll('img, script, iframe').length") == elements
    assert page.title() == f"(1) {stage.home} · greenroom"
    expect(page.locator("#queue select option").nth(1)).to_have_text(SEEN)
    send(page)
    answer = {name.partition(" ")[0]: value for name, value in asked.answer.items()}
    assert answer == {
        "text": NASTY,
        "editor": NASTY,
        "select": NASTY,
        "checkbox": [NASTY],
        "confirm": False,
        "color": "#aabbcc",
    }
    expect(notice(page)).to_contain_text("<script>alert(1)</script>")
    expect(page.locator("#announcer")).to_contain_text("<script>alert(1)</script>")


def test_what_is_typed_is_sent_as_it_is(stage: Stage, page: Page) -> None:
    asked = stage.ask(form_of({"control": "editor", "name": "x", "label": "Text"}))
    page.get_by_label("Text").fill(NASTY)
    send(page)
    assert asked.answer == {"x": NASTY}


def test_messages_of_the_host_are_text_too(stage: Stage, page: Page) -> None:
    stage.ask(form_of({"control": "text", "name": "x", "rule": {"pattern": "^a$"}}), messages={"pattern": NASTY})
    page.get_by_label("x").fill("b")
    send(page)
    expect(message(page, "x")).to_have_text(SEEN)


def test_names_of_terminals_and_actors_are_text_too(stage: Stage, open_page: Open) -> None:
    stage.ask(form_of(), to=NASTY, from_=f"asker {NASTY}")
    page = open_page(stage.url_of(NASTY))
    expect(card(page)).to_contain_text(f"from asker {SEEN}")
    expect(page.get_by_role("heading", level=1)).to_have_text(SEEN)
    assert not set(page.title()) & set(BIDI + "\x1b\x9b\x00") - set("gnp.exe x")
    expect(page.locator("#tree")).to_contain_text(SEEN)
    expect(page.locator("#waits")).to_contain_text(SEEN)
    assert page.locator("#tree img, nav img, main img").count() == 0


def test_labels_that_hold_nothing_to_see_do_not_leave_a_field_without_a_name(stage: Stage, page: Page) -> None:
    asked = stage.ask(form_of({"control": "text", "name": "real name", "label": "\u202e \x1b[0m"}, label="\x07"))
    expect(page.get_by_role("article", name="Untitled form")).to_be_visible()
    page.get_by_label("real name").fill("x")
    send(page)
    assert asked.answer == {"real name": "x"}


@pytest.mark.parametrize("name", ["constructor", "toString", "hasOwnProperty", "__proto_", "10"])
def test_a_field_may_be_called_like_what_every_object_has(stage: Stage, page: Page, name: str) -> None:
    asked = stage.ask(form_of({"control": "text", "name": name}, {"control": "text", "name": "other"}))
    field(page, name).get_by_role("textbox").fill("x")
    send(page)
    assert asked.answer == {name: "x"}


def test_the_browser_holds_the_page_to_its_policy(page: Page, watch: Watch) -> None:
    """Without this proof that a violation would be seen, none of the other tests proves that there is none."""
    blocked = page.evaluate(
        """async () => {
            const violations = [];
            document.addEventListener("securitypolicyviolation", (event) => violations.push(event.effectiveDirective));
            const script = document.createElement("script");
            try { script.text = "window.ran = true"; } catch { violations.push("text"); }
            try { document.body.innerHTML = "<b>x</b>"; } catch { violations.push("innerHTML"); }
            await fetch("http://127.0.0.1:9/").catch(() => {});
            await new Promise((resolve) => setTimeout(resolve, 100));
            return { violations, ran: window.ran ?? false };
        }"""
    )
    assert blocked["ran"] is False
    assert {"text", "innerHTML", "connect-src"} <= set(blocked["violations"])
    assert any("Content Security Policy" in complaint for complaint in watch.take())


def test_a_line_of_a_command_is_not_read_as_part_of_a_comment(stage: Stage, page: Page) -> None:
    stage.ask(form_of({"control": "confirm", "name": "allow"}, help="echo safe # list\n  sleep 987 &\u2028rm -rf x"))
    shown = card(page).get_by_text("echo safe").inner_text()
    assert [line.strip() for line in shown.splitlines()] == ["echo safe # list", "sleep 987 &", "rm -rf x"]
