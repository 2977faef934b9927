"""Databases: scripts over one database tool, whose databases are in memory."""

from __future__ import annotations

from itertools import count
from typing import Any

import trio

from greenroom.actors.database import MemoryDefinitionStore
from greenroom.actors.system import Runtime, open_runtime
from greenroom.actors.toolbox.database import database_tool
from greenroom.protocol.errors import GreenroomError
from greenroom.runtime.tools import Tool
from tests.conformance.recorded import Placeholders, error
from tests.conformance.values import is_list, is_object

__all__ = ["OPS"]


async def script(given: Any) -> Any:
    options = given.get("options", {})
    store = MemoryDefinitionStore() if options.get("store") else None
    numbers = count(1)
    generator = (lambda: f"g{next(numbers)}") if options.get("generator") else None

    def build(runtime: Runtime) -> Tool:
        return database_tool(
            runtime.tree,
            store=store,
            generator=generator,
            timeout_ms=options.get("timeout"),
            **{name: options[name] for name in ("limit", "readonly") if name in options},
        )

    async with open_runtime(wall_clock=trio.current_time) as runtime:
        try:
            tool = build(runtime)
        except GreenroomError as raised:
            return {"opened": error(raised)}
        ids = Placeholders()
        steps: list[Any] = []
        for step in given["steps"]:
            if is_object(step) and step.get("reopen") is True:
                tool = build(runtime)
                steps.append({"reopened": True})
                continue
            try:
                value = await tool.execute(ids.read(step))
            except GreenroomError as raised:
                steps.append(ids.write(error(raised)))
                continue
            _issue(ids, step, value, generated=generator is None)
            steps.append({"value": ids.write(value)})
        return {"steps": steps}


def _issue(ids: Placeholders, step: Any, value: Any, *, generated: bool) -> None:
    """Give placeholders to the keys of added rows that came without one."""
    if not generated or step.get("operation") not in ("add", "set"):
        return
    rows = step["row"] if is_list(step["row"]) else [step["row"]]
    keys = value["keys"] if "keys" in value else [value["key"]]
    for row, key in zip(rows, keys, strict=True):
        if isinstance(key, str) and key not in [str(cell) for cell in row.values()]:
            ids.issue(key)


OPS = {"database.script": script}
