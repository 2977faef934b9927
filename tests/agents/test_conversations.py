"""Conversations: messages, sections, looking back, and how they are kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from greenroom.actors.agent import (
    CONVERSATIONS,
    Conversation,
    ConversationManager,
    MemoryConversationStore,
    TableConversationStore,
)
from greenroom.protocol.agents import ChatMessage, ConversationSnapshot, MessageInput, Section, parse_conversation
from greenroom.protocol.errors import ConversationError
from greenroom.protocol.tools import ToolCall
from greenroom.runtime.journal import open_journal
from greenroom.runtime.tree import run_tree


def said(*contents: str) -> list[MessageInput]:
    return [MessageInput("user", content) for content in contents]


class Summarizer:
    """Says how many messages it was given; fails at the calls whose numbers (from 1) are named."""

    def __init__(self, *failing: int) -> None:
        self.failing = failing
        self.given: list[list[str]] = []

    async def __call__(self, messages: Sequence[ChatMessage]) -> str:
        self.given.append([message.content for message in messages])
        await trio.lowlevel.checkpoint()
        if len(self.given) in self.failing:
            raise RuntimeError(f"call {len(self.given)}")
        return f"recap of {len(messages)}"


def conversation(summarize: Summarizer | None, **options: Any) -> tuple[Conversation, list[str]]:
    events: list[str] = []
    on = {
        name: lambda *told, name=name: events.append(name) for name in ("compact", "summary", "collapse", "rehydrate")
    }
    return Conversation(summarize=summarize, on=on, **options), events


def originals(of: Conversation) -> list[list[str]]:
    return [[message.content for message in section.messages] for section in of.sections()]


def test_messages_are_added_found_and_removed() -> None:
    talk = Conversation("t")
    first = talk.add(MessageInput("user", "a"))
    second, third = talk.add(said("b", "c"))
    assert [message.content for message in talk.messages()] == ["a", "b", "c"]
    assert talk.message(second.id) is second
    assert talk.remove(first.id)
    assert not talk.remove(first.id)
    assert talk.remove([first.id, third.id])
    assert talk.count == 1
    talk.clear()
    assert talk.count == 0
    assert talk.message(second.id) is None


@pytest.mark.case("agents", 28)
async def test_sections_above_the_cap_are_folded_into_one() -> None:
    talk, events = conversation(Summarizer(), sections=2)
    for content in "abc":
        events.clear()
        talk.add(MessageInput("user", content))
        await talk.compact()
    assert events == ["collapse", "summary", "compact"]
    assert originals(talk) == [["a", "b"], ["c"]]
    assert talk.summary == "recap of 2"


@pytest.mark.case("agents", 29)
async def test_nothing_to_fold_is_nothing_done() -> None:
    summarize = Summarizer()
    talk, events = conversation(summarize)
    talk.add(said("a", "b"))
    assert await talk.compact(keep=5) is None
    assert summarize.given == []
    assert events == []


@pytest.mark.case("agents", 29)
async def test_without_a_summarizer_nothing_can_be_folded() -> None:
    talk, _ = conversation(None)
    with pytest.raises(ConversationError) as refused:
        await talk.compact(sections=0)
    assert refused.value.code == "SUMMARIZER"


async def test_a_cap_below_one_is_refused() -> None:
    with pytest.raises(ConversationError) as refused:
        Conversation(sections=0.5)
    assert refused.value.code == "SECTIONS"
    talk, _ = conversation(Summarizer(), sections=1.5)
    with pytest.raises(ConversationError):
        await talk.compact(sections=0)
    for content in "ab":
        talk.add(MessageInput("user", content))
        await talk.compact()
    assert originals(talk) == [["a", "b"]]


async def test_the_last_messages_can_be_kept() -> None:
    talk, _ = conversation(Summarizer(), keep=1)
    talk.add(said("a", "b", "c"))
    section = await talk.compact()
    assert section is not None
    assert [message.content for message in section.messages] == ["a", "b"]
    recap, live = talk.view()
    assert (recap.id, recap.role) == (section.id, "assistant")
    assert recap.content == "[Summary of earlier messages] recap of 2"
    assert live.content == "c"


async def test_a_summarizer_that_fails_at_first_changes_nothing() -> None:
    talk, events = conversation(Summarizer(1))
    talk.add(said("a"))
    before = talk.snapshot()
    with pytest.raises(RuntimeError):
        await talk.compact()
    assert talk.snapshot() == before
    assert events == []


async def test_a_merge_that_fails_is_made_up_for_by_the_next() -> None:
    talk, events = conversation(Summarizer(4), sections=1)
    talk.add(said("a"))
    await talk.compact()
    talk.add(said("b"))
    events.clear()
    with pytest.raises(RuntimeError):
        await talk.compact()
    assert events == ["summary"]
    assert originals(talk) == [["a"], ["b"]]
    talk.add(said("c"))
    await talk.compact()
    assert originals(talk) == [["a", "b", "c"]]


async def test_an_overall_summary_that_fails_leaves_the_old_one() -> None:
    talk, events = conversation(Summarizer(4))
    talk.add(said("a"))
    await talk.compact()
    talk.add(said("b", "c"))
    events.clear()
    with pytest.raises(RuntimeError):
        await talk.compact()
    assert events == []
    assert originals(talk) == [["a"], ["b", "c"]]
    assert talk.summary == "recap of 1"


async def test_two_that_fold_at_a_time_fold_each_message_once() -> None:
    talk, _ = conversation(Summarizer())
    talk.add(said("a", "b"))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(talk.compact)
        nursery.start_soon(talk.compact)
    assert originals(talk) == [["a", "b"]]


async def test_looking_back_finds_what_was_folded() -> None:
    talk, events = conversation(Summarizer(), keep=1)
    talk.add(said("Straße one", "two", "STRASSE three"))
    section = await talk.compact()
    assert section is not None
    assert [message.content for message in talk.search("strasse")] == ["Straße one", "STRASSE three"]
    assert talk.rehydrate(section.id) == section.messages
    assert talk.rehydrate("unknown") == ()
    assert events[-2:] == ["rehydrate", "rehydrate"]
    assert talk.count == 1


async def test_another_conversation_can_be_told_of_it() -> None:
    talk, _ = conversation(Summarizer(), id="t")
    assert talk.reference() == "[From another conversation: t]"
    talk.add(said("a"))
    await talk.compact()
    (message,) = Conversation(seed=None).add(said("b"))
    assert talk.reference("there", messages=[message]) == (
        "[From another conversation: there]\nSummary: recap of 1\nRelevant messages:\n- user: b"
    )
    assert talk.reference(summary=False) == "[From another conversation: t]"


# -------------------------------------------------------------------- several


async def test_the_first_that_is_added_is_the_active_one() -> None:
    talks = ConversationManager()
    assert talks.active is None
    a, b = talks.add("a"), talks.add("b")
    assert talks.active is a
    assert talks.switch("b") is b
    assert talks.switch("c") is None
    assert talks.active is b
    again = talks.add("b")
    assert talks.active is again
    assert [talk.id for talk in talks.conversations()] == ["a", "b"]
    assert talks.remove(["b", "c"])
    assert talks.active is None
    assert talks.count == 1
    talks.clear()
    assert talks.count == 0


async def test_a_conversation_is_saved_and_opened_again() -> None:
    store = MemoryConversationStore()
    talks = ConversationManager(store=store, summarize=Summarizer())
    talk = talks.add("a")
    talk.add(said("x", "y"))
    await talk.compact()
    talk.add(MessageInput("assistant", "z", (ToolCall("1", "e", {"v": 1}),), ("AAAA",)))
    assert await talks.save("a")
    assert not await talks.save("b")
    others = ConversationManager(store=store)
    assert await others.open("b") is None
    opened = await others.open("a")
    assert opened is not None
    assert opened is others.active
    assert opened.snapshot() == talk.snapshot()
    assert await others.open("a") is opened
    assert not await ConversationManager().save("a")


# -------------------------------------------------------------------- stores

SNAPSHOT = ConversationSnapshot(
    id="c",
    summary="all",
    sections=(Section("s", "recap", (ChatMessage("1", "user", "half \ud83d"),)),),
    messages=(ChatMessage("2", "developer", "x", (ToolCall("1", "e", {}),), ("AAAA",)),),
)
BARE: dict[str, Any] = {"id": "c", "sections": [], "messages": []}
MESSAGE: dict[str, Any] = {"id": "1", "role": "user", "content": "x"}


def test_a_snapshot_survives_json() -> None:
    assert parse_conversation(json.loads(json.dumps(msgspec.to_builtins(SNAPSHOT)))) == SNAPSHOT
    assert parse_conversation({**BARE, "extra": 1}) == ConversationSnapshot(id="c", sections=(), messages=())


@pytest.mark.parametrize(
    "value",
    [
        None,
        {**BARE, "id": 1},
        {**BARE, "summary": 1},
        {**BARE, "sections": None},
        {**BARE, "sections": [{"id": "s", "summary": "x"}]},
        {**BARE, "sections": [{"id": "s", "summary": "x", "messages": [1]}]},
        {**BARE, "messages": [{**MESSAGE, "role": 1}]},
        {**BARE, "messages": [{**MESSAGE, "images": [1]}]},
        {**BARE, "messages": [{**MESSAGE, "calls": {}}]},
        {**BARE, "messages": [{**MESSAGE, "calls": [{"id": "1", "name": "e"}]}]},
    ],
)
def test_anything_else_is_none(value: Any) -> None:
    assert parse_conversation(value) is None


async def test_a_conversation_comes_back_in_another_process_life(tmp_path: Path) -> None:
    for expected in (None, SNAPSHOT):
        async with run_tree() as tree:
            store = TableConversationStore(await open_journal(tree, tmp_path / "journal", tables=[CONVERSATIONS]))
            assert await store.get("c") == expected
            await store.set(SNAPSHOT)
            await store.delete("other")


@pytest.mark.case("agents", 32)
@pytest.mark.parametrize(
    "stored", [json.dumps({**BARE, "messages": [{**MESSAGE, "calls": [None]}]}), "{", "[" * 100_000]
)
async def test_a_row_that_is_no_snapshot_is_none(stored: str) -> None:
    async with run_tree() as tree:
        journal = await open_journal(tree, tables=[CONVERSATIONS])
        await journal.write(CONVERSATIONS.upsert(id="c", snapshot=stored))
        store = TableConversationStore(journal)
        assert await store.get("c") is None
        await store.delete("c")
        assert await journal.select("SELECT * FROM conversations") == []
