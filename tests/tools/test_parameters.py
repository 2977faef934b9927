"""Schemas from structs: the exact one, and the flat one that models are shown."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Meta, Struct, UnsetType

from greenroom.protocol.schemas import Contract, advertising_faults, canonical_schema, flat_schema
from greenroom.runtime.tools import Tool


class Point(Struct):
    """A place
    on the map."""

    x: int
    title: str = "here"


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Plain(Struct):
    start: Annotated[Point, Meta(description="where it starts")]
    end: Point
    stops: Annotated[list[Point], Meta(min_length=1)]
    names: dict[str, Point]
    note: Annotated[Annotated[str, Meta(min_length=1)] | UnsetType, Meta(description="a note")] = UNSET
    size: int | float = 1
    anything: list[Any] = []
    level: Literal["low", "mid", "high"] = "low"
    color: Color = Color.RED
    maybe: Point | None = None
    value: Any = None


class Read(Struct, tag_field="operation", tag="read"):
    """Reads a file."""

    path: Annotated[str, Meta(description="the file")]


class List(Struct, tag_field="operation", tag="list"):
    pass


class Write(Struct, tag_field="operation", tag="write"):
    """Writes a file,
    whole."""

    path: Annotated[str, Meta(description="the file to write")]
    count: Annotated[int | UnsetType, Meta(description="how often")] = UNSET


class Append(Struct, tag_field="operation", tag="append"):
    path: Annotated[str, Meta(description="the file to write")]
    count: Annotated[float, Meta(description="how often")]


class Tree(Struct):
    children: list[Tree] = []


class Nest(Struct, tag_field="operation", tag="nest"):
    nests: list[Nest] = []


class Chicken(Struct):
    egg: Egg | None = None


class Egg(Struct):
    chicken: Chicken | None = None


FILES = Read | List | Write | Append
POINT = {"type": "object", "properties": {"x": {"type": "integer"}, "title": {"type": "string"}}, "required": ["x"]}
CLOSED_POINT = POINT | {"additionalProperties": False}
PLACE = CLOSED_POINT | {"description": "A place on the map."}


@pytest.mark.case("reports/database", 4)
def test_structs_stand_in_the_schema_where_they_are_used() -> None:
    schema = canonical_schema(Plain)
    assert schema == {
        "type": "object",
        "properties": {
            "start": CLOSED_POINT | {"description": "where it starts"},
            "end": PLACE,
            "stops": {"type": "array", "items": PLACE, "minItems": 1},
            "names": {"type": "object", "additionalProperties": PLACE},
            "note": {"type": "string", "minLength": 1, "description": "a note"},
            "size": {"type": "number"},
            "anything": {"type": "array", "items": {}},
            "level": {"enum": ["low", "mid", "high"]},
            "color": {"enum": ["red", "blue"]},
            "maybe": {"anyOf": [PLACE, {"type": "null"}]},
            "value": {},
        },
        "required": ["start", "end", "stops", "names"],
        "additionalProperties": False,
    }
    assert flat_schema(schema) is schema
    assert advertising_faults(schema) == []


@pytest.mark.case("reports/database", 4)
@pytest.mark.parametrize("declared", [Tree, Chicken, Read | Nest])
def test_a_recursive_struct_is_refused_when_the_tool_is_made(declared: Any) -> None:
    with pytest.raises(TypeError, match="recursive"):
        Tool("t", lambda: None, parameters=declared)


@pytest.mark.parametrize("declared", [str, list[int], Plain | None, Plain | str, Plain | Read, dict, 5])
def test_what_is_no_struct_and_no_union_of_operations_is_refused(declared: Any) -> None:
    with pytest.raises(TypeError):
        Tool("t", lambda: None, parameters=declared)


def test_operations_are_the_variants_of_the_exact_schema() -> None:
    path = {"type": "string", "description": "the file to write"}
    assert canonical_schema(FILES)["anyOf"][1:3] == [
        {
            "type": "object",
            "properties": {"operation": {"enum": ["list"]}},
            "required": ["operation"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {
                "operation": {"enum": ["write"], "description": "Writes a file, whole."},
                "path": path,
                "count": {"type": "integer", "description": "how often"},
            },
            "required": ["operation", "path"],
            "additionalProperties": False,
        },
    ]


def test_operations_are_merged_into_one_object_that_tells_who_needs_what() -> None:
    flat = flat_schema(canonical_schema(FILES))
    assert flat == {
        "type": "object",
        "properties": {
            "operation": {
                "type": "string",
                "enum": ["read", "list", "write", "append"],
                "description": "read: Reads a file.\nlist\nwrite: Writes a file, whole.\nappend",
            },
            "path": {
                "type": "string",
                "description": "read: the file. write/append: the file to write. Required for read, write, append.",
            },
            "count": {
                "anyOf": [{"type": "integer"}, {"type": "number"}],
                "description": "how often. Required for append; optional for write.",
            },
        },
        "required": ["operation"],
        "additionalProperties": False,
    }
    assert list(flat["properties"]) == ["operation", "path", "count"]
    assert advertising_faults(flat) == []


def test_what_every_operation_requires_is_required() -> None:
    flat = flat_schema(canonical_schema(Read | Write))
    assert flat["required"] == ["operation", "path"]
    assert flat["properties"]["path"]["description"] == "read: the file. write: the file to write."


@given(
    st.fixed_dictionaries(
        {"operation": st.sampled_from(["read", "list", "write", "append", "odd"])},
        optional={"path": st.text(), "count": st.integers() | st.floats(allow_nan=False), "odd": st.none()},
    )
)
def test_what_the_exact_schema_takes_the_flat_one_takes(call: dict[str, Any]) -> None:
    canonical = canonical_schema(FILES)
    if Contract(canonical).check(call):
        assert Contract(flat_schema(canonical)).check(call)
