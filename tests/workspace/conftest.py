"""One runtime a test, with a manager of workspaces and its tool."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

import msgspec
import pytest

from greenroom.actors.system import open_runtime
from greenroom.actors.toolbox import workspace_tool
from greenroom.actors.workspace import Workspace, WorkspaceManager
from greenroom.protocol.errors import GreenroomError
from greenroom.protocol.workspace import BinaryContent, File, create_file

__all__ = ["PNG", "Desk", "texts"]

PNG = create_file("pic.png", BinaryContent("AAAA", "image/png"))


def texts(**files: str) -> list[File]:
    """Files by the letters of their names."""
    return [create_file(path, text) for path, text in files.items()]


class Desk:
    """A manager and its tool, as a model sees them."""

    def __init__(self, workspaces: WorkspaceManager) -> None:
        self.workspaces = workspaces
        self.tool = workspace_tool(workspaces)

    def seed(self, files: Iterable[File] = (), id: str = "w") -> Workspace:
        return self.workspaces.add(id, files)

    @property
    def active(self) -> Workspace:
        workspace = self.workspaces.active
        assert workspace is not None
        return workspace

    async def call(self, operation: str, **args: Any) -> Any:
        """What the tool returns; in the name of an argument, `_` at the end is left out."""
        return await self.tool.execute({"operation": operation, **{name.rstrip("_"): args[name] for name in args}})

    async def refused(self, operation: str, **args: Any) -> tuple[str, dict[str, Any]]:
        """Code and context of the error that the tool raises."""
        with pytest.raises(GreenroomError) as caught:
            await self.call(operation, **args)
        return caught.value.code, caught.value.context

    async def places(self, query: str, **options: Any) -> list[tuple[int, int, int]]:
        """Line, column and length of each match."""
        matches = await self.call("search", query=query, **options)
        return [(match["line"], match["column"], match["length"]) for match in matches]

    async def contents(self) -> Any:
        """All files of the active workspace, as JSON."""
        return msgspec.to_builtins(await self.active.files())


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with open_runtime() as runtime:
        yield Desk(WorkspaceManager(runtime.tree))
