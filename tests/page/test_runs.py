"""The page shows runs of workflows: how far they are, and whom they wait for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from greenroom.actors.workflow import Run, TaskController
from tests.page.looking import form_of
from tests.page.stage import Stage

NASTY = '<img src=x onerror="document.title=1">\x1b[31m\u202e'
SEEN = '<img src=x onerror="document.title=1">'


class Runs:
    """Starts workflows on the stage, and ends them."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

        async def ask(controller: TaskController) -> Any:
            controller.report({"note": f"asking {NASTY}", "progress": {"current": 1, "total": 3, "unit": "people"}})
            return await stage.runtime.ask(stage.home, form_of(), timeout=None)

        def flaky(controller: TaskController) -> int:
            if controller.attempt == 1:
                raise RuntimeError("not yet")
            return 42

        def broken(controller: TaskController) -> None:
            raise RuntimeError(f"it broke {NASTY}")

        self._functions = {"ask": ask, "flaky": flaky, "broken": broken}

    def start(self, id: str, *behaviors: str, name: str = "Release") -> Run:
        phases = [
            {
                "id": f"phase-{behavior}",
                "name": f"Phase {behavior}",
                "tasks": [{"id": behavior, "name": f"Task {behavior}", "behavior": behavior, "retries": 1}],
            }
            for behavior in behaviors
        ]
        definition = {"id": id, "name": name, "phases": phases}

        async def start() -> Run:
            return await self._stage.runtime.workflows.start(definition, functions=self._functions)

        return self._stage.wait_for(start)

    def end(self) -> None:
        async def end() -> None:
            workflows = self._stage.runtime.workflows
            for run in workflows.runs():
                await run.cancel()
                workflows.remove(run.id)
                if workflows.store is not None:
                    await workflows.store.delete(run.id)

        self._stage.wait_for(end)


@pytest.fixture
def runs(stage: Stage) -> Iterator[Runs]:
    runs = Runs(stage)
    yield runs
    runs.end()


def task(page: Page, name: str) -> Locator:
    return page.locator("#runs .phases ul > li").filter(has_text=f"Task {name}")


def test_a_run_shows_its_phases_and_tasks_with_attempts_and_waits_until_it_is_over(
    stage: Stage, page: Page, runs: Runs
) -> None:
    expect(page.locator("#runs-box")).to_be_hidden()
    runs.start("release", "flaky", "ask")
    expect(page.locator("#runs .run > summary")).to_have_text("Releaserunning1 of 2 tasks are over")
    expect(task(page, "flaky")).to_have_text("Task flakycompletedattempt 2 of 2")
    expect(task(page, "ask")).to_contain_text(f"1 of 3 people, waits for {stage.home}")
    stage.answer({})
    expect(task(page, "ask")).to_have_text("Task askcompleted")
    expect(page.locator("#runs .run > summary")).to_have_text("Releasecompleted2 of 2 tasks are over")


def test_a_run_and_its_tasks_are_in_the_tree(stage: Stage, page: Page, runs: Runs) -> None:
    runs.start("release", "ask")
    rows = page.locator("#tree .actor")
    expect(rows.filter(has_text="releaserun")).to_be_visible()
    expect(rows.filter(has_text="asktask")).to_be_visible()
    expect(page.locator("#waits")).to_contain_text(f"ask waits for {stage.home}")


def test_what_a_run_says_is_text_and_never_markup(stage: Stage, page: Page, runs: Runs) -> None:
    images = page.locator("img").count()
    runs.start("nasty", "broken", "ask", name=NASTY)
    expect(page.locator("#runs .run > summary .name")).to_have_text(SEEN)
    expect(task(page, "broken").locator(".facts")).to_have_text(f"attempt 2 of 2, it broke {SEEN}")
    expect(task(page, "ask").locator(".facts")).to_contain_text(f"asking {SEEN}")
    assert page.locator("img").count() == images


def test_of_very_many_tasks_some_are_shown_and_the_others_counted(stage: Stage, page: Page, runs: Runs) -> None:
    tasks = [{"id": f"t{number}", "name": f"Task {number}"} for number in range(100)]
    waiting = {"id": "q", "name": "Q", "tasks": [{"id": "ask", "name": "Task ask", "behavior": "ask"}]}
    definition = {"id": "wide", "name": "Wide", "phases": [{"id": "p", "name": "P", "tasks": tasks}, waiting]}

    async def start() -> None:
        await stage.runtime.workflows.start(definition, functions=runs._functions)

    stage.wait_for(start)
    expect(page.locator("#runs .run > summary")).to_contain_text("100 of 101 tasks are over")
    expect(page.locator("#runs .phases > li").first).to_contain_text("and 40 more")
