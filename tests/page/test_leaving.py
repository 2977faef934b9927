"""Forms come and go while somebody looks: each goes visibly, with its reason, and with no surprise for the keyboard."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from greenroom.protocol.errors import FormError
from tests.page.conftest import Open
from tests.page.looking import card, form_of, notice, send
from tests.page.stage import Stage

TEXT = {"control": "text", "name": "x", "label": "Text"}


def test_a_form_appears_by_itself_and_is_announced(stage: Stage, page: Page) -> None:
    expect(page.locator("#subtitle")).to_contain_text("Nothing is waiting")
    stage.ask(form_of(TEXT, label="Budget?"), from_="planner")
    expect(card(page, "Budget?")).to_contain_text("from planner")
    expect(page.locator("#announcer")).to_have_text("A new form is waiting: Budget?.")
    expect(page.locator("#subtitle")).to_have_text("One form is waiting for an answer.")
    expect(page).to_have_title(f"(1) {stage.home} · greenroom")


def test_a_withdrawn_form_leaves_with_its_reason_and_says_what_is_lost(stage: Stage, page: Page) -> None:
    asked = stage.ask(form_of(TEXT, label="Budget?"))
    page.get_by_label("Text").fill("half an answer")
    asked.cancel()
    expect(card(page, "Budget?")).to_have_count(0)
    expect(notice(page)).to_contain_text("Budget? was withdrawn")
    expect(notice(page)).to_contain_text("What you had typed was not sent.")
    expect(notice(page)).to_be_focused()
    expect(page.locator("#announcer")).to_contain_text("Budget? was withdrawn")
    page.get_by_role("button", name="Dismiss").click()
    expect(notice(page)).to_have_count(0)
    expect(page.get_by_role("heading", name=stage.home)).to_be_focused()


def test_a_notice_goes_by_itself_unless_something_was_lost(stage: Stage, open_page: Open) -> None:
    page = open_page(stage.url)
    page.clock.install()
    page.goto(stage.url_of(stage.home))
    first, second = stage.ask(form_of(label="Untouched")), stage.ask(form_of(TEXT, label="Begun"))
    page.get_by_role("button", name="Begun").click()
    page.get_by_label("Text").fill("half an answer")
    first.cancel()
    second.cancel()
    expect(notice(page)).to_have_count(2)
    page.clock.fast_forward(13_000)
    expect(notice(page)).to_have_count(1)
    expect(notice(page)).to_contain_text("Begun")


def test_the_time_that_is_left_counts_down(stage: Stage, open_page: Open) -> None:
    """By the page's own clock, which is set here: no server is asked what time it is."""
    page = open_page(stage.url)
    page.clock.install()
    page.goto(stage.url)
    page.clock.pause_at(page.evaluate("Date.now() + 1000"))
    page.evaluate(
        """async () => {
            const { startCountdown } = await import("/page/countdown.js");
            const timer = document.querySelector("main").appendChild(document.createElement("output"));
            startCountdown(timer, Date.now() + 90_000, () => (timer.title += "One minute left."));
        }"""
    )
    timer = page.locator("main output")
    for seconds, text, urgency in ((0, "1:30", ""), (29, "1:01", ""), (2, "0:59", "close"), (50, "0:09", "last")):
        page.clock.fast_forward(seconds * 1000)
        expect(timer).to_have_text(f"{text} left")
        expect(timer).to_have_attribute("data-urgency", urgency)
    expect(timer).to_have_attribute("title", "One minute left.")
    page.clock.fast_forward(60_000)
    expect(timer).to_have_text("Time is up")


def test_the_last_minute_is_announced(stage: Stage, page: Page) -> None:
    stage.ask(form_of(TEXT, label="Soon"), timeout=61)
    expect(page.get_by_role("timer")).to_have_attribute("data-urgency", "close")
    expect(page.locator("#announcer")).to_have_text("One minute left to answer Soon.")


def test_a_form_that_expires_leaves_and_the_asker_learns_it(stage: Stage, page: Page) -> None:
    asked = stage.ask(form_of(TEXT, label="Soon"), timeout=0.5)
    expect(notice(page)).to_contain_text("Soon has expired: its time was up.")
    with pytest.raises(FormError, match="in time"):
        _ = asked.answer


@pytest.mark.parametrize(
    ("timeout", "text"), [(None, "no time limit"), (200_000, "2 d 7 h left"), (11_580, "3 h 13 min left")]
)
def test_long_times_are_told_roughly(stage: Stage, page: Page, timeout: float | None, text: str) -> None:
    stage.ask(form_of(TEXT), timeout=timeout)
    expect(page.get_by_role("timer")).to_have_text(text)


