"""What an agent has to go by: system prompt, instructions, tools, files and conversations, and the prompt of it all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import final

from msgspec import structs

from greenroom.actors.agent.conversation import Conversation
from greenroom.actors.agent.conversations import ConversationManager
from greenroom.actors.workspace import WorkspaceManager
from greenroom.protocol.agents import ChatMessage, InstructionManager, PromptFormat, Scope
from greenroom.protocol.tools import ToolDefinition
from greenroom.protocol.workspace.files import IMAGES, BinaryContent, File, TextContent
from greenroom.runtime.tools import Tool, ToolManager

__all__ = ["AgentContext"]


@final
class AgentContext:
    """All that an agent's prompt is made of. What is not given is made empty; without `workspaces` there are no files.

    `scope` narrows what the model sees of instructions, tools and files, never of the conversation.
    """

    def __init__(
        self,
        *,
        system: str | None = None,
        tools: ToolManager | Iterable[Tool] = (),
        instructions: InstructionManager | None = None,
        workspaces: WorkspaceManager | None = None,
        conversations: ConversationManager | None = None,
        scope: Scope | None = None,
    ) -> None:
        self.system = system
        if isinstance(tools, ToolManager):
            self.tools = tools
        else:
            self.tools = ToolManager()
            self.tools.add(tools)
        self.instructions = instructions or InstructionManager()
        self.workspaces = workspaces
        self.conversations = conversations or ConversationManager()
        self.pinned: frozenset[str] = frozenset()
        """The names of tools that no scope hides."""
        self._scope = scope
        if self.conversations.active is None:
            self.conversations.add()

    @property
    def messages(self) -> Conversation:
        """The active conversation; a new one, if none is."""
        return self.conversations.active or self._begin()

    def _begin(self) -> Conversation:
        added = self.conversations.add()
        self.conversations.switch(added.id)
        return added

    @property
    def scope(self) -> Scope | None:
        """What is let through; `None` for everything."""
        return self._scope

    def apply(self, scope: Scope | None) -> None:
        """From now on let this through."""
        self._scope = scope

    def definitions(self) -> list[ToolDefinition]:
        """The tools that are offered now."""
        offered = self.tools.definitions()
        names = None if self._scope is None else self._scope.tools
        return (
            offered if names is None else [each for each in offered if each.name in names or each.name in self.pinned]
        )

    async def build(
        self, format: PromptFormat | None = None, *, conversation: Conversation | None = None
    ) -> list[ChatMessage]:
        """The prompt as it is now: the system message, if there is anything in it, and the conversation.

        `format` is the provider's wish for instructions. The images of the active workspace go with the last message of
        the user. Raises what the workspace raises.
        """
        conversation = conversation or self.messages
        scope = self._scope
        instructions = self.instructions.section(None if scope is None else scope.instructions, format)
        files = await self._files()
        parts = [part for part in (self.system, instructions, _texts(files)) if part is not None]
        prompt = conversation.view()
        if images := _images(files):
            _attach(prompt, images)
        if parts:
            prompt.insert(0, ChatMessage(f"{conversation.id}/system", "system", "\n\n".join(parts)))
        return prompt

    async def _files(self) -> Sequence[File]:
        workspace = None if self.workspaces is None else self.workspaces.active
        if workspace is None:
            return ()
        files = await workspace.files()
        seen = None if self._scope is None else self._scope.files
        return files if seen is None else [file for file in files if file.path in seen]


def _texts(files: Iterable[File]) -> str | None:
    texts = [f"File: {file.path}\n{_fenced(file.content)}" for file in files if isinstance(file.content, TextContent)]
    return "\n\n".join(["## Workspace", *texts]) if texts else None


def _fenced(content: TextContent) -> str:
    """The text between fences that are longer than any in it."""
    fence = "```"
    while fence in content.text:
        fence += "`"
    return f"{fence}{content.language}\n{content.text}\n{fence}"


def _images(files: Iterable[File]) -> tuple[str, ...]:
    contents = [file.content for file in files]
    return tuple(each.data for each in contents if isinstance(each, BinaryContent) and each.mime in IMAGES)


def _attach(prompt: list[ChatMessage], images: tuple[str, ...]) -> None:
    for index in range(len(prompt) - 1, -1, -1):
        message = prompt[index]
        if message.role == "user":
            prompt[index] = structs.replace(message, images=(*message.images, *images))
            return
