"""The tool `workspace`: a model reads, searches and edits the files of the workspace that is active."""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias, assert_never

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from greenroom.actors.workspace import Workspace, WorkspaceManager
from greenroom.protocol.workspace import File, SearchMatch, range_of
from greenroom.protocol.workspace.positions import Position, position_of, refuse_halves, surrogate_error
from greenroom.protocol.workspace.slicing import find_lone_surrogate
from greenroom.runtime.tools import Tool

__all__ = ["workspace_tool"]

SUMMARY: Final = "Reads, searches and edits files of a workspace, by `operation`; see describe({name!r})."

DESCRIPTION: Final = """\
Reads, searches and edits text files. Each call has an `operation` and what it needs:
- `read` {path}: the text; null if there is none
- `list`: every file with path, state, size in bytes, number of lines, and whether it is text or binary
- `has` {path}: true or false
- `search` {query, regex?, sensitive?, limit?}: matches within lines, each with path, line, column, length and the line
- `replace` {query, replacement, regex?, sensitive?, limit?}: replaces matches in all files
- `write` {path, content}: the whole text of a file, new or not
- `splice` {path, content, fromLine, fromColumn, toLine, toColumn}: puts text in the place of a range
- `prepend`, `append` {path, content}: puts text before or after what is there
- `move` {from, to}, `remove` {path}
- `workspaces`: which workspaces there are; `switch` {id}: makes another one the active one

Lines and columns count from 1; the range of a splice ends before toLine:toColumn, so that equal ends insert. \
A column is a UTF-16 code unit: most characters take one, emoji two.

A query is plain text unless `regex` is true; then it is an ECMAScript pattern without flags, lookaround and \
back-references. `sensitive` is true unless it is given. `search` looks at each line by itself, `replace` at the \
whole text, where ^ and $ are its ends. The replacement is taken as it stands: $1 is no group. `limit` counts over \
all files.

Line ends are kept as they are. In a file whose lines end with CRLF, \\r is the last character of each line: write \
\\r\\n in what you put in, and in a query of `replace` that spans lines.

If a file was changed by somebody else since you last read it, an edit of it is refused: read it again. Binary files \
can be listed, moved and removed.

Example: {"operation": "splice", "path": "notes.txt", "content": "done", "fromLine": 2, "fromColumn": 1, "toLine": 2, \
"toColumn": 5} replaces the first four characters of line 2.
"""

UNDO: Final = """\

`undo` puts back everything that the last changing call of this workspace did. It can be repeated.
"""

_Path: TypeAlias = Annotated[str, Meta(description="The file's path, as it is listed.")]
_Content: TypeAlias = Annotated[str, Meta(description="The text.")]
_Text: TypeAlias = Annotated[str, Meta(description="What to look for: plain text, or a pattern with `regex`.")]
_Regex: TypeAlias = Annotated[bool, Meta(description="Whether the query is an ECMAScript pattern; false by default.")]
_Sensitive: TypeAlias = Annotated[bool, Meta(description="Whether upper and lower case differ; true by default.")]
_Limit: TypeAlias = Annotated[int, Meta(ge=1, description="How many matches at most, over all files.")]
_Number: TypeAlias = Annotated[int, Meta(ge=1, description="Counts from 1.")]


class Read(Struct, tag_field="operation", tag="read"):
    """Returns a file's text."""

    path: _Path


class List(Struct, tag_field="operation", tag="list"):
    """Lists all files."""


class Has(Struct, tag_field="operation", tag="has"):
    """Tells whether there is a file."""

    path: _Path


class Search(Struct, tag_field="operation", tag="search"):
    """Finds matches within lines."""

    query: _Text
    regex: _Regex | UnsetType = UNSET
    sensitive: _Sensitive | UnsetType = UNSET
    limit: _Limit | UnsetType = UNSET


class Replace(Struct, tag_field="operation", tag="replace"):
    """Replaces matches in all files."""

    query: _Text
    replacement: Annotated[str, Meta(description="What takes their place, as it stands.")]
    regex: _Regex | UnsetType = UNSET
    sensitive: _Sensitive | UnsetType = UNSET
    limit: _Limit | UnsetType = UNSET


class Write(Struct, tag_field="operation", tag="write"):
    """Writes a whole file."""

    path: _Path
    content: _Content


class Splice(Struct, tag_field="operation", tag="splice", rename="camel"):
    """Puts text in the place of a range."""

    path: _Path
    content: _Content
    from_line: _Number
    from_column: _Number
    to_line: _Number
    to_column: _Number


class Prepend(Struct, tag_field="operation", tag="prepend"):
    """Puts text before what is there."""

    path: _Path
    content: _Content


class Append(Struct, tag_field="operation", tag="append"):
    """Puts text after what is there."""

    path: _Path
    content: _Content


class Move(Struct, tag_field="operation", tag="move"):
    """Moves a file, in place of one that may be there."""

    source: Annotated[str, Meta(description="Where the file is.")] = msgspec.field(name="from")
    target: Annotated[str, Meta(description="Where it is to be.")] = msgspec.field(name="to")


