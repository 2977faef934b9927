"""What models are shown of a user's own schema, and what calls then owe."""

from __future__ import annotations

from typing import Any

import pytest

from greenroom.actors.toolbox import describe_tool
from greenroom.protocol.errors import ToolError
from greenroom.protocol.schemas import Schema, advertise, advertising_faults
from greenroom.protocol.tools import ToolCall, ToolFailure, ToolSuccess
from greenroom.runtime.tools import Tool, ToolManager

SHAPES: Schema = {
    "description": "a shape",
    "anyOf": [
        {
            "type": "object",
            "properties": {"kind": {"const": "circle"}, "size": {"type": "integer", "description": "radius"}},
            "required": ["kind", "size"],
            "additionalProperties": False,
        },
        {
            "type": "object",
            "properties": {"kind": {"const": "label"}, "size": {"type": "string"}, "bold": {"type": "boolean"}},
            "required": ["kind"],
            "additionalProperties": False,
        },
    ],
}


def T(name: str, schema: Schema) -> Tool:  # noqa: N802
    def echo(args: Any) -> Any:
        return args

    return Tool(name, echo, parameters=schema)


@pytest.mark.case("reports/database", 3)
async def test_a_union_at_the_root_is_shown_flat_and_calls_are_checked_against_all_of_it() -> None:
    tools = ToolManager()
    tools.add([describe_tool(tools), T("shape", SHAPES), T("plain", {"type": "object", "properties": {}})])
    for definition in tools.definitions():
        assert advertising_faults(definition.parameters) == []
    assert tools.definitions()[1].parameters == {
        "description": "a shape",
        "type": "object",
        "properties": {
            "kind": {"type": "string", "enum": ["circle", "label"], "description": "circle\nlabel"},
            "size": {
                "anyOf": [{"type": "integer"}, {"type": "string"}],
                "description": "circle: radius. Required for circle; optional for label.",
            },
            "bold": {"type": "boolean", "description": "Optional for label."},
        },
        "required": ["kind"],
        "additionalProperties": False,
    }
    for arguments in ({"kind": "circle", "size": 2}, {"kind": "label", "bold": True}):
        result = await tools.execute(ToolCall("1", "shape", arguments))
        assert isinstance(result, ToolSuccess)
        assert result.value is arguments
    refused: list[tuple[dict[str, Any], str]] = [
        ({"kind": "circle", "size": "x"}, 'size is "x", expected integer'),
        ({"kind": "square"}, 'kind is "square", expected one of "circle", "label"'),
        ({"kind": "circle"}, "size is missing, expected integer"),
    ]
    for arguments, told in refused:
        result = await tools.execute(ToolCall("1", "shape", arguments))
        assert result == ToolFailure(id="1", name="shape", error=f"malformed shape call: {told}")
    for other in ("describe", "plain"):
        assert isinstance(await tools.execute(ToolCall("1", other, {"name": "plain"})), ToolSuccess)


UNFIT: list[tuple[Schema, str]] = [
    ({"type": "string"}, "'string'"),
    ({"type": ["object", "null"]}, "'object', 'null'"),
    ({"type": "object", "not": {"required": ["a"]}}, "`not`"),
    ({"enum": [{}]}, "`enum`"),
    ({"anyOf": [{"type": "object"}, {"type": "null"}]}, "'null'"),
    ({"anyOf": 5}, "`anyOf`"),
    ({"type": "object", "properties": {"own": {"$ref": "#"}}}, "recursive"),
    ({"type": "object", "properties": {"a": {"$ref": "#/$defs/missing"}}}, "leads nowhere"),
    ({"$ref": "https://elsewhere.example/schema"}, "leads out"),
]


@pytest.mark.case("reports/database", 3)
@pytest.mark.parametrize(("schema", "why"), UNFIT)
async def test_a_tool_that_cannot_be_shown_is_refused_by_name_and_the_others_stay(schema: Schema, why: str) -> None:
    tools = ToolManager()
    tools.add(T("kept", {"type": "object"}))
    with pytest.raises(ToolError, match="'odd'") as caught:
        tools.add([T("new", {"type": "object"}), T("odd", schema)])
    assert why in caught.value.message
    assert (caught.value.code, caught.value.context) == ("TOOL", {"tool": "odd"})
    assert [tool.name for tool in tools.tools()] == ["kept"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "properties": {"$ref": {"type": "string"}, "$defs": {}, "anyOf": {}}},
        {"type": "object", "properties": {"a": {"anyOf": [{"type": "null"}, {}], "enum": [{"$ref": "#"}]}}},
    ],
)
def test_a_schema_that_can_be_shown_is_shown_as_the_very_object(schema: Schema) -> None:
    shown, owed = advertise(schema)
    assert shown is schema
    assert owed is None
    assert advertising_faults({"properties": {}, **schema}) == []


