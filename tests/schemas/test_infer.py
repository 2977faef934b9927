"""What samples have in common, candidates that fit or not, and endpoints made of samples."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from greenroom.actors.toolbox.endpoint import endpoint_tool
from greenroom.actors.toolbox.infer import infer_tool
from greenroom.protocol.errors import ToolError
from greenroom.protocol.schemas import REFUSED, Contract
from greenroom.protocol.schemas.infer import infer_schema, schema_to_object, text_format

ANY: dict[str, Any] = {}
INTEGER, NUMBER, STRING, BOOLEAN, NULL = ({"type": name} for name in ("integer", "number", "string", "boolean", "null"))
ARRAY: dict[str, Any] = {"type": "array"}


def arr(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def obj(required: str = "", /, **properties: Any) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    if properties:
        schema["properties"] = properties
    if required:
        schema["required"] = required.split()
    return schema | {"additionalProperties": False}


def one_of(*schemas: Any) -> dict[str, Any]:
    return {"anyOf": list(schemas)}


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


TABLE: list[tuple[int, list[Any], dict[str, Any], Any]] = [
    (1, [], {}, ANY),
    (2, [1, 2.0], {}, INTEGER),
    (2, [1, 2.5], {}, NUMBER),
    (3, [True, 1], {}, one_of(BOOLEAN, INTEGER)),
    (4, [1, None, 2.5, "x"], {}, one_of(NULL, NUMBER, STRING)),
    (5, [[]], {}, ARRAY),
    (5, [[], [1]], {}, one_of(arr(INTEGER), ARRAY)),
    (6, [[1], [2.5]], {}, one_of(arr(INTEGER), arr(NUMBER))),
    (6, [[1, 2.5]], {}, arr(NUMBER)),
    (7, [{"id": 1}, {"id": 2, "name": "Ada"}], {}, obj("id", id=INTEGER, name=STRING)),
    (8, [{}], {}, obj()),
    (9, [{}, {"a": 1}], {}, obj(a=INTEGER)),
    (10, [{"a": {"b": 1}}, {"a": {"c": 2}}], {}, obj("a", a=obj(b=INTEGER, c=INTEGER))),
    (
        11,
        [{"a": {"b": 1}}, {"a": {"c": 1}}, {"a": None}],
        {},
        obj("a", a=one_of(obj("b", b=INTEGER), obj("c", c=INTEGER), NULL)),
    ),
    (12, [[{"a": 1}, {"b": 2}]], {}, arr(one_of(obj("a", a=INTEGER), obj("b", b=INTEGER)))),
    (13, [{"a": 1}, "x"], {}, one_of(obj("a", a=INTEGER), STRING)),
    (14, ["a", "b", "a"], {"enum": True}, {"enum": ["a", "b"]}),
    (14, ["a"], {"enum": True}, STRING),
    (14, ["a", "b", "c"], {"enum": True}, STRING),
    (15, [10, 9, 10, 2], {"enum": True}, {"enum": [10, 2, 9]}),
    (16, [True, True], {"enum": True}, BOOLEAN),
    (16, ["a", "a", None], {"enum": True}, one_of(NULL, STRING)),
    (17, [str(number) for number in (*range(12), 0)], {"enum": True}, {"enum": sorted(map(str, range(12)))}),
    (17, [str(number) for number in (*range(13), 0)], {"enum": True}, STRING),
    (18, [{"a": "x"}, {"a": "x"}, {}], {"enum": True}, obj(a={"enum": ["x"]})),
    (19, [{"l": ["a", "a"]}], {"enum": True}, obj("l", l=arr(STRING))),
    (20, ["2024-01-01", "2024-01-01"], {"enum": True, "format": True}, {"enum": ["2024-01-01"]}),
    (21, ["2024-01-01", "2024-01-02"], {"format": True}, {"type": "string", "format": "date"}),
    (21, ["2024-01-01", "2024-01-02", ""], {"format": True}, STRING),
    (22, [{"o": {"e": "a@b.co"}}], {"format": True}, obj("o", o=obj("e", e={"type": "string", "format": "email"}))),
    (22, [{"l": ["a@b.co"]}], {"format": True}, obj("l", l=arr(STRING))),
    (23, [None, "2024-01-01"], {"format": True}, one_of(NULL, STRING)),
    (26, [[*range(256), "x"]], {}, arr(INTEGER)),
    (28, [{"a": 1, "b": [1], "c": {"d": 1}}], {"max_depth": 1}, obj("a b c", a=INTEGER, b=ANY, c=ANY)),
    (29, [math.nan], {}, ANY),
    (29, [1, math.nan], {}, one_of(INTEGER, ANY)),
]


@pytest.mark.parametrize(
    ("samples", "options", "schema"),
    [
        pytest.param(samples, options, schema, marks=pytest.mark.case("schemas", number))
        for number, samples, options, schema in TABLE
    ],
)
def test_samples_give_the_narrowest_schema_that_they_all_show(samples: Any, options: Any, schema: Any) -> None:
    before = json.dumps(samples)
    found = infer_schema(samples, **options)
    assert found == schema
    assert json.dumps(samples) == before


@pytest.mark.case("schemas", 13)
def test_what_is_no_record_is_wrapped_in_one() -> None:
    schema = infer_schema([{"a": 1}, "x"])
    assert schema_to_object(schema) == obj("value", value=schema)
    assert schema_to_object(obj()) == obj()


@pytest.mark.case("schemas", 24)
@pytest.mark.parametrize(
    ("text", "format"),
    [
        ("2024-02-30", None),
        ("0000-01-01", "date"),
        ("0000-02-29", "date"),
        ("1900-02-29", None),
        ("10:30:00", None),
        ("10:30:00Z", "time"),
        ("2024-01-01T00:00:00", None),
        ("2024-01-01T00:00:00.5+02:00", "date-time"),
        ("2024-01-01T23:59:60Z", None),
        ("2024-01-01T00:00:00+24:00", None),
        ("mailto:a@b.co", "email"),
        ("x://", "uri"),
        ("urn:x", None),
        ("2024-01-01\n", None),
        ("٢024-01-01", None),
        ("123e4567-E89B-12d3-a456-426614174000", "uuid"),
        ("a@b.co" + "m" * 123, None),
    ],
)
def test_a_format_is_of_the_whole_text(text: str, format: str | None) -> None:
    assert text_format(text) == format


@pytest.mark.case("schemas", 25)
def test_too_many_members_leave_the_record_open() -> None:
    schema = infer_schema([{f"k{number}": 1 for number in range(257)}])
    assert len(schema["properties"]) == 256
    assert schema["additionalProperties"] is True
    assert "k99" not in schema["properties"]


@pytest.mark.case("schemas", 27)
def test_what_is_nested_too_deep_is_anything() -> None:
    schema, levels = infer_schema([nested(33)]), 0
    while schema:
        schema, levels = schema["properties"]["a"], levels + 1
    assert levels == 32


Verdict = tuple[bool, bool, list[str]]

CANDIDATES: list[tuple[int, list[Any], dict[str, Any], Any, Verdict]] = [
    (30, [{"id": 1, "name": "Ada"}], {}, {"id": 2, "name": "B"}, (True, True, [])),
    (31, [{"id": 1, "name": "Ada"}], {}, {"id": "x", "name": "C"}, (False, False, ['type id integer "x"'])),
    (32, [{"id": 1, "name": "Ada"}], {}, {"id": 2, "name": 7}, (False, True, [])),
    (33, [{"id": 1, "name": "Ada"}], {}, {"id": 4}, (False, False, ["missing name string"])),
    (34, [{"id": 1, "name": "Ada"}], {}, "s", (False, False, ['type / object "s"'])),
    (35, [{"id": 1, "name": "Ada"}], {}, {"id": 1, "name": "a", "z": 0}, (False, True, [])),
    (36, ["a", "b"], {}, 7, (False, True, [])),
    (36, ["a", "b"], {}, True, (False, False, ["type / string true"])),
    (37, [1], {}, "1.5", (False, False, ["constraint / integer integer 1.5"])),
    (37, [1], {}, "0x10", (False, True, [])),
    (37, [1], {}, "", (False, False, ['type / integer ""'])),
    (38, [True], {}, "1", (False, True, [])),
    (38, [True], {}, 0, (False, True, [])),
    (38, [True], {}, 1.0, (False, True, [])),
    (38, [True], {}, "TRUE", (False, False, ['type / boolean "TRUE"'])),
    (38, [True], {}, 2, (False, False, ["type / boolean 2"])),
    (39, [None], {}, "null", (False, False, ['type / null "null"'])),
    (39, [None], {}, None, (True, True, [])),
    (40, [{"a": 1}, {"a": None}], {}, {"a": "5"}, (False, True, [])),
    (40, [{"a": 1}, {"a": None}], {}, {}, (False, False, ["missing a union"])),
    (40, [{"a": 1}, {"a": None}], {}, {"a": "x"}, (False, False, ["variant a 2", 'type a integer "x"'])),
    (41, [{"a": 1}, "x"], {}, 5, (False, True, [])),
    (41, [{"a": 1}, "x"], {}, None, (False, False, ["variant / 2", "type / object null"])),
    (42, [{"a": 1}, {"a": 1, "b": "x"}], {}, {"a": 1, "b": None}, (False, False, ["type b string null"])),
    (43, [[1, 2]], {}, ["x", None], (False, False, ['type 0 integer "x"', "type 1 integer null"])),
    (43, [[1, 2]], {}, [], (True, True, [])),
    (44, [[]], {}, [1, "a", None], (True, True, [])),
    (45, ["open", "open", "closed"], {"enum": True}, " open ", (False, True, [])),
    (45, ["open", "open", "closed"], {"enum": True}, "Open", (False, False, ['type / literal "Open"'])),
    (46, ["a@b.co"], {"format": True}, "nope", (True, True, [])),
]


def told(fault: dict[str, Any]) -> str:
    """A fault in one line: reason, path, and what else it has."""
    rest = ("expected", "constraint", "limit", "variants", "matched", "received")
    return " ".join(
        [fault["reason"], ".".join(fault["path"]) or "/", *(str(fault[name]) for name in rest if name in fault)]
    )


@pytest.mark.parametrize(
    ("samples", "options", "candidate", "verdict"),
    [
        pytest.param(samples, options, candidate, verdict, marks=pytest.mark.case("schemas", number))
        for number, samples, options, candidate, verdict in CANDIDATES
    ],
)
async def test_a_candidate_is_valid_or_can_be_read_or_is_explained(
    samples: Any, options: Any, candidate: Any, verdict: Verdict
) -> None:
    result = await infer_tool().execute({"samples": samples, "candidates": [candidate], **options})
    (check,) = result["checks"]
    valid, coercible, faults = verdict
    assert (check["index"], check["valid"], check["coercible"]) == (0, valid, coercible)
    assert ("faults" in check) is not valid
    assert [told(fault) for fault in check.get("faults", [])] == faults


@pytest.mark.case("schemas", 47)
async def test_a_report_has_so_many_faults() -> None:
    result = await infer_tool().execute({"samples": [[1]], "candidates": [["x"] * 100]})
    faults = result["checks"][0]["faults"]
    assert len(faults) == 64
    assert faults[-1]["path"] == ["63"]


@pytest.mark.case("schemas", 48)
async def test_no_candidates_are_a_list_of_checks_too() -> None:
    assert await infer_tool().execute({"samples": [{"a": 1}], "candidates": []}) == {
        "parameters": obj("a", a=INTEGER),
        "checks": [],
    }


async def test_candidates_that_take_minutes_hold_nobody_up_and_end_with_their_call() -> None:
    """Each of them is looked at by each of many variants."""
    samples = [5, *({f"a{number}": 1} for number in range(250))]
    steps = 0
    async with trio.open_nursery() as nursery:
        nursery.start_soon(infer_tool().execute, {"samples": samples, "candidates": [{"x": 1}] * 100_000})
        while steps < 1000:
            steps += 1
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.case("schemas", 49)
@pytest.mark.parametrize(
    "args",
    [
        {},
        {"samples": []},
        {"samples": [math.nan]},
        {"samples": [CYCLE]},
        {"samples": [1], "candidates": "x"},
        {"samples": [1], "candidates": None},
        {"samples": [1], "format": "yes"},
        {"samples": [1], "enum": None},
    ],
    ids=str,
)
async def test_arguments_that_cannot_be_read_are_refused_whole(args: Any) -> None:
    with pytest.raises(ToolError, match=r"^malformed infer arguments") as refused:
        await infer_tool().execute(args)
    assert refused.value.code == "TOOL"
    assert list(refused.value.context) == ["args"]


@pytest.mark.case("schemas", 49)
async def test_a_switch_may_be_a_number_that_means_it() -> None:
    result = await infer_tool().execute({"samples": ["2024-01-01"], "format": 1, "unknown": "x"})
    assert result == obj("value", value={"type": "string", "format": "date"})


ENDPOINTS: list[tuple[int, list[Any], dict[str, Any], Any, Any]] = [
    (50, [{"id": "1", "name": "A"}], {}, {"id": 7, "name": "x", "z": 1}, {"id": "7", "name": "x"}),
    (51, [{"id": "1", "name": "A"}], {}, {"id": True, "name": "A"}, ["type id string true"]),
    (51, [{"id": "1", "name": "A"}], {}, {"id": "1"}, ["missing name string"]),
    (52, [{"a": 1}, {"a": 2, "b": True}], {}, {"a": " 3 ", "b": "0"}, {"a": 3, "b": False}),
    (52, [{"a": 1}, {"a": 2, "b": True}], {}, {"a": 1}, {"a": 1}),
    (53, [{"n": 1.5}], {}, {"n": "1e3"}, {"n": 1000}),
    (53, [{"n": 1.5}], {}, {"n": ""}, ['type n number ""']),
    (53, [{"n": 1.5}], {}, {"n": "nan"}, ['type n number "nan"']),
    (54, ["a"], {}, {"value": 5}, {"value": "5"}),
    (54, ["a"], {}, {}, ["missing value string"]),
    (55, [{"status": s} for s in ("open", "open", "closed")], {"enum": True}, {"status": " open "}, {"status": "open"}),
    (
        55,
        [{"status": s} for s in ("open", "open", "closed")],
        {"enum": True},
        {"status": "pending"},
        ['type status literal "pending"'],
    ),
    (56, [{}], {}, {"z": 1}, {}),
]


@pytest.mark.parametrize(
    ("samples", "options", "args", "outcome"),
    [
        pytest.param(samples, options, args, outcome, marks=pytest.mark.case("schemas", number))
        for number, samples, options, args, outcome in ENDPOINTS
    ],
)
async def test_an_endpoint_gets_what_it_was_shown_or_is_not_called(
    samples: Any, options: Any, args: Any, outcome: Any
) -> None:
    seen: list[Any] = []
    tool = endpoint_tool("e", "An endpoint.", samples, seen.append, **options)
    if isinstance(outcome, dict):
        await tool.execute(args)
        assert seen == [outcome]
        assert type(next(iter(seen[0].values()), None)) is type(next(iter(outcome.values()), None))
    else:
        with pytest.raises(ToolError, match=r"^malformed endpoint call arguments") as refused:
            await tool.execute(args)
        assert refused.value.context["name"] == "e"
        assert [told(fault) for fault in refused.value.context["faults"]] == outcome
        assert seen == []


@pytest.mark.case("schemas", 57)
async def test_without_checks_an_endpoint_gets_the_very_arguments() -> None:
    seen: list[Any] = []

    async def execute(args: Any) -> str:
        seen.append(args)
        return "ok"

    args = {"id": [1], "extra": None}
    assert await endpoint_tool("e", "", [{"id": 1}], execute, validate=False).execute(args) == "ok"
    assert seen[0] is args
    with pytest.raises(ToolError, match="endpoint requires at least one sample") as refused:
        endpoint_tool("e", "", [], execute)
    assert refused.value.context == {"name": "e"}


# -------------------------------------------------------------------- whatever the samples are

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
FINITE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(FINITE, max_size=6), st.booleans(), st.booleans(), st.randoms(use_true_random=False))
def test_every_sample_fits_and_their_order_does_not_matter(
    samples: list[Any], format: bool, enum: bool, order: random.Random
) -> None:
    schema = infer_schema(samples, format=format, enum=enum)
    contract = Contract(schema)
    for sample in samples:
        assert contract.check(sample)
        assert contract.explain(sample) == []
        assert contract.parse(sample) is not REFUSED
    shuffled = list(samples)
    order.shuffle(shuffled)
    assert json.dumps(infer_schema(shuffled, format=format, enum=enum)) == json.dumps(schema)


@given(st.lists(JSON | st.binary() | st.just(CYCLE) | st.just({1: 2}) | st.just((1,)), max_size=5))
def test_hostile_values_never_crash(samples: list[Any]) -> None:
    if all(type(sample) is not dict or all(type(name) is str for name in sample) for sample in samples):
        infer_schema(samples, format=True, enum=True)


def test_shared_containers_take_no_exponential_time() -> None:
    value: Any = 1
    for _ in range(31):
        value = {"a": value, "b": value}
    assert infer_schema([value])["required"] == ["a", "b"]
    assert infer_schema([[value]])["items"]["required"] == ["a", "b"]
    row: Any = 1
    for _ in range(31):
        row = [row, row]
    assert infer_schema([row])["type"] == "array"


def test_a_circle_is_anything_where_it_closes() -> None:
    record: dict[str, Any] = {"a": 1}
    record["self"] = record
    assert infer_schema([record]) == obj("a self", a=INTEGER, self=ANY)
    assert infer_schema([CYCLE]) == arr(ANY)
