"""What a model is told: the system message, the conversation, the files; and how a long conversation is folded."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import pytest

from greenroom.actors.agent import AgentContext, ConversationManager
from greenroom.actors.workspace import WorkspaceManager
from greenroom.protocol.agents import (
    ChatMessage,
    Instruction,
    InstructionManager,
    MessageInput,
    PromptFormat,
    ProviderResult,
    Scope,
    ScopeManager,
    Window,
    estimate_messages,
    estimate_tokens,
)
from greenroom.protocol.tools import ToolCall
from greenroom.protocol.workspace import BinaryContent, create_file
from greenroom.runtime.tree import Tree, run_tree
from tests.agents.conftest import Stage, calling, value_tool


async def recap(messages: Sequence[ChatMessage]) -> str:
    return f"recap of {len(messages)}"


@pytest.fixture
async def tree() -> AsyncIterator[Tree]:
    async with run_tree() as tree:
        yield tree


async def system(context: AgentContext, format: PromptFormat | None = None) -> str | None:
    """The system message, if there is one."""
    prompt = await context.build(format)
    return prompt[0].content if prompt and prompt[0].role == "system" else None


INSTRUCTIONS = [Instruction("a", "A", 1), Instruction("b", "B", 2)]


@pytest.mark.case("agents", 33)
async def test_the_system_message_has_its_parts_in_order() -> None:
    context = AgentContext(system="S", instructions=InstructionManager(INSTRUCTIONS))
    assert await system(context) == "S\n\n## Instructions\n\nB\n\nA"
    assert await system(AgentContext(system="")) == ""
    assert await AgentContext().build() == []


async def test_formats_are_asked_from_the_nearest_outwards() -> None:
    own = Instruction("own", "o", 3, format=lambda each: f"own {each.content}")
    manager = InstructionManager([own, *INSTRUCTIONS], format=PromptFormat(item=lambda each: f"* {each.content}"))
    context = AgentContext(instructions=manager)
    provider = PromptFormat("# Rules", lambda each: f"- {each.content}", "That is all.")
    assert await system(context, provider) == "# Rules\n\nown o\n\n* B\n\n* A\n\nThat is all."
    assert manager.count == 3
    manager.clear()
    assert await system(context, provider) is None


async def test_a_scope_hides_instructions_tools_and_files_but_no_messages(tree: Tree) -> None:
    workspaces = WorkspaceManager(tree)
    workspaces.add("w", [create_file("a.py", "x"), create_file("b.py", "y")])
    context = AgentContext(
        tools=[value_tool("e"), value_tool("f")],
        instructions=InstructionManager(INSTRUCTIONS),
        workspaces=workspaces,
        scope=Scope("s", instructions=("a",), tools=("f",), files=("b.py",)),
    )
    context.messages.add(MessageInput("user", "hello"))
    assert await system(context) == "## Instructions\n\nA\n\n## Workspace\n\nFile: b.py\n```python\ny\n```"
    assert [tool.name for tool in context.definitions()] == ["f"]
    assert (await context.build())[-1].content == "hello"
    context.apply(None)
    assert len(context.definitions()) == 2


async def test_images_go_with_the_last_message_of_the_user(tree: Tree) -> None:
    workspaces = WorkspaceManager(tree)
    workspaces.add("w", [create_file("p.png", BinaryContent("BBBB", "image/png"))])
    context = AgentContext(workspaces=workspaces)
    assert await context.build() == []
    context.messages.add([MessageInput("user", "look", images=("AAAA",)), MessageInput("assistant", "I see")])
    user, assistant = await context.build()
    assert user.images == ("AAAA", "BBBB")
    assert assistant.images == ()
    assert context.messages.messages()[0].images == ("AAAA",)


async def test_a_text_with_a_fence_in_it_is_fenced_by_a_longer_one(tree: Tree) -> None:
    workspaces = WorkspaceManager(tree)
    workspaces.add("w", [create_file("a.md", "```\ncode\n```")])
    assert (await system(AgentContext(workspaces=workspaces)) or "").endswith("````markdown\n```\ncode\n```\n````")


async def test_there_is_always_a_conversation() -> None:
    conversations = ConversationManager()
    context = AgentContext(conversations=conversations)
    first = context.messages
    conversations.clear()
    assert context.messages is not first
    kept = conversations.add("kept")
    conversations.switch("kept")
    assert context.messages is kept


def test_changes_of_instructions_and_scopes_are_announced_and_misses_are_not() -> None:
    events: list[object] = []
    instructions = InstructionManager(
        on={
            "add": lambda each: events.append(("add", each.name)),
            "remove": lambda name: events.append(("remove", name)),
            "clear": lambda: events.append("clear"),
        }
    )
    instructions.add(INSTRUCTIONS)
    assert instructions.remove("a")
    assert not instructions.remove("a")
    instructions.clear()
    instructions.clear()
    assert events == [("add", "a"), ("add", "b"), ("remove", "a"), "clear"]
    events.clear()
    scopes = ScopeManager(
        on={
            "create": lambda scope: events.append(scope.name),
            "remove": events.append,
            "clear": lambda: events.append("clear"),
        }
    )
    scope = scopes.create("s", tools=())
    assert scopes.scope(scope.id) is scope
    scopes.create("t")
    assert scopes.remove([scope.id, "unknown"])
    assert scopes.count == 1
    scopes.clear()
    assert events == ["s", scope.id, "t", "clear"] or events == ["s", "t", scope.id, "clear"]


# -------------------------------------------------------------------- folding


@pytest.mark.case("agents", 30)
async def test_a_conversation_is_folded_before_the_prompt_grows_too_large(stage: Stage) -> None:
    provider = stage.script(calling("x" * 40, "e"), calling("x" * 40, "e"), ProviderResult("f"))
    conversations = ConversationManager(summarize=recap)
    agent = stage.agent(provider, tools=[value_tool("e", "y" * 40)], conversations=conversations, window=Window(12))
    assert (await agent.generate()).content == "f"
    assert [section.summary for section in agent.context.messages.sections()] == ["recap of 3", "recap of 2"]
    assert [len(call.messages) for call in provider.calls] == [1, 1, 2]


@pytest.mark.case("agents", 31)
async def test_a_seed_that_is_too_large_is_folded_before_the_first_request(stage: Stage) -> None:
    provider = stage.script(ProviderResult("f"))
    agent = stage.agent(
        provider,
        seed=MessageInput("user", "x" * 200),
        conversations=ConversationManager(summarize=recap),
        window=Window(20),
    )
    await agent.generate()
    assert [message.content for message in provider.calls[0].messages] == ["[Summary of earlier messages] recap of 1"]


@pytest.mark.parametrize("strict", [False, True])
async def test_a_summarizer_that_fails_is_passed_over_unless_that_is_not_allowed(stage: Stage, strict: bool) -> None:
    failure = RuntimeError("no summary")

    async def fail(messages: Sequence[ChatMessage]) -> str:
        raise failure

    agent = stage.agent(
        ProviderResult("f"), conversations=ConversationManager(summarize=fail), window=Window(1), strict=strict
    )
    if strict:
        with pytest.raises(RuntimeError):
            await agent.generate()
        assert stage.names == ["start", "compactError", "error"]
    else:
        assert (await agent.generate()).content == "f"
        assert stage.told("compactError") == [failure]


async def test_a_window_over_a_conversation_that_cannot_be_folded_does_nothing(stage: Stage) -> None:
    agent = stage.agent(ProviderResult("f"), window=Window(1))
    assert (await agent.generate()).content == "f"
    assert "compactError" not in stage.names


def test_what_a_prompt_is_taken_to_cost() -> None:
    assert [estimate_tokens(text) for text in ("", "a", "abcd", "abcde", "😀😀😀")] == [0, 1, 1, 2, 2]
    call = ToolCall("1", "e", {})
    messages = [
        ChatMessage("1", "user", "abcd", images=("AAAA",)),
        ChatMessage("2", "assistant", "", (call,)),
        ChatMessage("3", "assistant", "", (ToolCall("1", "e", {"x": {1j}}),)),
    ]
    assert [estimate_messages([message]) for message in messages] == [1 + 4 + 512, 4 + 10, 4 + 4]
