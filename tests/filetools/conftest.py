"""Agents that call the tools on files: each an actor that runs what it is told to run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from greenroom.actors.system import Runtime, open_runtime
from greenroom.actors.toolbox import file_tools
from greenroom.actors.workspace import Limits, Workspace, WorkspaceManager
from greenroom.protocol.errors import GreenroomError
from greenroom.protocol.tools import ToolCall, ToolSuccess
from greenroom.protocol.workspace import BinaryContent, create_file
from greenroom.runtime.actor import Actor, handles
from greenroom.runtime.messages import Request
from greenroom.runtime.policies import observation_policy
from greenroom.runtime.ref import Ref
from greenroom.runtime.tools import ToolManager

__all__ = ["Desk", "Party"]


class Use(Request[Any], frozen=True):
    """Call a tool; its value."""

    name: str
    args: dict[str, Any]


class Party(Actor):
    """Somebody who calls tools."""

    def __init__(self, tools: ToolManager) -> None:
        super().__init__()
        self._tools = tools

    @handles(Use)
    async def use(self, message: Use) -> Any:
        return await self._tools.run(message.name, message.args)


class Desk:
    """A runtime with the five tools, and parties `ada` and `bob`; what is not said to be theirs the program does."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.workspaces = WorkspaceManager(runtime.tree)
        self.tools = runtime.tools
        self.tools.add(file_tools(self.workspaces))
        self.parties = {name: self.party(name) for name in ("ada", "bob")}

    def party(self, name: str) -> Ref:
        return self.runtime.spawn(Party(self.tools), name)

    def observe(self) -> None:
        observation_policy(self.runtime.bus)

    def seed(self, files: dict[str, str | BinaryContent]) -> Workspace:
        """A workspace in memory."""
        return self.workspaces.add("w", [create_file(path, content) for path, content in files.items()])

    async def mount(self, root: Path, **limits: int) -> Workspace:
        return await self.workspaces.mount(root, "d", limits=Limits(**limits))

    async def call(self, name: str, by: str | None = None, **args: Any) -> Any:
        if by is None:
            return await self.tools.run(name, args)
        return await self.parties[by].ask(Use(name, args))

    async def refused(self, name: str, by: str | None = None, **args: Any) -> str:
        """The code of what the call raises, which says what to do."""
        with pytest.raises(GreenroomError) as caught:
            await self.call(name, by, **args)
        assert len(caught.value.message.split(". ")) > 1 or ":" in caught.value.message, caught.value.message
        caught.value.message.encode()
        return caught.value.code

    async def shown(self, name: str, **args: Any) -> str:
        """The text that a model gets."""
        call = ToolCall("1", name, args)
        result = await self.tools.execute(call)
        assert isinstance(result, ToolSuccess), result
        return self.tools.rendered(call, result.value)


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with open_runtime() as runtime:
        yield Desk(runtime)
