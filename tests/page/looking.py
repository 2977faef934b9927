"""Where things are on the page."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Locator, Page

__all__ = ["card", "field", "form_of", "message", "notice", "send"]


def form_of(*fields: dict[str, Any], label: str = "A form", **members: Any) -> dict[str, Any]:
    """A form's document."""
    return {"label": label, **members, "fields": list(fields)}


def card(page: Page, label: str = "A form") -> Locator:
    """A pending form, by its label."""
    return page.get_by_role("article", name=label)


def field(page: Page, name: str) -> Locator:
    """A field with all that belongs to it, by its name."""
    return page.locator(f'[data-name="{name}"]')


def message(page: Page, name: str) -> Locator:
    """What is said of a field's answer."""
    return field(page, name).locator(".message")


def notice(page: Page) -> Locator:
    """What is left of a form that has gone."""
    return page.locator("#queue .gone")


def send(page: Page) -> None:
    page.get_by_role("button", name="Send answer").click()
