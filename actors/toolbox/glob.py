"""The tool `glob`: a model looks for files by their paths."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from greenroom.actors.toolbox.files import Files, Folder
from greenroom.actors.workspace import WorkspaceManager
from greenroom.runtime.pipeline.handling import Handling
from greenroom.runtime.tools import Tool

__all__ = ["GlobResult", "glob_tool"]

SHOWN: Final = 100
"""How many paths a model is shown."""

SUMMARY: Final = "Finds files by a pattern of their paths, as in src/**/*.py; shows at most 100."

DESCRIPTION: Final = """\
Finds files of the workspace by their paths. Arguments:
- `pattern`: `*` is any run of characters of a name and `?` any one, `**` any number of folders, `[a-z]` one of these \
characters, `[!a-z]` one that is none of them, `{py,md}` either of two; a backslash takes the next character as it is. \
A pattern without a slash is about names, in every folder: *.py
- `path`: the folder that it begins in; all of the workspace by default

Paths are given as the other tools take them. At most 100 are shown: look in one folder, or be more exact.
"""


class Glob(Struct):
    pattern: Annotated[str, Meta(min_length=1, description="The pattern of the paths, as in src/**/*.py.")]
    path: Folder = "."


class GlobResult(Struct, frozen=True):
    """All paths that fit, each from the top of the workspace; `root` is the folder that was looked in."""

    root: str
    paths: list[str]


def glob_tool(workspaces: WorkspaceManager, *, name: str = "glob") -> Tool:
    """The tool `glob` over the active workspace of a manager. It returns what `GlobResult` spells.

    It raises `ToolError` SEARCH_INVALID_PATTERN, FS_NOT_FOUND (no such folder), SEARCH_FAILED; see `Files`.
    """
    files = Files(workspaces)

    async def glob(call: Glob) -> Any:
        return msgspec.to_builtins(GlobResult(call.path, await files.find(call.path, call.pattern)))

    return Tool(
        name,
        glob,
        summary=SUMMARY,
        description=DESCRIPTION,
        parameters=Glob,
        handling=Handling(concurrent=True, returns=GlobResult, render=_rendered),
    )


def _rendered(_arguments: Any, value: Any) -> str:
    paths = value["paths"]
    if not paths:
        return "[No file fits.]"
    more = [f"[{SHOWN} of {len(paths):,} are shown: be more exact.]"] if len(paths) > SHOWN else []
    return "\n".join([*paths[:SHOWN], *more])
