"""The tool `read`: a model reads the lines of a file."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from greenroom.actors.toolbox.files import FilePath, Files, shortened
from greenroom.actors.workspace import WorkspaceManager
from greenroom.runtime.pipeline.handling import Handling
from greenroom.runtime.tools import Tool

__all__ = ["ReadResult", "read_tool"]

LINES: Final = 2000
"""How many lines one call gives at most."""

SUMMARY: Final = "Reads a text file, with numbered lines: at most 2,000 of them from `offset` on."

DESCRIPTION: Final = """\
Reads a text file of the workspace. Arguments:
- `file_path`: the file, as in src/app.py
- `offset`: the line to begin with, counted from 1
- `limit`: how many lines, at most 2,000

Each line comes with its number and a tab before it, which are no part of it. A last line that is empty means that the \
text ends with a line feed. Long lines are cut, with a notice; lines that end with CRLF are shown without it, and a \
notice says so. Read a file before you write or edit it.
"""


class Read(Struct):
    file_path: FilePath
    offset: Annotated[int, Meta(ge=1, description="The first line, counted from 1.")] = 1
    limit: Annotated[int, Meta(ge=1, le=LINES, description="How many lines at most.")] = LINES


class Line(Struct, frozen=True):
    """One line without its line feed; `number` counts from 1."""

    number: int
    text: str


class ReadResult(Struct, frozen=True, rename="camel"):
    """The lines from `offset` on, of `total_lines` in all."""

    path: str
    offset: int
    lines: list[Line]
    total_lines: int


def read_tool(workspaces: WorkspaceManager, *, name: str = "read") -> Tool:
    """The tool `read` over the active workspace of a manager. It returns what `ReadResult` spells.

    It raises `ToolError` FS_NOT_FOUND, FS_NOT_REGULAR_FILE (a folder, a link), FS_NOT_TEXT, FS_TOO_LARGE, FS_PATH,
    FS_FAILED; see `Files`.
    """
    files = Files(workspaces)

    async def read(call: Read) -> Any:
        def look(text: str) -> ReadResult:
            start = call.offset - 1
            end = start + call.limit
            lines = text.split("\n", end)[start:end] if text else []
            shown = [Line(number, line) for number, line in enumerate(lines, call.offset)]
            return ReadResult(call.file_path, call.offset, shown, text.count("\n") + 1 if text else 0)

        return msgspec.to_builtins(await files.read(call.file_path, look))

    return Tool(
        name,
        read,
        summary=SUMMARY,
        description=DESCRIPTION,
        parameters=Read,
        handling=Handling(concurrent=True, returns=ReadResult, render=_rendered),
    )


def _rendered(_arguments: Any, value: Any) -> str:
    lines, total, offset = value["lines"], value["totalLines"], value["offset"]
    text = [f"{line['number']}\t{shortened(line['text'])}" for line in lines]
    end = offset + len(lines) - 1
    if not total:
        text.append("[The file is empty.]")
    elif not lines:
        text.append(f"[The file has {total:,} lines, so there is none from {offset} on.]")
    elif end < total:
        text.append(f"[Lines {offset} to {end} of {total}: read on with offset {end + 1}.]")
    if any(line["text"].endswith("\r") for line in lines):
        text.append(r"[Lines of this file end with CRLF: write \r\n for each where you edit several of them.]")
    return "\n".join(text)
