"""What the page says of an answer while it is typed is what the server would say of it."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import msgspec
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


Case: TypeAlias = tuple[dict[str, Any], Any]
"""A field's document, and an answer (None for none)."""


@st.composite
def cases(draw: st.DrawFn) -> Case:
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


def said(page: Page, cases: Sequence[Case]) -> list[list[str]]:
    """What the page says of each answer."""
    messages: list[list[str]] = page.evaluate(
        """async (cases) => {
            const { failures } = await import("/page/rules.js");
            return cases.map(([field, value]) => failures(field, value ?? undefined));
        }""",
        cases,
    )
    return messages


def expected(field: dict[str, Any], value: Any) -> list[str]:
    """What the server says of an answer; its rules are taken as they stand, though nobody could ask some of them."""
    schema = msgspec.convert({"fields": [field]}, FormSchema)
    return [error.message for error in evaluate_form(schema, {} if value is None else {"x": value})]


def field(control: str, **rule: Any) -> dict[str, Any]:
    return {"control": control, "name": "x", "rule": rule}


ALL_AT_ONCE = field("text", minimum=99, maximum=1, email=True, url=True, alphanumeric=True, integer=True)
EDGES: list[Case] = [
    (ALL_AT_ONCE, "ab c"),
    (field("number", minimum=9, maximum=1, step=2, integer=True), 2.5),
    (field("text", minimum=1, required=True), ""),
    (field("text", required=True), None),
    *((field("text", maximum=1), text) for text in ("😀", "é", "ab", "")),
    *((field("number", step=0.1), number) for number in (0.3, 0.7, 0.35, 1e300, -0.1)),
    *((field("number", step=2, minimum=1), number) for number in (3, 2, -1)),
    *((field("number", step=step), 4) for step in (0, -2, 3)),
    *((field("number", integer=True), number) for number in (1e300, 5.0, 0.5, -0.0)),
    *((field("time", minimum="09:30:00"), time) for time in ("09:30", "09:30:00", "10:00")),
    *(
        (field("text", email=True), text)
        for text in (
            "a@b.c",
            "a@b",
            "a@b@c.d",
            "a@b.c@",
            "a@b.c\n",
            "@b.c",
            "a@.c",
            "a@b.",
            "a@b..",
            "a b@c.d",
            "a@b\ufeff.c",
        )
    ),
    *(
        (field("text", url=True), text)
        for text in ("http://x", "HTTP://x", "https://", "http://x y", "xhttp://x", "https://x\n")
    ),
    *((field("text", integer=True), text) for text in ("+5", "-5", "5.0", "", "\u0665", "--5", "5\n")),
    *((field("text", alphanumeric=True), text) for text in ("aZ9", "", "é", "a_b", "a\n")),
    *((field("checkbox", minimum=1, maximum=2) | {"choices": []}, list(text)) for text in ("", "a", "abc")),
    *((field("date", minimum=5, maximum="2026-01-01"), day) for day in ("2026-01-01", "2026-01-02")),
    (field("select", minimum=3, alphanumeric=True) | {"choices": [], "open": True}, "a b"),
    (field("color", minimum=3, maximum=1, step=1), "#aabbcc"),
    (field("confirm", required=True, integer=True), False),
]


def test_the_page_says_what_the_server_says_at_the_edges_of_the_rules(page: Page) -> None:
    found = said(page, EDGES)
    assert [(*case, messages) for case, messages in zip(EDGES, found, strict=True)] == [
        (*case, expected(*case)) for case in EDGES
    ]


@settings(max_examples=25)
@given(st.lists(cases().filter(lambda case: parse_form({"fields": [case[0]]}) is not None), min_size=10, max_size=40))
def check_failures(page: Page, drawn: list[Case]) -> None:
    for case, messages in zip(drawn, said(page, drawn), strict=True):
        assert messages == expected(*case), case


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


def read(page: Page, texts: Sequence[str]) -> list[str | None]:
    """Each number that the page reads, as it prints."""
    numbers: list[str | None] = page.evaluate(
        """async (texts) => {
            const { exactNumber } = await import("/page/numbers.js");
            return texts.map((text) => exactNumber(text)).map((number) => (number === null ? null : String(number)));
        }""",
        texts,
    )
    return numbers


@settings(max_examples=25)
@given(st.lists(SPELLED, min_size=20, max_size=60))
def check_numbers(page: Page, texts: list[str]) -> None:
    numbers = read(page, texts)
    for text, number in zip(texts, numbers, strict=True):
        server = parse_number(text)
        if number is not None:
            assert server is not None
            assert number_text(server) == number
        elif server is not None:
            # The server would take it, but as another number than was typed.
            assert Decimal(number_text(server)) != spelled(text), text


NUMBERS_AT_THE_EDGE = {
    "9007199254740993": None,
    "9007199254740992": "9007199254740992",
    "0.1": "0.1",
    "0.10": "0.1",
    "0.1000000000000000055511151231257827": None,
    "123456789012345678901": None,
    "1e21": "1e+21",
    "1e400": None,
    "1e-400": None,
    "-0": "0",
    "0x20000000000001": None,
    "0x1F": "31",
    "": None,
    "5.": "5",
    ".5e1": "5",
    "1_000": None,
}


def test_a_number_that_a_double_would_change_is_none(page: Page) -> None:
    assert dict(zip(NUMBERS_AT_THE_EDGE, read(page, list(NUMBERS_AT_THE_EDGE)), strict=True)) == NUMBERS_AT_THE_EDGE


def spelled(text: str) -> Decimal:
    text = text.strip()
    return Decimal(int(text, 0)) if text[:1] == "0" and text[1:2].isalpha() and text[1] not in "eE" else Decimal(text)


def test_a_number_is_exactly_what_was_typed_or_none(page: Page) -> None:
    check_numbers(page)
