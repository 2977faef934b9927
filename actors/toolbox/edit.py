"""The tool `edit`: a model replaces a text in a file."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from greenroom.actors.toolbox.files import FilePath, Files
from greenroom.actors.workspace import WorkspaceManager
from greenroom.runtime.pipeline.handling import Card, Handling
from greenroom.runtime.tools import Tool

__all__ = ["EditResult", "edit_tool"]

SUMMARY: Final = "Replaces a text in a file that you have read, where it is once, or everywhere."

DESCRIPTION: Final = """\
Replaces a text in a file of the workspace. Arguments:
- `file_path`: the file, as in src/app.py
- `old_string`: what is replaced, exactly as it is in the file, without the line numbers that `read` shows
- `new_string`: what takes its place, as it stands
- `replace_all`: true to replace it everywhere; otherwise it must be there once, so say enough of what is around it

The file must have been read first, and nobody may have changed it since.
"""


class Edit(Struct):
    file_path: FilePath
    old_string: Annotated[str, Meta(description="What is replaced, exactly as it is in the file.")]
    new_string: Annotated[str, Meta(description="What takes its place.")]
    replace_all: Annotated[bool, Meta(description="Whether it is replaced everywhere; false by default.")] = False


class EditResult(Struct, frozen=True):
    """The whole text `before` and `after`."""

    path: str
    before: str
    after: str


def edit_tool(workspaces: WorkspaceManager, *, name: str = "edit") -> Tool:
    """The tool `edit` over the active workspace of a manager. It returns what `EditResult` spells.

    Before it edits it asks by the event `fs/edit-intent` what must be there. It raises `ToolError` FS_EDIT_NOT_FOUND,
    FS_AMBIGUOUS_EDIT, FS_NOT_FOUND, FS_NOT_OBSERVED, FS_STALE_VERSION, FS_NOT_REGULAR_FILE, FS_NOT_TEXT, FS_TOO_LARGE,
    FS_PATH, FS_FAILED; see `Files`.
    """
    files = Files(workspaces)

    async def edit(call: Edit) -> Any:
        before, after = await files.edit(call.file_path, call.old_string, call.new_string, replace_all=call.replace_all)
        return msgspec.to_builtins(EditResult(call.file_path, before or "", after))

    return Tool(
        name,
        edit,
        summary=SUMMARY,
        description=DESCRIPTION,
        parameters=Edit,
        handling=Handling(returns=EditResult, render=_rendered, present_call=_card),
    )


def _card(arguments: Any) -> Card:
    where = "everywhere" if arguments.get("replace_all") else "once"
    return Card(
        f"edit {arguments['file_path']}, {where}",
        "\n".join(
            f"{mark} {line}"
            for mark, text in (("-", arguments["old_string"]), ("+", arguments["new_string"]))
            for line in text.split("\n")
        ),
    )


def _rendered(_arguments: Any, value: Any) -> str:
    return f"Edited {value['path']}."
