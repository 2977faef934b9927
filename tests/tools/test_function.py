"""A tool as a function of a workflow task."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import pytest

from greenroom.protocol.errors import ToolError
from greenroom.runtime.tools import Tool, ToolManager, tool_function


class Controller(NamedTuple):
    input: Any


def registry(returned: object) -> ToolManager:
    tools = ToolManager()
    tools.add(Tool("t", lambda: returned))
    return tools


@pytest.mark.case("tools", 32)
async def test_what_the_tool_raises_comes_through_as_it_is() -> None:
    error = LookupError("genuine")

    def boom(args: object) -> None:
        raise error

    tools = ToolManager()
    tools.add(Tool("t", boom))
    with pytest.raises(LookupError) as caught:
        await tool_function(tools, "t")(Controller({}))
    assert caught.value is error


@pytest.mark.case("tools", 32)
@pytest.mark.parametrize("value", [math.nan, math.inf, print, {"a": (1,)}, {1: 2}, "\ud800"])
async def test_what_is_not_json_is_refused_after_the_call(value: object) -> None:
    await refused(registry(value))


@pytest.mark.case("tools", 32)
async def test_a_cyclic_value_is_refused_after_the_call() -> None:
    cycle: dict[str, Any] = {}
    cycle["self"] = cycle
    await refused(registry(cycle))


@pytest.mark.case("tools", 32)
async def test_a_missing_tool_is_refused_at_the_call() -> None:
    await refused(ToolManager())


@pytest.mark.case("tools", 32)
def test_the_workflow_tool_is_refused_when_the_function_is_made() -> None:
    with pytest.raises(ToolError) as caught:
        tool_function(ToolManager(), "workflow")
    assert (caught.value.code, caught.value.context) == ("TOOL", {"tool": "workflow"})


async def test_a_json_value_is_returned_as_the_same_object() -> None:
    value = {"a": [1, 2.5, None, True, "x"]}
    assert await tool_function(registry(value), "t")(Controller({})) is value


async def test_a_tool_that_returns_nothing_returns_null() -> None:
    assert await tool_function(registry(None), "t")(Controller({})) is None


async def test_the_input_of_the_task_is_the_arguments() -> None:
    got: list[object] = []
    tools = ToolManager()
    tools.add(Tool("t", got.append))
    given = {"x": 1}
    await tool_function(tools, "t")(Controller(given))
    assert got[0] is given


async def test_a_tool_that_is_added_later_is_found() -> None:
    tools = ToolManager()
    function = tool_function(tools, "t")
    tools.add(Tool("t", lambda: "late"))
    assert await function(Controller(None)) == "late"


async def refused(tools: ToolManager) -> None:
    with pytest.raises(ToolError) as caught:
        await tool_function(tools, "t")(Controller({}))
    assert (caught.value.code, caught.value.context) == ("TOOL", {"tool": "t"})