def test_who_comes_late_sees_the_time_that_is_left_then(stage: Stage, open_page: Open) -> None:
    stage.ask(form_of(TEXT), timeout=3_600)
    stage.ask(form_of(TEXT), timeout=None)
    page = open_page()
    expect(page.get_by_role("timer").first).to_have_text(re.compile(r"^(1 h 0 min|59:[0-9]{2}) left$"))
    expect(page.get_by_role("timer").last).to_have_text("no time limit")


def test_when_one_of_two_answers_the_other_sees_it_go(stage: Stage, open_page: Open) -> None:
    one, two = open_page(), open_page()
    asked = stage.ask(form_of(TEXT, label="Who is first?"))
    one.get_by_label("Text").fill("mine")
    two.get_by_label("Text").fill("too late")
    send(one)
    assert asked.answer == {"x": "mine"}
    expect(notice(one)).to_contain_text("Who is first? was answered. Thank you.")
    expect(notice(two)).to_contain_text("Who is first? was answered elsewhere. What you had typed was not sent.")
    expect(notice(two)).to_be_focused()


def test_an_answer_that_comes_too_late_learns_that_the_form_has_gone(stage: Stage, open_page: Open) -> None:
    """The page hears of the other answer and of its own refusal in either order; it tells one thing."""
    page = open_page()
    asked = stage.ask(form_of(TEXT, label="Who is first?"))
    page.get_by_label("Text").fill("too late")
    page.evaluate(
        """() => {
            const send = WebSocket.prototype.send;
            WebSocket.prototype.send = function (text) {
              if (text.includes("terminal/answer")) window.release = () => send.call(this, text);
              else send.call(this, text);
            };
        }"""
    )
    send(page)
    expect(page.get_by_role("button", name="Sending")).to_be_visible()
    stage.answer({"x": "theirs"})
    assert asked.answer == {"x": "theirs"}
    page.evaluate("release()")
    expect(notice(page)).to_have_count(1)
    expect(notice(page)).to_contain_text("is not pending any more")


def test_after_an_answer_the_next_form_is_open_and_has_the_focus(stage: Stage, page: Page) -> None:
    first, second = (stage.ask(form_of(TEXT, label=label)) for label in ("First", "Second"))
    expect(page.get_by_role("button", name="First", exact=True)).to_have_attribute("aria-expanded", "true")
    expect(page.get_by_role("button", name="Second", exact=True)).to_have_attribute("aria-expanded", "false")
    page.get_by_label("Text").fill("one")
    page.get_by_label("Text").press("Enter")
    assert first.answer == {"x": "one"}
    expect(page.get_by_role("button", name="Second", exact=True)).to_be_focused()
    page.get_by_label("Text").fill("two")
    page.get_by_label("Text").press("Enter")
    assert second.answer == {"x": "two"}
    expect(notice(page).last).to_be_focused()
    expect(page.locator("#subtitle")).to_contain_text("Nothing is waiting")


def test_a_form_that_is_closed_keeps_what_was_typed(stage: Stage, page: Page) -> None:
    stage.ask(form_of(TEXT))
    heading = page.get_by_role("button", name="A form")
    page.get_by_label("Text").fill("typed")
    heading.click()
    expect(page.get_by_label("Text")).to_be_hidden()
    heading.click()
    expect(page.get_by_label("Text")).to_have_value("typed")


def test_very_many_forms_come_up_as_the_first_ones_go(stage: Stage, page: Page) -> None:
    for number in range(53):
        stage.ask(form_of(label=f"Form {number}."))
    expect(page.get_by_role("article")).to_have_count(50)
    expect(page.get_by_text("and 3 more; they come up as these are answered.")).to_be_visible()
    send(page)
    expect(card(page, "Form 50.")).to_be_visible()
    expect(page.get_by_text("and 2 more; they come up as these are answered.")).to_be_visible()


def test_a_removed_terminal_takes_its_forms_along_and_comes_back(stage: Stage, page: Page) -> None:
    stage.ask(form_of(TEXT, label="Old"))
    expect(card(page, "Old")).to_be_visible()
    stage.wait_for(stage.runtime.terminals.remove, stage.home)
    expect(notice(page)).to_contain_text("Old has ended: its terminal was removed.")
    stage.ask(form_of(TEXT, label="New"))
    expect(card(page, "New")).to_be_visible()


def test_a_durable_form_says_that_it_is(stage: Stage, page: Page) -> None:
    stage.ask(form_of(TEXT, label="Budget?"))
    stage.ask(form_of(TEXT, label="Release?"), key="release")
    expect(card(page, "Release?").get_by_text("durable")).to_be_visible()
    expect(card(page, "Budget?").get_by_text("durable")).to_have_count(0)
