"""Workspaces: files under paths, how they are edited and searched, and one that lives in memory."""

from greenroom.protocol.workspace.changes import WORKSPACE_EVENTS, Announce, Change, Cleared, Moved, Removed, Written
from greenroom.protocol.workspace.editing import Edited
from greenroom.protocol.workspace.files import (
    BinaryContent,
    File,
    FileInfo,
    FileState,
    TextContent,
    create_file,
    infer_language,
    is_binary,
    is_text,
)
from greenroom.protocol.workspace.globs import Glob, compile_glob
from greenroom.protocol.workspace.matching import Query
from greenroom.protocol.workspace.memory import MemoryWorkspace
from greenroom.protocol.workspace.positions import Position, Range, range_of
from greenroom.protocol.workspace.searching import ReplaceResult, SearchMatch, search_files
from greenroom.protocol.workspace.snapshot import Snapshot, parse_snapshot

__all__ = [
    "WORKSPACE_EVENTS",
    "Announce",
    "BinaryContent",
    "Change",
    "Cleared",
    "Edited",
    "File",
    "FileInfo",
    "FileState",
    "Glob",
    "MemoryWorkspace",
    "Moved",
    "Position",
    "Query",
    "Range",
    "Removed",
    "ReplaceResult",
    "SearchMatch",
    "Snapshot",
    "TextContent",
    "Written",
    "compile_glob",
    "create_file",
    "infer_language",
    "is_binary",
    "is_text",
    "parse_snapshot",
    "range_of",
    "search_files",
]
