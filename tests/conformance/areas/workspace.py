"""Workspaces: scripts of calls of the workspace tool, over workspaces in memory."""

from __future__ import annotations

from typing import Any

import msgspec

from greenroom.actors.system import open_runtime
from greenroom.actors.toolbox.workspace import workspace_tool
from greenroom.actors.workspace import WorkspaceManager
from greenroom.protocol.errors import GreenroomError
from greenroom.protocol.workspace import BinaryContent, File, create_file
from greenroom.runtime.tools import Tool
from tests.conformance.recorded import Placeholders, error
from tests.conformance.values import is_object


async def script(given: Any) -> Any:
    async with open_runtime() as runtime:
        workspaces = WorkspaceManager(runtime.tree)
        for workspace in given.get("workspaces", []):
            workspaces.add(workspace["id"], map(_seed, workspace["files"]))
        tool, ids = workspace_tool(workspaces), Placeholders()
        known = {workspace["id"] for workspace in given.get("workspaces", [])}
        steps: list[Any] = []
        for step in given["steps"]:
            if is_object(step) and "id" in step:  # in a replacement, `$1` is a text
                step = {**step, "id": ids.read(step["id"])}
            told = await _called(tool, step)
            for workspace in workspaces.workspaces():
                if workspace.id not in known:
                    ids.issue(workspace.id)
            steps.append(ids.write(told))
        active = workspaces.active
        files = () if active is None else await active.files()
    return {
        "steps": steps,
        "order": [file.path for file in files],
        "files": None if active is None else {file.path: _told(file) for file in files},
    }


async def _called(tool: Tool, args: Any) -> Any:
    try:
        return {"value": await tool.execute(args)}
    except GreenroomError as raised:
        return error(raised)


def _seed(file: Any) -> File:
    content = file["text"] if "text" in file else BinaryContent(file["data"], file["mime"])
    return create_file(file["path"], content)


def _told(file: File) -> Any:
    told = msgspec.to_builtins(file)
    content = told.pop("content")
    content.pop("data", None)
    del told["path"]
    return {**content, **told}


OPS = {"workspace.script": script}
