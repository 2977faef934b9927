"""Contracts: what fits as it stands, what is read, and why the rest is refused."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.protocol.errors import ToolError
from greenroom.protocol.schemas import REFUSED, Contract, Schema
from greenroom.protocol.text import WHITE_SPACE
from tests.tools.values import hostile_values, json_values

STRING: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
INTEGER: Schema = {"type": "integer"}
BOOLEAN: Schema = {"type": "boolean"}
NULL: Schema = {"type": "null"}


def parse(schema: Schema, value: object) -> Any:
    return Contract(schema).parse(value)


def faults(schema: Schema, value: object) -> Any:
    return msgspec.to_builtins(Contract(schema).explain(value))


# ---------------------------------------------------------------- reading

READINGS: list[tuple[object, object, object, object, object]] = [
    # value, as string, as number, as integer, as boolean
    ("42", "42", 42, 42, REFUSED),
    (" 42\ufeff", " 42\ufeff", 42, 42, REFUSED),
    ("+42", "+42", 42, 42, REFUSED),
    ("042", "042", 42, 42, REFUSED),
    ("5.", "5.", 5, 5, REFUSED),
    (".5", ".5", 0.5, REFUSED, REFUSED),
    ("0x1F", "0x1F", 31, 31, REFUSED),
    ("0o17", "0o17", 15, 15, REFUSED),
    ("0b11", "0b11", 3, 3, REFUSED),
    ("42.0", "42.0", 42, 42, REFUSED),
    ("1E3", "1E3", 1000, 1000, REFUSED),
    ("42.5", "42.5", 42.5, REFUSED, REFUSED),
    ("1e-400", "1e-400", 0, 0, REFUSED),
    ("1e400", "1e400", REFUSED, REFUSED, REFUSED),
    *((text, text, REFUSED, REFUSED, REFUSED) for text in ("", " ", "4_2", "1,000", "1e", "--4", "٤٢", "-0x1")),
    *(
        (text, text, REFUSED, REFUSED, REFUSED)
        for text in ("NaN", "nan", "inf", "Infinity", "TRUE", "True", "yes", "on")
    ),
    ("true", "true", REFUSED, REFUSED, True),
    ("false", "false", REFUSED, REFUSED, False),
    ("1", "1", 1, 1, True),
    ("0", "0", 0, 0, False),
    (42, "42", 42, 42, REFUSED),
    (-1, "-1", -1, -1, REFUSED),
    (42.0, "42", 42, 42, REFUSED),
    (42.5, "42.5", 42.5, REFUSED, REFUSED),
    (1e20, "100000000000000000000", 1e20, 10**20, REFUSED),
    (1e-6, "0.000001", 1e-6, REFUSED, REFUSED),
    (-0.0, "0", 0, 0, False),
    (1.0, "1", 1, 1, True),
    (2512292042121000001, "2512292042121000001", 2512292042121000001, 2512292042121000001, REFUSED),
    (10**400, REFUSED, REFUSED, REFUSED, REFUSED),
    (True, REFUSED, REFUSED, REFUSED, True),
    (False, REFUSED, REFUSED, REFUSED, False),
    *((value, REFUSED, REFUSED, REFUSED, REFUSED) for value in (None, ["1"], {"a": 1}, math.nan, math.inf)),
]


@pytest.mark.parametrize(("value", "string", "number", "integer", "boolean"), READINGS)
def test_a_scalar_is_read_as_each_type_reads_it(
    value: object, string: object, number: object, integer: object, boolean: object
) -> None:
    for schema, reading in ((STRING, string), (NUMBER, number), (INTEGER, integer), (BOOLEAN, boolean)):
        read = parse(schema, value)
        assert read == reading
        assert isinstance(read, bool) == isinstance(reading, bool)
        if schema is INTEGER and read is not REFUSED:
            assert type(read) is int


@pytest.mark.case("schemas", 58)
def test_a_number_becomes_text_as_ecmascript_prints_it() -> None:
    assert [parse(STRING, value) for value in (1e21, 1e-7, 42.0)] == ["1e+21", "1e-7", "42"]


def test_only_null_is_null() -> None:
    assert parse(NULL, None) is None
    assert [parse(NULL, value) for value in ("null", "", 0, False)] == [REFUSED] * 4


def test_a_literal_is_stripped_once_and_never_changes_its_type() -> None:
    assert parse({"enum": ["open"]}, f"{WHITE_SPACE}open ") == "open"
    assert parse({"enum": [" open ", "open"]}, " open ") == " open "
    assert parse({"enum": ["open"]}, "OPEN") is REFUSED
    assert [parse({"enum": [1]}, value) for value in ("1", 1.0, True)] == [REFUSED, 1, REFUSED]
    assert parse({"enum": [None, "a"]}, None) is REFUSED


def test_an_object_drops_what_it_does_not_declare_and_refuses_null_for_what_is_optional() -> None:
    schema: Schema = {"properties": {"a": INTEGER, "b": STRING}, "required": ["a"], "additionalProperties": False}
    assert parse(schema, {"a": "1", "z": object()}) == {"a": 1}
    assert parse(schema, {"b": 2, "a": 1}) == {"a": 1, "b": "2"}
    assert parse(schema, {"a": 1, "b": None}) is REFUSED
    assert parse(schema, {"b": "x"}) is REFUSED
    assert not Contract(schema).check({"a": 1, "z": 0})


def test_an_open_object_keeps_what_it_does_not_declare() -> None:
    kept = [1]
    assert parse({"type": "object", "properties": {"a": INTEGER}}, {"z": kept, "a": "1"}) == {"a": 1, "z": kept}
    assert parse({"type": "object", "additionalProperties": INTEGER}, {"z": "1"}) == {"z": 1}
    assert parse({"type": "object", "additionalProperties": INTEGER}, {"z": "x"}) is REFUSED


@pytest.mark.case("schemas", 61)
def test_a_union_takes_what_fits_before_what_can_be_read() -> None:
    either: Schema = {"anyOf": [BOOLEAN, INTEGER]}
    assert [parse(either, value) for value in ("1", 1, "7")] == [True, 1, 7]
    assert parse(either, "1") is True
    assert type(parse(either, 1)) is int
    text: Schema = {"anyOf": [INTEGER, STRING]}
    assert [parse(text, value) for value in ("5", 5.5)] == ["5", "5.5"]


@pytest.mark.case("schemas", 64)
def test_keywords_that_are_not_asserted_take_anything() -> None:
    ignored: list[Schema] = [{"type": ["string", "null"]}, {"const": 5}, {"type": "string", "pattern": "^a$"}]
    ignored += [{"type": "string", "format": "email"}, {"allOf": [NULL]}, {"not": {}}, {"$ref": "#/x"}, {"type": "odd"}]
    for schema in ignored:
        assert parse(schema, "nope") == "nope"
    assert parse({"type": "integer", "exclusiveMinimum": 5}, 1) == 1


def test_bounds_of_the_wrong_kind_or_without_room_do_not_count() -> None:
    ignored: list[Schema] = [{"minimum": "5"}, {"minimum": True}, {"minimum": 5, "maximum": 4}]
    for bounds in (*ignored, {"minimum": 1.2, "maximum": 1.8}):
        assert parse({"type": "integer", **bounds}, 1) == 1
    assert parse({"type": "number", "minimum": 1.2, "maximum": 1.8}, 1) is REFUSED


def test_nothing_beyond_a_bound_fits_as_it_stands() -> None:
    text: Schema = {"type": "string", "minLength": 2, "maxLength": 3}
    assert [Contract(text).check(value) for value in ("a", "ab", "abc", "abcd", "😀😀")] == [
        False,
        True,
        True,
        False,
        True,
    ]
    number: Schema = {"type": "number", "minimum": 2, "maximum": 3}
    assert [Contract(number).check(value) for value in (1, 2, 3.0, 3.5)] == [False, True, True, False]
    array: Schema = {"type": "array", "minItems": 1, "maxItems": 2}
    assert [Contract(array).check([0] * size) for size in range(4)] == [False, True, True, False]


def test_too_many_or_too_deep_parts_may_be_anything() -> None:
    deep: Schema = {"type": "string"}
    for _ in range(33):
        deep = {"type": "array", "items": deep}
    value: Any = None
    for _ in range(33):
        value = [value]
    assert parse(deep, value) == value
    assert parse({"anyOf": [INTEGER] * 257}, "x") == "x"
    assert parse({"oneOf": [INTEGER] * 257}, "x") == "x"
    wide: Schema = {"properties": {f"p{n:03}": INTEGER for n in range(257)}, "additionalProperties": False}
    assert parse(wide, {"p256": "x", "z": 1, "p000": "1"}) == {"p000": 1, "p256": "x", "z": 1}


def test_a_schema_that_holds_itself_may_be_anything_there() -> None:
    schema: Schema = {"type": "object", "properties": {"a": INTEGER}, "additionalProperties": False}
    schema["properties"]["own"] = schema
    assert parse(schema, {"a": "1", "own": {"own": "x"}}) == {"a": 1, "own": {"own": "x"}}


def test_a_schema_of_too_many_parts_is_refused() -> None:
    grid: Schema = {"anyOf": [{"anyOf": [INTEGER] * 200}] * 200}
    with pytest.raises(ToolError, match="16,384"):
        Contract(grid)


# ---------------------------------------------------------------- faults


@pytest.mark.case("schemas", 59)
def test_every_bound_that_is_crossed_is_a_fault() -> None:
    schema: Schema = {"type": "integer", "minimum": 1, "maximum": 5}
    over: Schema = {"reason": "constraint", "path": [], "expected": "integer", "constraint": "max", "limit": 5}
    assert faults(schema, "6") == [{**over, "received": "6"}]
    part: Schema = {
        "reason": "constraint",
        "path": [],
        "expected": "integer",
        "constraint": "integer",
        "received": "9.5",
    }
    assert faults(schema, 9.5) == [part, {**over, "received": "9.5"}]


@pytest.mark.case("schemas", 60)
def test_items_are_at_fault_before_their_number() -> None:
    assert faults({"type": "array", "items": INTEGER, "minItems": 2}, ["x"]) == [
        {"reason": "type", "path": ["0"], "expected": "integer", "received": '"x"'},
        {"reason": "constraint", "path": [], "expected": "array", "constraint": "min", "limit": 2, "received": "1"},
    ]


@pytest.mark.case("schemas", 62)
def test_one_of_takes_what_exactly_one_variant_takes_as_it_stands() -> None:
    schema: Schema = {"oneOf": [INTEGER, NUMBER]}
    assert faults(schema, 5) == [{"reason": "oneOf", "path": [], "matched": 2}]
    assert faults(schema, "5") == [{"reason": "oneOf", "path": [], "matched": 0}]
    assert parse(schema, 5.5) == 5.5
    pair: Schema = {"oneOf": [{"properties": {"a": INTEGER, "b": INTEGER}}, {"properties": {"a": INTEGER}}]}
    assert faults(pair, {"a": "x", "b": "y"}) == [
        {"reason": "oneOf", "path": [], "matched": 0},
        {"reason": "type", "path": ["a"], "expected": "integer", "received": '"x"'},
    ]


@pytest.mark.case("schemas", 63)
def test_operations_are_told_apart_by_their_literal() -> None:
    read: Schema = {"operation": {"enum": ["read"]}, "path": STRING}
    schema: Schema = {
        "anyOf": [
            {"type": "object", "properties": read, "required": ["operation", "path"], "additionalProperties": False},
            {
                "type": "object",
                "properties": {"operation": {"enum": ["list"]}},
                "required": ["operation"],
                "additionalProperties": False,
            },
        ]
    }
    assert parse(schema, {"operation": "list", "x": 1}) == {"operation": "list"}
    variant: Schema = {"reason": "variant", "path": [], "variants": 2}
    assert faults(schema, {"operation": "nope"}) == [
        variant,
        {"reason": "type", "path": ["operation"], "expected": "literal", "received": '"nope"'},
    ]
    assert faults(schema, {}) == [variant, {"reason": "missing", "path": ["operation"], "expected": "literal"}]


def test_a_list_of_faults_ends_at_64() -> None:
    told = faults({"type": "array", "items": INTEGER}, ["x"] * 100)
    assert len(told) == 64
    assert told[-1]["path"] == ["63"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ('a\n"', '"a\\n\\""'),
        ("x" * 62, f'"{"x" * 62}"'),
        ("x" * 64, f'"{"x" * 63}…'),
        ("x" * 62 + "\n" + "x", f'"{"x" * 62}…'),
        ("\ud800é", '"\\ud800é"'),
        (True, "true"),
        (None, "null"),
        (1e21, "1e+21"),
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        ([1], "array"),
        ({"secret": 1}, "object"),
        (object(), "object"),
    ],
)
def test_what_was_received_is_shown_short(value: object, shown: str) -> None:
    [fault] = faults({"enum": ["nothing"]}, value)
    assert fault["received"] == shown


# ---------------------------------------------------------------- promises


SMALL = st.integers(0, 3)
NAMES = st.sampled_from(["a", "b", "1"])
MEMBERS: list[object] = ["a", " a ", "1", 1, 1.5, True]
SCALARS: list[Schema] = [{}, BOOLEAN, NULL]


def schemas() -> st.SearchStrategy[Schema]:
    """Schemas of every keyword that counts, a few levels deep."""
    scalars: st.SearchStrategy[Schema] = st.one_of(
        st.sampled_from(SCALARS),
        _schema({"type": st.just("string")}, {"minLength": SMALL, "maxLength": SMALL}),
        _schema({"type": st.sampled_from(["number", "integer"])}, {"minimum": SMALL, "maximum": SMALL}),
        _schema({"enum": st.lists(st.sampled_from(MEMBERS), min_size=1)}),
    )

    def containers(parts: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
        variants = st.lists(parts, min_size=1, max_size=3)
        extras: st.SearchStrategy[Any] = st.booleans() | parts
        return st.one_of(
            _schema({"type": st.just("array"), "items": parts}, {"minItems": SMALL, "maxItems": SMALL}),
            _schema(
                {"type": st.just("object"), "properties": st.dictionaries(NAMES, parts, max_size=3)},
                {"required": st.lists(NAMES, max_size=2), "additionalProperties": extras},
            ),
            _schema({"anyOf": variants}),
            _schema({"oneOf": variants}),
        )

    return st.recursive(scalars, containers, max_leaves=6)


def _schema(
    keywords: dict[str, st.SearchStrategy[Any]], optional: dict[str, st.SearchStrategy[Any]] | None = None
) -> st.SearchStrategy[Schema]:
    return st.fixed_dictionaries(keywords, optional=optional or {})


@given(schemas(), json_values())
def test_check_parse_and_explain_agree(schema: Schema, value: Any) -> None:
    contract = Contract(schema)
    reading = contract.parse(value)
    if contract.check(value):
        assert reading is not REFUSED
        assert reading == value
    if reading is not REFUSED:
        assert contract.check(reading)
    assert (contract.explain(value) == []) == (reading is not REFUSED)


@given(schemas(), hostile_values(), st.booleans())
def test_nothing_is_raised_at_hostile_values(schema: Schema, value: Any, exact: bool) -> None:
    contract = Contract(schema, exact=exact)
    contract.check(value)
    refused = contract.parse(value) is REFUSED
    assert bool(contract.explain(value)) == refused
