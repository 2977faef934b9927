"""Endpoints: a tool made of samples, and calls of it."""

from __future__ import annotations

from typing import Any

from greenroom.actors.toolbox.endpoint import endpoint_tool
from tests.conformance.recorded import error

__all__ = ["OPS"]


async def endpoint(given: Any) -> Any:
    seen: list[Any] = []

    def execute(args: Any) -> str:
        seen.append(args)
        return "ok"

    try:
        tool = endpoint_tool("e", "", given["samples"], execute, **given.get("options", {}))
    except Exception as raised:
        return {"opened": error(raised)}
    return {"parameters": tool.parameters, "calls": [await _call(tool, seen, args) for args in given["calls"]]}


async def _call(tool: Any, seen: list[Any], args: Any) -> Any:
    seen.clear()
    try:
        result = await tool.execute(args)
    except Exception as raised:
        return error(raised)
    return {"invoked": seen[0], "result": result}


OPS = {"endpoint": endpoint}
