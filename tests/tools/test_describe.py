"""The describe tool."""

from __future__ import annotations

from typing import Any

import pytest

from greenroom.actors.toolbox import describe_tool
from greenroom.protocol.errors import ToolError
from greenroom.protocol.tools import ToolCall, ToolFailure, ToolResult, ToolSuccess
from greenroom.runtime.tools import Tool, ToolManager


def registry(*tools: Tool) -> ToolManager:
    manager = ToolManager()
    manager.add([describe_tool(manager), *tools])
    return manager


def T(name: str, **texts: Any) -> Tool:  # noqa: N802
    return Tool(name, lambda: None, **texts)


async def describe(tools: ToolManager, arguments: dict[str, Any]) -> ToolResult:
    return await tools.execute(ToolCall("1", "describe", arguments))


async def described(tools: ToolManager, name: object) -> object:
    result = await describe(tools, {"name": name})
    assert isinstance(result, ToolSuccess)
    return result.value


async def refused(tools: ToolManager, arguments: dict[str, Any]) -> ToolError:
    tool = tools.tool("describe")
    assert tool is not None
    with pytest.raises(ToolError) as caught:
        await tool.execute(arguments)
    assert caught.value.code == "TOOL"
    assert await describe(tools, arguments) == ToolFailure(id="1", name="describe", error=caught.value.message)
    return caught.value


@pytest.mark.case("tools", 25)
async def test_the_description_is_told_in_full_while_the_summary_is_shown() -> None:
    tools = registry(T("workflow", description="all of it\n" * 100, summary="one sentence"))
    assert await described(tools, "workflow") == "all of it\n" * 100
    assert tools.definitions()[1].description == "one sentence"


@pytest.mark.case("tools", 26)
async def test_a_tool_without_a_description_is_told_by_what_it_has() -> None:
    tools = registry(T("summary", summary="short"), T("bare"), T("empty", description="", summary="short"))
    assert [await described(tools, name) for name in ("summary", "bare", "empty")] == ["short", "<no description>", ""]


@pytest.mark.case("tools", 27)
@pytest.mark.parametrize(
    "arguments", [{}, {"name": ""}, {"name": None}, {"name": True}, {"name": ["a"]}, {"Name": "a"}]
)
async def test_a_call_without_a_proper_name_is_refused(arguments: dict[str, Any]) -> None:
    error = await refused(registry(T("a")), arguments)
    assert error.message.startswith("malformed describe call: name is ")
    assert error.context == {"args": arguments}


@pytest.mark.case("tools", 28)
async def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    error = await refused(registry(T("a")), {"name": "nonexistent"})
    assert error.context == {"name": "nonexistent"}
    assert "nonexistent" in error.message
    assert "describe, a" in error.message


@pytest.mark.case("tools", 29)
async def test_a_number_is_read_as_a_name_and_nothing_is_trimmed() -> None:
    tools = registry(T("42", description="by number"), T("s"))
    assert [await described(tools, name) for name in (42, 42.0, "42")] == ["by number"] * 3
    await refused(tools, {"name": " s "})


@pytest.mark.case("tools", 30)
async def test_it_describes_itself_and_what_is_added_later() -> None:
    tools = registry()
    tools.add(T("late", description="later"))
    assert await described(tools, "late") == "later"
    own = tools.tool("describe")
    assert own is not None
    assert await described(tools, "describe") == own.description
