"""The drawing of who is here and who waits for whom follows what happens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from greenroom.runtime.actor import Actor
from greenroom.runtime.ref import Ref
from tests.page.conftest import Open
from tests.page.looking import form_of
from tests.page.stage import Stage

ARCS = ".arcs .wait"


class Planner(Actor):
    """It does nothing, and is there."""


@pytest.fixture
def planner(stage: Stage) -> Iterator[Ref]:
    """An actor at the top of the tree."""
    planner = stage.do(stage.runtime.tree.spawn, Planner(), "planner")
    yield planner
    stage.wait_for(planner.stop)


def row(page: Page, name: str) -> Locator:
    return page.locator("#tree .actor").filter(has=page.locator(f'.name:text-is("{name}")'))


def test_actors_appear_and_go(stage: Stage, page: Page, planner: Ref) -> None:
    expect(row(page, stage.home)).to_contain_text("terminal")
    expect(row(page, "planner")).to_be_visible()
    stage.wait_for(planner.stop)
    expect(row(page, "planner")).to_have_count(0)


def test_who_answers_for_a_terminal_is_told_at_its_actor(stage: Stage, page: Page, planner: Ref) -> None:
    stage.do(lambda: stage.runtime.terminals.add("planning", operator=planner))
    expect(row(page, "planner")).to_contain_text("answers for planning")


def test_a_wait_is_drawn_and_told_as_long_as_it_lasts(stage: Stage, page: Page) -> None:
    stage.add("planner", "a/b")
    expect(page.locator("#waits")).to_have_text("Nobody waits for anybody.")
    stage.ask(form_of(), from_="planner")
    expect(page.locator("#waits li")).to_have_text(f"planner waits for {stage.home}Ask")
    expect(page.locator(ARCS)).to_have_count(1)
    stage.ask(form_of(), to="a/b", from_="somebody else")
    expect(page.locator("#waits li")).to_have_text(
        [f"planner waits for {stage.home}Ask", "somebody else waits for a/bAsk"]
    )
    expect(page.locator(ARCS)).to_have_count(2)
    expect(row(page, "somebody else")).to_have_attribute("data-state", "named")
    stage.answer({})
    stage.answer({}, to="a/b")
    expect(page.locator("#waits")).to_have_text("Nobody waits for anybody.")
    expect(page.locator(ARCS)).to_have_count(0)
    expect(row(page, "somebody else")).to_have_count(0)


def test_an_arc_leads_from_the_row_of_who_waits_to_the_row_of_what_is_waited_for(stage: Stage, page: Page) -> None:
    stage.add("planner")
    stage.ask(form_of(), from_="planner")
    expect(page.locator(ARCS)).to_have_count(1)
    ends = page.locator(ARCS).evaluate(
        """(path) => {
            const box = path.ownerSVGElement.getBoundingClientRect();
            return [0, path.getTotalLength()].map((at) => path.getPointAtLength(at).y + box.top);
        }"""
    )
    middles = [
        box["y"] + box["height"] / 2 for name in ("planner", stage.home) if (box := row(page, name).bounding_box())
    ]
    assert all(abs(end - middle) < 2 for end, middle in zip(ends, middles, strict=True))


def test_a_branch_is_folded_and_its_waits_with_it(stage: Stage, page: Page) -> None:
    stage.add("planner")
    stage.ask(form_of(), from_="planner")
    expect(page.locator(ARCS)).to_have_count(1)
    page.get_by_role("button", name="Beneath terminals").click()
    expect(row(page, stage.home)).to_be_hidden()
    expect(page.locator(ARCS)).to_have_count(1)
    stage.add("later")
    expect(row(page, "later")).to_have_count(1)
    expect(row(page, "later")).to_be_hidden()
    page.get_by_role("button", name="Beneath terminals").press("Enter")
    expect(row(page, "later")).to_be_visible()


def test_of_very_many_actors_those_that_wait_are_drawn(stage: Stage, page: Page) -> None:
    stage.add(*(f"idle {number}" for number in range(300)))
    stage.ask(form_of(), to="idle 299", from_="idle 250")
    expect(page.locator("#tree")).to_contain_text("and 241 more")
    expect(row(page, "idle 299")).to_be_visible()
    expect(row(page, "idle 250")).to_be_visible()
    expect(row(page, "idle 200")).to_have_count(0)
    expect(page.locator(ARCS)).to_have_count(1)


def test_nothing_is_looked_at_that_nobody_looks_at(stage: Stage, open_page: Open) -> None:
    page = open_page(stage.url)
    calls: list[str] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: calls.append(str(frame))))
    page.clock.install()
    page.goto(stage.url)
    expect(row(page, stage.home)).to_be_visible()
    page.locator("#tree-box > summary").click()
    before = sum("system/tree" in call for call in calls)
    assert before > 0
    page.clock.run_for(20_000)
    page.wait_for_function("() => document.querySelector('#connection').textContent === 'Connected'")
    assert sum("system/tree" in call for call in calls) == before
    assert any("terminal/list" in call for call in calls)