def test_a_root_without_a_type_is_shown_as_an_object() -> None:
    assert advertise({}).schema == {"type": "object", "properties": {}}
    assert advertise({"properties": {"a": {}}}).schema == {"type": "object", "properties": {"a": {}}}


def test_references_are_replaced_by_what_they_name_and_keep_what_stands_beside_them() -> None:
    part: Schema = {"type": "object", "properties": {"n": {"$ref": "#/definitions/number~1whole"}}}
    schema: Schema = {
        "type": "object",
        "properties": {"one": {"$ref": "#/$defs/part", "description": "the one"}, "two": {"$ref": "#/$defs/part"}},
        "$defs": {"part": part},
        "definitions": {"number/whole": {"type": "integer"}},
    }
    plain = {"type": "object", "properties": {"n": {"type": "integer"}}}
    shown, owed = advertise(schema)
    assert shown == {"type": "object", "properties": {"one": plain | {"description": "the one"}, "two": plain}}
    assert owed is None
    assert advertising_faults(schema) == ["it has `$ref`", "it has `$defs`", "it has `definitions`"]


def test_a_choice_of_required_properties_is_told_in_their_descriptions() -> None:
    schema: Schema = {
        "type": "object",
        "properties": {"id": {"type": "string"}, "name": {"type": "string"}},
        "anyOf": [{"required": ["id"]}, {"required": ["name"]}],
    }
    shown, owed = advertise(schema)
    assert shown == {
        "type": "object",
        "properties": {
            "id": {"type": "string", "description": "Required for form 1; optional for form 2."},
            "name": {"type": "string", "description": "Required for form 2; optional for form 1."},
        },
    }
    assert owed is not None
    assert owed.parse({"id": "x"}) == {"id": "x"}
    assert str(owed.parse({})) == "the value fits none of 2 forms; id is missing, expected string"


def test_a_schema_of_several_parts_is_shown_as_one_object() -> None:
    schema: Schema = {
        "allOf": [
            {"properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"properties": {"a": {"minLength": 1}, "b": True}, "additionalProperties": False},
        ]
    }
    assert advertise(schema).schema == {
        "type": "object",
        "properties": {"a": {"type": "string", "minLength": 1}, "b": {}},
        "required": ["a"],
        "additionalProperties": False,
    }


def test_exactly_one_form_is_asked_where_the_schema_asks_it() -> None:
    loose: Schema = {"oneOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}
    _, owed = advertise(loose)
    assert owed is not None
    assert str(owed.parse({"a": 1})) == "the value fits 2 forms, expected exactly one"


def test_a_schema_that_unfolds_without_end_is_refused() -> None:
    steps = {f"s{n}": {"anyOf": [{"$ref": f"#/$defs/s{n + 1}"}] * 2} for n in range(40)}
    with pytest.raises(TypeError, match="16,384"):
        advertise({"type": "object", "properties": {"a": {"$ref": "#/$defs/s0"}}, "$defs": {**steps, "s40": {}}})
    wide: Schema = {"allOf": [{"anyOf": [{"type": "object"}] * 20}] * 3}
    with pytest.raises(TypeError, match="256"):
        advertise(wide)
    deep: Schema = {"type": "object"}
    for _ in range(5000):
        deep = {"anyOf": [deep]}
    with pytest.raises(TypeError, match="128 levels"):
        advertise(deep)


def test_the_checker_says_what_is_wrong_with_a_root() -> None:
    assert advertising_faults([]) == ["it is no JSON object"]
    assert advertising_faults({"anyOf": [], "not": {}}) == [
        "its root is not of type `object`",
        "its root has no `properties`",
        "its root has `anyOf`",
        "its root has `not`",
    ]
