"""Tools: scripts over one registry, tools as functions of a workflow, and the schemas of the built-in tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import trio

from greenroom.actors.agent import AgentRegistry
from greenroom.actors.system import Runtime, open_runtime
from greenroom.actors.toolbox import (
    agent_tool,
    answer_tool,
    ask_tool,
    database_tool,
    describe_tool,
    infer_tool,
    relation_tool,
    workflow_tool,
    workspace_tool,
)
from greenroom.actors.workflow import WorkflowRunner
from greenroom.actors.workspace import WorkspaceManager
from greenroom.protocol.errors import GreenroomError
from greenroom.protocol.tools import ToolCall, ToolResult, ToolSuccess
from greenroom.protocol.workflows import WorkflowDefinition
from greenroom.runtime.tools import Tool, ToolManager, tool_function
from tests.conformance.recorded import error
from tests.conformance.values import is_list, is_object

__all__ = ["OPS"]

HOST = WorkflowDefinition(id="host", name="Host", phases=())
"""The workflow that the tool wraps."""

BUILT_IN: dict[str, Callable[[Runtime], Tool]] = {
    "describe": lambda runtime: describe_tool(runtime.tools),
    "ask": lambda runtime: ask_tool(runtime.terminals, "asker"),
    "answer": lambda runtime: answer_tool(runtime.terminals, "answerer"),
    "database": lambda runtime: database_tool(runtime.tree),
    "relation": lambda _: relation_tool({}),
    "workspace": lambda runtime: workspace_tool(WorkspaceManager(runtime.tree)),
    "infer": lambda _: infer_tool(),
    "workflow": lambda runtime: workflow_tool(HOST, WorkflowRunner(runtime.tree)),
    "agent": lambda _: agent_tool(AgentRegistry({})),
}


class Thrown(Exception):
    """What the tools of a case raise."""


class Controller(NamedTuple):
    input: Any


async def script(given: Any) -> Any:
    async with open_runtime(wall_clock=trio.current_time) as runtime:
        names = [*(["describe"] if given.get("describe") else []), *given.get("builtin", [])]
        runtime.tools.add(BUILT_IN[name](runtime) for name in names)
        return {"steps": [await _step(runtime.tools, step) for step in given["steps"]]}


async def _step(tools: ToolManager, step: Any) -> Any:
    match step["do"]:
        case "add":
            tools.add(_tool(each) for each in _listed(step["tools"]))
            return {}
        case "remove":
            return {"removed": tools.remove(step["names"])}
        case "clear":
            tools.clear()
            return {}
        case "names":
            return {"names": [tool.name for tool in tools.tools()], "count": tools.count}
        case "definitions":
            return {"definitions": _definitions(tools, step.get("full", False))}
        case "execute":
            calls = [ToolCall(**call) for call in _listed(step["calls"])]
            if is_list(step["calls"]):
                return {"result": [_envelope(result) for result in await tools.execute(calls)]}
            return {"result": _envelope(await tools.execute(calls[0]))}
        case "direct":
            return await _direct(tools, step["name"], step["args"])
        case unknown:
            raise ValueError(f"no step is called {unknown!r}")


async def _direct(tools: ToolManager, name: str, args: Any) -> Any:
    tool = tools.tool(name)
    assert tool is not None, f"the case has no tool {name!r}"
    try:
        return {"value": await tool.execute(args)}
    except Exception as raised:
        return error(raised)


def _definitions(tools: ToolManager, full: bool) -> list[Any]:
    told: list[Any] = []
    for definition in tools.definitions():
        members = {"description": definition.description, "parameters": definition.parameters}
        has = sorted(["name", *(name for name, member in members.items() if member is not None)])
        told.append({"name": definition.name, "has": has, **(members if full else {})})
    return told


def _envelope(result: ToolResult) -> Any:
    if isinstance(result, ToolSuccess):
        return {"id": result.id, "name": result.name, "success": True, "value": result.value}
    told: Any = result.error
    return {
        "id": result.id,
        "name": result.name,
        "success": False,
        "error": "string" if isinstance(told, str) else told,
    }


def _tool(told: Any) -> Tool:
    """The tool of a case: what its function does is named by `kind`."""
    kind, value = told["kind"], told.get("value")

    def echo(args: Any) -> Any:
        return args

    def throws(args: Any) -> Any:
        raise Thrown("thrown")

    async def rejects(args: Any) -> Any:
        await trio.lowlevel.checkpoint()
        raise Thrown("rejected")

    async def later(args: Any) -> Any:
        await trio.lowlevel.checkpoint()
        return value

    def caller(args: Any, caller: Any = None) -> Any:
        return {"caller": caller}

    functions: dict[str, Any] = {
        "echo": echo,
        "constant": lambda: value,
        "absent": lambda: None,
        "throws": throws,
        "throwsText": throws,
        "rejects": rejects,
        "later": later,
        "caller": caller,
    }
    texts = {name: told[name] for name in ("description", "summary", "parameters") if name in told}
    return Tool(told["name"], functions[kind], **texts)


async def function(given: Any) -> Any:
    tools = ToolManager()
    tools.add(_tool(told) for told in given["tools"])
    try:
        wrapped = tool_function(tools, given["name"])
    except GreenroomError as raised:
        return {"opened": error(raised)}
    try:
        return {"value": await wrapped(Controller(given.get("input", {})))}
    except Thrown:
        return {"thrown": "error"}
    except GreenroomError as raised:
        return error(raised)


async def parameters(given: Any) -> Any:
    async with open_runtime(wall_clock=trio.current_time) as runtime:
        tool = BUILT_IN[given["tool"]](runtime)
    # A tool that reads its arguments by itself has one form of its schema.
    schema = tool.parameters if tool.arguments is None else tool.arguments.canonical
    return {"name": tool.name, "parameters": _without_descriptions(schema)}


def _without_descriptions(schema: Any, named: bool = False) -> Any:
    """The schema without descriptions; `named` if its members are names of properties, one of which may be that."""
    if is_list(schema):
        return [_without_descriptions(part) for part in schema]
    if not is_object(schema):
        return schema
    return {
        name: _without_descriptions(part, named=name == "properties" and not named)
        for name, part in schema.items()
        if named or name != "description"
    }


def _listed(one_or_more: Any) -> list[Any]:
    return list(one_or_more) if is_list(one_or_more) else [one_or_more]


OPS = {"tools.script": script, "tools.function": function, "tools.parameters": parameters}
