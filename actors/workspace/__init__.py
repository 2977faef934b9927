"""Workspaces: files that agents edit, in memory or in a directory, each behind an actor of its own."""

from greenroom.actors.workspace.directory import PRIVATE, DirectoryWorkspace, Limits
from greenroom.actors.workspace.manager import WorkspaceManager
from greenroom.actors.workspace.store import WORKSPACES, MemoryWorkspaceStore, TableWorkspaceStore, WorkspaceStore
from greenroom.actors.workspace.workspace import Workspace

__all__ = [
    "PRIVATE",
    "WORKSPACES",
    "DirectoryWorkspace",
    "Limits",
    "MemoryWorkspaceStore",
    "TableWorkspaceStore",
    "Workspace",
    "WorkspaceManager",
    "WorkspaceStore",
]
