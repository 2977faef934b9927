"""When an answer counts as equal to a record."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.conformance.comparison import Member, difference


@pytest.mark.parametrize(
    ("record", "answer"),
    [
        (1, 1.0),
        (1e21, 10**21),
        (0, -0.0),
        (math.nan, math.nan),
        (None, None),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({}, {"row": None}),
        ({"row": None}, {}),
        ({"a": {"b": None}}, {"a": {}}),
        ([1, [2]], (1, (2,))),
        ({"args": "$input"}, {"args": {"any": "thing"}}),
        ({"args": "$input"}, {"args": None}),
        ("\ud800", "\ud800"),
    ],
)
def test_equal(record: Any, answer: Any) -> None:
    assert difference(record, answer) is None


@pytest.mark.parametrize(
    ("record", "answer", "where"),
    [
        (True, 1, "$"),
        (1, True, "$"),
        (0, False, "$"),
        (1, "1", "$"),
        (9007199254740992, 9007199254740993, "$"),
        (9007199254740992.0, 9007199254740993, "$"),
        ("a", "A", "$"),
        (None, {}, "$"),
        ({}, None, "$"),
        (None, [], "$"),
        ({}, [], "$"),
        ("", None, "$"),
        ([], [None], "$"),
        ([None], [], "$"),
        ([1, 2], [2, 1], "$.0"),
        ([{"a": 1}], [{"a": 1, "b": 0}], "$.0.b"),
        ({"a": {"b": 1}}, {"a": {"c": 1}}, "$.a.b"),
        ({"row": {}}, {}, "$.row"),
        ({"args": "$input"}, {}, "$.args"),
    ],
)
def test_different(record: Any, answer: Any, where: str) -> None:
    told = difference(record, answer)
    assert told is not None
    assert told.startswith(f"{where}:")


def test_a_difference_is_told_in_one_line_of_ascii() -> None:
    told = difference("a\u2028b", "\ud800\n")
    assert told is not None
    assert told.isascii()
    assert "\n" not in told


ADDED = Member(("settled", "*", "error", "context", "reason"), "added")


def test_an_added_member_is_ignored_where_the_record_has_none() -> None:
    record = {"settled": [{"error": {"code": "ABANDONED"}}]}
    answer = {"settled": [{"error": {"code": "ABANDONED", "context": {"reason": "timeout"}}}]}
    assert difference(record, answer, [ADDED]) is None
    assert difference(record, answer) is not None


def test_an_added_member_is_compared_where_the_record_has_it() -> None:
    record = {"settled": [{"error": {"context": {"reason": "unknown"}}}]}
    answer = {"settled": [{"error": {"context": {"reason": "rejected"}}}]}
    assert difference(record, answer, [ADDED]) is not None
    assert difference(record, {"settled": [{"error": {"context": {}}}]}, [ADDED]) is not None


def test_an_addition_covers_no_neighbour() -> None:
    record = {"settled": [{"error": {"code": "ABANDONED"}}]}
    answer = {"settled": [{"error": {"code": "ABANDONED", "context": {"reason": "timeout", "to": "b"}}}]}
    assert difference(record, answer, [ADDED]) is not None
    assert difference({}, {"reason": "timeout"}, [ADDED]) is not None


def test_an_uncompared_member_may_differ_or_be_missing() -> None:
    members = [Member(("faults",), "uncompared")]
    assert difference({"faults": 3, "sound": False}, {"faults": 4, "sound": False}, members) is None
    assert difference({"faults": 3, "sound": False}, {"sound": False}, members) is None
    assert difference({"faults": 3, "sound": False}, {"faults": 3, "sound": True}, members) is not None


def test_a_set_has_no_order_but_every_entry_as_often() -> None:
    members = [Member(("starts",), "set")]
    record = {"starts": [["a", 1, 0], ["b", 1, 0], ["a", 1, 0]]}
    assert difference(record, {"starts": [["a", 1, 0], ["a", 1, 0], ["b", 1, 0]]}, members) is None
    assert difference(record, {"starts": [["a", 1, 0], ["b", 1, 0], ["b", 1, 0]]}, members) is not None
    assert difference(record, {"starts": [["a", 1, 0], ["b", 1, 0]]}, members) is not None
    assert difference(record, {"starts": [*record["starts"], ["c", 1, 0]]}, members) is not None
