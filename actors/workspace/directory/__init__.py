"""A directory as a workspace: confined to it, saved atomically, and careful with what others change."""

from greenroom.actors.workspace.directory.paths import PRIVATE
from greenroom.actors.workspace.directory.workspace import DirectoryWorkspace, Limits

__all__ = ["PRIVATE", "DirectoryWorkspace", "Limits"]
