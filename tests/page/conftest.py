"""A real browser on the page. Every test also proves that the page logged no error and broke none of its own policy."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, Final, TypeAlias

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, expect, sync_playwright

from tests.page.stage import Stage, staged

Open: TypeAlias = Callable[..., Page]

expect.set_options(timeout=10_000)

CHROMIUM: Final = shutil.which("chromium")

_MISSING: Final = "There is no chromium here, so NOTHING OF THE BROWSER PAGE IS TESTED: apt-get install chromium"

_AWAY: Final = re.compile(r"(WebSocket connection to|Failed to load resource:).*/rpc")
"""What Chromium itself logs when a server is away."""

_USUAL: Final[dict[str, Any]] = {"viewport": {"width": 1280, "height": 900}, "locale": "en-US"}


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        if os.environ.get("CI") == "true":
            pytest.fail(_MISSING)
        pytest.skip(_MISSING)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--lang=en-US"]
        )
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def shared_stage() -> Iterator[Stage]:
    with staged() as stage:
        yield stage


@pytest.fixture
def stage(shared_stage: Stage) -> Stage:
    """Where the test's own terminal is `stage.home`. The runtime is shared with other tests."""
    shared_stage.begin()
    return shared_stage


class Watch:
    """Hears of everything that must not happen in a browser, whatever a test is about."""

    def __init__(self) -> None:
        self._complaints: list[str] = []

    def over(self, context: BrowserContext) -> None:
        context.on("console", self._hear)
        context.on("weberror", lambda error: self._complaints.append(str(error.error)))
        context.on("request", self._see)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not _AWAY.search(f"{message.text} {message.location.get('url', '')}"):
            self._complaints.append(message.text)

    def _see(self, request: Request) -> None:
        if not request.url.startswith("http://127.0.0.1:"):
            self._complaints.append(f"the page asked for {request.url}")

    def take(self) -> list[str]:
        """What was heard since the last time."""
        complaints, self._complaints = self._complaints, []
        return complaints


@pytest.fixture(scope="package")
def watch() -> Watch:
    return Watch()


@pytest.fixture(autouse=True)
def nothing_wrong_is_heard(watch: Watch) -> Iterator[None]:
    yield
    assert watch.take() == []


@pytest.fixture
def open_page(browser: Browser, stage: Stage, watch: Watch) -> Iterator[Open]:
    """Opens the page in a browser of its own (`options` are Playwright's): at the test's terminal, or at that URL."""
    with ExitStack() as contexts:

        def open_page(url: str | None = None, **options: Any) -> Page:
            context = contexts.enter_context(browser.new_context(**{**_USUAL, **options}))
            watch.over(context)
            page = context.new_page()
            page.goto(stage.url_of(stage.home) if url is None else url)
            expect(page.locator("#connection")).to_have_text("Connected")
            return page

        yield open_page


@pytest.fixture(scope="package")
def tab(browser: Browser, shared_stage: Stage, watch: Watch) -> Iterator[Page]:
    with browser.new_context(**_USUAL) as context:
        watch.over(context)
        page = context.new_page()
        page.goto(shared_stage.url)
        yield page


@pytest.fixture
def page(tab: Page, stage: Stage) -> Page:
    """The page at the test's terminal. It has been open for other tests, and was not loaded anew."""
    expect(tab.locator("#connection")).to_have_text("Connected", timeout=20_000)
    tab.evaluate(
        "(url) => { history.pushState(null, '', url); dispatchEvent(new PopStateEvent('popstate')); }",
        stage.url_of(stage.home),
    )
    expect(tab.locator("#subtitle")).to_contain_text("Nothing is waiting")
    return tab
