"""All tools on the files of a workspace together."""

from __future__ import annotations

from greenroom.actors.toolbox.edit import edit_tool
from greenroom.actors.toolbox.glob import glob_tool
from greenroom.actors.toolbox.grep import grep_tool
from greenroom.actors.toolbox.read import read_tool
from greenroom.actors.toolbox.write import write_tool
from greenroom.actors.workspace import WorkspaceManager
from greenroom.runtime.tools import Tool

__all__ = ["file_tools"]


def file_tools(workspaces: WorkspaceManager) -> list[Tool]:
    """The tools `read`, `write`, `edit`, `glob` and `grep` over the active workspace of a manager.

    With `observation_policy(runtime.bus)` nobody changes by them what they have not seen as it is.
    """
    return [make(workspaces) for make in (read_tool, write_tool, edit_tool, glob_tool, grep_tool)]
