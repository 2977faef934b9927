"""What is answered on purpose otherwise than recorded, with cases made for it where hardly a recorded one shows it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.departures import load_rules
from tests.conformance.runner import Case, Verdict, load_area, run_case

ASKED = [
    {"do": "add", "name": "b"},
    {"do": "ask", "from": "a", "to": "b", "schema": {"fields": [{"control": "text", "name": "x"}]}},
]
UNKNOWN = {"status": 422, "body": {"success": False, "error": {"reason": "unknown"}}, "type": "application/json"}
ACCEPTED = {"status": 200, "body": {"success": True, "value": {"x": "v"}}, "type": "application/json"}


def judged(post: Any, recorded: Any, **options: Any) -> Verdict:
    """What becomes of a case that asks once and then posts."""
    given = {"options": options, "steps": [*ASKED, {"do": "post", "name": "b", **post}]}
    return run_case(load_area("wire"), Case("c", "wire.script", given, {"steps": [{}, {}, recorded]}), load_rules())


@pytest.mark.parametrize(
    "body",
    [
        b'{"id":"x","values":{"x":"\xff"}}',
        b'{"id":"x","values":{},"\xc3":1}',
        b'{"id":"x","values":{"x":"\xed\xa0\x80"}}',
    ],
)
def test_bytes_that_are_no_utf8_are_refused(body: bytes) -> None:
    verdict = judged({"hex": body.hex()}, UNKNOWN)
    assert verdict.failure is None
    assert verdict.departure is not None
    assert verdict.departure.when == "posts_json_that_is_no_utf8"


@pytest.mark.parametrize(
    "post",
    [
        {"body": '{"id":"$1","values":{"x":"\\udc00"}}'},
        {"json": {"id": "$1", "values": {"x": "\ud800"}}},
        {"json": {"id": "$1", "values": {"\ud800": "v"}}},
    ],
)
def test_half_of_a_surrogate_pair_is_refused_and_nothing_is_settled(post: Any) -> None:
    verdict = judged(post, {**ACCEPTED, "settled": [{"ask": 0, "value": {"x": "v"}}]})
    assert verdict.failure is None
    assert verdict.departure is not None
    assert verdict.departure.when == "posts_half_a_surrogate_pair"


@pytest.mark.parametrize(
    ("post", "recorded"),
    [
        ({"hex": b"\xff".hex()}, {"status": 400}),
        ({"hex": "fffe7b007d00"}, {"status": 400}),
        ({"hex": b'{"id":"x","values":{}}'.hex()}, UNKNOWN),
        (
            {"json": {"id": "$1", "values": {"x": "v"}, "more": "\ud800"}},
            {**ACCEPTED, "settled": [{"ask": 0, "value": {"x": "v"}}]},
        ),
    ],
)
def test_anything_else_is_answered_as_recorded(post: Any, recorded: Any) -> None:
    verdict = judged(post, recorded)
    assert verdict.failure is None
    assert verdict.departure is None


def test_what_is_refused_for_something_else_stays_refused_for_it() -> None:
    assert judged({"hex": b'"\xff"'.hex()}, {"status": 401}, token="s").failure is None
    assert judged({"hex": b'"\xff"'.hex()}, {"status": 413}, limit=1).failure is None


def test_a_wrong_answer_is_no_departure() -> None:
    assert judged({"json": {"id": "$1", "values": {"x": "v"}}}, {"status": 400}).failure is not None
