"""The tool `write`: a model writes a whole file."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from greenroom.actors.toolbox.files import FilePath, Files
from greenroom.actors.workspace import WorkspaceManager
from greenroom.runtime.pipeline.handling import Card, Handling
from greenroom.runtime.tools import Tool

__all__ = ["WriteResult", "write_tool"]

SUMMARY: Final = "Writes a whole text file, new or in the place of one that you have read."

DESCRIPTION: Final = """\
Writes a text file of the workspace as a whole. Arguments:
- `file_path`: the file, as in src/app.py; folders are made where they are needed
- `content`: all of its text

A file that is there must have been read first, and nobody may have changed it since. To change a part of a file, edit \
it.
"""


class Write(Struct):
    file_path: FilePath
    content: Annotated[str, Meta(description="The whole text.")]


class WriteResult(Struct, frozen=True):
    """The whole text `before` and `after`; null where there was no file."""

    path: str
    operation: Literal["create", "update"]
    before: str | None
    after: str


def write_tool(workspaces: WorkspaceManager, *, name: str = "write") -> Tool:
    """The tool `write` over the active workspace of a manager. It returns what `WriteResult` spells.

    Before it writes it asks by the event `fs/write-intent` what must be there; without a listener, whatever is there is
    written over but for what a directory refuses itself. It raises `ToolError` FS_STALE_VERSION, FS_NOT_REGULAR_FILE,
    FS_NOT_TEXT, FS_TOO_LARGE, FS_PATH, FS_FAILED; see `Files`.
    """
    files = Files(workspaces)

    async def write(call: Write) -> Any:
        before, after = await files.write(call.file_path, call.content)
        operation: Literal["create", "update"] = "create" if before is None else "update"
        return msgspec.to_builtins(WriteResult(call.file_path, operation, before, after))

    return Tool(
        name,
        write,
        summary=SUMMARY,
        description=DESCRIPTION,
        parameters=Write,
        handling=Handling(returns=WriteResult, render=_rendered, present_call=_card),
    )


def _card(arguments: Any) -> Card:
    return Card(f"write {arguments['file_path']}", arguments["content"])


def _rendered(_arguments: Any, value: Any) -> str:
    done = "Created" if value["operation"] == "create" else "Updated"
    return f"{done} {value['path']}, {len(value['after'].encode()):,} bytes."
