"""The tool `grep`: a model looks for lines in files."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from greenroom.actors.toolbox.files import Files, Folder, shortened
from greenroom.actors.workspace import WorkspaceManager
from greenroom.runtime.pipeline.handling import Handling
from greenroom.runtime.tools import Tool

__all__ = ["GrepResult", "grep_tool"]

SHOWN: Final = 250
"""How many lines a model is shown."""

SUMMARY: Final = "Finds the lines in which a regular expression matches; shows at most 250."

DESCRIPTION: Final = """\
Finds lines in the text files of the workspace. Arguments:
- `pattern`: an ECMAScript pattern without flags, lookaround and back-references; it is looked for in each line by \
itself, so ^ and $ are the line's ends
- `path`: the folder to look in, or a file; all of the workspace by default
- `include`: one pattern of paths as `glob` has it, as in *.py; other files are passed over

Each line is shown as path:number:text. At most 250 are shown, and long ones cut: look in one folder, or be more exact.
"""


class Grep(Struct):
    pattern: Annotated[str, Meta(min_length=1, description="The regular expression.")]
    path: Folder = "."
    include: Annotated[str, Meta(min_length=1, description="Which paths to look at, as in *.py.")] | UnsetType = UNSET


class Match(Struct, frozen=True, rename="camel"):
    """A line in which the pattern matches, without its line feed; `line_number` counts from 1."""

    path: str
    line_number: int
    line: str


class GrepResult(Struct, frozen=True):
    """All such lines, each once, in the order of the files."""

    matches: list[Match]


def grep_tool(workspaces: WorkspaceManager, *, name: str = "grep") -> Tool:
    """The tool `grep` over the active workspace of a manager. It returns what `GrepResult` spells.

    It raises `ToolError` SEARCH_INVALID_PATTERN, SEARCH_RAW_OUTPUT_OVERFLOW, FS_NOT_FOUND (nothing at `path`), and
    SEARCH_FAILED, also if it takes longer than the manager allows; see `Files`. Cancelled: it ends.
    """
    files = Files(workspaces)

    async def grep(call: Grep) -> Any:
        paths = await files.find(call.path, *(() if call.include is UNSET else (call.include,)))
        found = await files.search(call.pattern, frozenset(paths))
        return msgspec.to_builtins(GrepResult([Match(each.path, each.line, each.content) for each in found]))

    return Tool(
        name,
        grep,
        summary=SUMMARY,
        description=DESCRIPTION,
        parameters=Grep,
        handling=Handling(concurrent=True, returns=GrepResult, render=_rendered),
    )


def _rendered(_arguments: Any, value: Any) -> str:
    matches = value["matches"]
    if not matches:
        return "[No line matches.]"
    shown = [f"{each['path']}:{each['lineNumber']}:{shortened(each['line'])}" for each in matches[:SHOWN]]
    more = [f"[{SHOWN} of {len(matches):,} lines are shown: be more exact.]"] if len(matches) > SHOWN else []
    return "\n".join([*shown, *more])
