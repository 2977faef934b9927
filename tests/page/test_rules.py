"""What the page says of an answer while it is typed is what the server would say of it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from playwright.sync_api import Page

from greenroom.protocol.forms import FormSchema, evaluate_form, parse_form
from greenroom.protocol.text import number_text, parse_number

# The server's heartbeats, in their own thread, take random numbers at times; no example is drawn from those.
pytestmark = pytest.mark.filterwarnings("ignore:Do not use the `random` module")

PIECES = st.sampled_from(
    ["a", "Z", "9", " ", "@", ".", "-", "+", "é", "😀", "\u00a0", "\n", "http://", "https://", "x.y"]
)
TEXTS = st.lists(PIECES, max_size=6).map("".join)
LIMITS = st.integers(-2, 6)
NUMBERS = st.one_of(st.integers(-20, 20), st.sampled_from([0.1, 0.3, 1.5, 2.5000000001, 1e300, -7.25]))
DAYS = st.sampled_from(["2026-01-01", "2026-01-31", "2025-12-31"])
TIMES = st.sampled_from(["09:30", "09:30:00", "23:59", "00:00"])
FLAGS = st.fixed_dictionaries(
    {}, optional={name: st.booleans() for name in ("email", "url", "alphanumeric", "integer", "required")}
)


@st.composite
def cases(draw: st.DrawFn) -> tuple[dict[str, Any], Any]:
    """A field's document, and an answer that its input could give."""
    control = draw(
        st.sampled_from(["text", "editor", "password", "number", "date", "time", "select", "checkbox", "file"])
    )
    field: dict[str, Any] = {"control": control, "name": "x"}
    rule: dict[str, Any] = draw(FLAGS)
    if control == "number":
        rule = {name: value for name, value in rule.items() if name in ("required", "integer")}
        rule |= draw(
            st.fixed_dictionaries(
                {}, optional={"minimum": NUMBERS, "maximum": NUMBERS, "step": st.sampled_from([0.1, 0.5, 2, 3])}
            )
        )
        value: Any = draw(NUMBERS)
    elif control in ("date", "time"):
        values = DAYS if control == "date" else TIMES
        rule |= draw(st.fixed_dictionaries({}, optional={"minimum": values, "maximum": values}))
        value = draw(values)
    elif control in ("checkbox", "file"):
        rule = {name: value for name, value in rule.items() if name == "required"}
        rule |= draw(st.fixed_dictionaries({}, optional={"minimum": st.integers(0, 2), "maximum": st.integers(0, 3)}))
        value = draw(st.lists(st.sampled_from(["a", "b", "c"]), unique=True))
        field |= (
            {"choices": [{"value": value, "label": value} for value in "abc"]}
            if control == "checkbox"
            else {"multiple": True}
        )
    else:
        value = draw(TEXTS)
        if control == "select":
            field |= {"choices": [], "open": True}
        else:
            rule |= draw(
                st.fixed_dictionaries({}, optional={"minimum": st.integers(0, 6), "maximum": st.integers(0, 6)})
            )
    return {**field, "rule": rule}, draw(st.one_of(st.just(value), st.none()))


def read(field: dict[str, Any]) -> FormSchema | None:
    return parse_form({"fields": [field]})


@settings(max_examples=25)
@given(st.lists(cases().filter(lambda case: read(case[0]) is not None), min_size=10, max_size=40))
def check_failures(page: Page, drawn: list[tuple[dict[str, Any], Any]]) -> None:
    said = page.evaluate(
        """async (drawn) => {
            const { failures } = await import("/page/rules.js");
            return drawn.map(([field, value]) => failures(field, value ?? undefined));
        }""",
        drawn,
    )
    for (field, value), messages in zip(drawn, said, strict=True):
        schema = read(field)
        assert schema is not None
        errors = evaluate_form(schema, {} if value is None else {"x": value})
        assert messages == [error.message for error in errors], (field, value)


def test_the_page_says_what_the_server_says(page: Page) -> None:
    check_failures(page)


SPELLED = st.one_of(
    st.from_regex(r"\s?[+-]?[0-9]{1,20}(\.[0-9]{0,20})?(e[+-]?[0-9]{1,3})?", fullmatch=True),
    st.from_regex(r"0[xXoObB][0-9a-fA-F]{1,20}", fullmatch=True),
    st.sampled_from(
        [
            "",
            ".",
            "5.",
            ".5",
            "1_000",
            "Infinity",
            "NaN",
            "0x",
            "+0x10",
            "1e400",
            "1e-400",
            "-0",
            "١",
            "1 2",
            "9007199254740993",
        ]
    ),
)


@settings(max_examples=25)
@given(st.lists(SPELLED, min_size=20, max_size=60))
def check_numbers(page: Page, texts: list[str]) -> None:
    numbers = page.evaluate(
        """async (texts) => {
            const { exactNumber } = await import("/page/numbers.js");
            return texts.map((text) => exactNumber(text)).map((number) => (number === null ? null : String(number)));
        }""",
        texts,
    )
    for text, number in zip(texts, numbers, strict=True):
        server = parse_number(text)
        if number is not None:
            assert server is not None
            assert number_text(server) == number
        elif server is not None:
            # The server would take it, but as another number than was typed.
            assert Decimal(number_text(server)) != spelled(text), text


def spelled(text: str) -> Decimal:
    text = text.strip()
    return Decimal(int(text, 0)) if text[:1] == "0" and text[1:2].isalpha() and text[1] not in "eE" else Decimal(text)


def test_a_number_is_exactly_what_was_typed_or_none(page: Page) -> None:
    check_numbers(page)