class Remove(Struct, tag_field="operation", tag="remove"):
    """Removes a file."""

    path: _Path


class Workspaces(Struct, tag_field="operation", tag="workspaces"):
    """Lists the workspaces."""


class Switch(Struct, tag_field="operation", tag="switch"):
    """Makes another workspace the active one."""

    id: Annotated[str, Meta(description="The workspace's id, as it is listed.")]


class Undo(Struct, tag_field="operation", tag="undo"):
    """Puts back what the last changing call did."""


_Looking: TypeAlias = Read | List | Has | Search
_Changing: TypeAlias = Replace | Write | Splice | Prepend | Append | Move | Remove
_Operation: TypeAlias = (
    Read | List | Has | Search | Replace | Write | Splice | Prepend | Append | Move | Remove | Workspaces | Switch
)


def workspace_tool(
    workspaces: WorkspaceManager, *, name: str = "workspace", description: str | None = None, undo: bool = False
) -> Tool:
    """The tool `workspace` over the workspaces of a manager: all but two operations are on the one that is active.

    Where none is, looking finds nothing, and an operation that changes something first adds a workspace in memory.
    With `undo` there is an operation of that name. It raises `ToolError` TOOL for a call that spells no operation, and
    `WorkspaceError` as the workspace does; SURROGATE (context `path`, `line`, `column`) where it would have to return,
    or to name, a text with half of a character, which JSON in UTF-8 cannot hold.
    """

    async def perform(call: _Operation | Undo) -> Any:
        _refuse_surrogates(call)
        if isinstance(call, Workspaces):
            active = workspaces.active
            return [
                {"id": each.id, "files": await each.count(), "active": each is active}
                for each in workspaces.workspaces()
            ]
        if isinstance(call, Switch):
            found = workspaces.switch(call.id)
            files = {} if found is None else {"files": await found.count()}
            return {"id": call.id, "switched": found is not None, **files}
        workspace = workspaces.active
        if isinstance(call, Undo):
            paths = () if workspace is None else await workspace.undo()
            return {"undone": bool(paths), "paths": list(paths)}
        if isinstance(call, _Looking):
            return _nothing(call) if workspace is None else await _look(workspace, call)
        return await _change(workspaces.add() if workspace is None else workspace, call)

    return Tool(
        name,
        perform,
        summary=SUMMARY.format(name=name),
        description=DESCRIPTION + (UNDO if undo else "") if description is None else description,
        parameters=_Operation | Undo if undo else _Operation,
    )


async def _look(workspace: Workspace, call: _Looking) -> Any:
    match call:
        case Read(path):
            text = await workspace.read(path)
            if text is not None:
                refuse_halves(path, text)
            return text
        case List():
            infos = list(await workspace.infos())
            for info in infos:
                refuse_halves(info.path, info.path)
            return msgspec.to_builtins(infos)
        case Has(path):
            return await workspace.has(path)
        case Search():
            matches = await workspace.search(call.query, **_options(call))
            for match in matches:
                _refuse_match(match)
            return msgspec.to_builtins(matches)
        case _:
            assert_never(call)


async def _change(workspace: Workspace, call: _Changing) -> Any:
    match call:
        case Replace():
            return msgspec.to_builtins(await workspace.replace(call.query, call.replacement, **_options(call)))
        case Write(path, content):
            return _written(await workspace.write(path, content))
        case Splice(path, content):
            range = range_of(call.from_line, call.from_column, call.to_line, call.to_column)
            return _written(await workspace.write(path, content, range), content)
        case Prepend(path, content):
            return _written(await workspace.prepend(path, content), content)
        case Append(path, content):
            return _written(await workspace.append(path, content), content)
        case Move(source, target):
            return {"from": source, "to": target, "moved": await workspace.move(source, target)}
        case Remove(path):
            return {"path": path, "removed": await workspace.remove(path)}
        case _:
            assert_never(call)


def _nothing(call: _Looking) -> Any:
    """What a call finds where no workspace is active."""
    match call:
        case Read():
            return None
        case Has():
            return False
        case _:
            return []


def _options(call: Search | Replace) -> dict[str, Any]:
    options = {"regex": call.regex, "sensitive": call.sensitive, "limit": call.limit}
    return {option: value for option, value in options.items() if value is not UNSET}


def _written(file: File, content: str = "") -> dict[str, str]:
    told: dict[str, str] = {"path": file.path, "state": file.state}
    if "\n" in content.replace("\r\n", "") and "\r\n" in (file.text or ""):
        told["note"] = "Lines of this file end with CRLF, but lines of this content with LF, and so they were put in."
    return told


def _refuse_surrogates(call: Struct) -> None:
    """Nothing may be done before it is known that its result can be told."""
    for field in ("path", "source", "target", "id"):
        value = getattr(call, field, "")
        refuse_halves(value, value)


def _refuse_match(match: SearchMatch) -> None:
    refuse_halves(match.path, match.path)
    at = find_lone_surrogate(match.content)
    if at is not None:
        raise surrogate_error(match.path, Position(match.line, position_of(match.content, at).column))
