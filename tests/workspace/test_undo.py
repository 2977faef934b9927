"""Undoing: one call at a time, each as a whole, with places and events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from greenroom.protocol.workspace import Change, MemoryWorkspace, Moved, Query, Removed, Written, create_file
from greenroom.protocol.workspace.changes import History
from greenroom.protocol.workspace.memory import UNDO_SIZE
from tests.workspace.conftest import PNG, texts

SEED = [*texts(a="1", b="2"), PNG, *texts(c="3")]


def everything(workspace: MemoryWorkspace) -> None:
    with workspace.call():
        workspace.remove("a")
        workspace.write("a", "again")
        workspace.move("c", "b")
        workspace.write("d", "new")


@pytest.mark.parametrize(
    "call",
    [
        lambda files: files.write("b", "x"),
        lambda files: files.write("new", "x"),
        lambda files: files.append("b", "x"),
        lambda files: files.move("b", "new"),
        lambda files: files.move("c", "a"),
        lambda files: files.move("a", "pic.png"),
        lambda files: files.remove("pic.png"),
        lambda files: files.clear(),
        lambda files: files.replace(Query("", limit=3), "-"),
        lambda files: files.edit("a", "1", "2"),
        everything,
    ],
)
def test_a_call_is_put_back_as_a_whole(call: Callable[[MemoryWorkspace], Any]) -> None:
    workspace = MemoryWorkspace(SEED)
    workspace.append("a", "!")
    before = workspace.files()
    call(workspace)
    after = workspace.files()
    assert after != before
    assert set(workspace.undo()) == {file.path for file in set(before) ^ set(after)}
    assert workspace.files() == before
    assert workspace.undo() == ("a",)
    assert workspace.files() == tuple(SEED)
    assert workspace.undo() == ()


def test_what_was_put_back_is_told() -> None:
    told: list[Change] = []
    workspace = MemoryWorkspace(texts(a="1", b="2"), announce=told.append)
    workspace.move("a", "b")
    workspace.write("c", "3")
    workspace.undo()
    workspace.undo()
    a, b = texts(a="1", b="2")
    assert told[0] == Moved("a", "b")
    assert told[2:] == [Removed("c"), Written(a), Written(b)]


def test_a_refused_call_leaves_nothing_to_be_undone() -> None:
    workspace = MemoryWorkspace([PNG])
    with pytest.raises(Exception, match=r"pic\.png"):
        workspace.append("pic.png", "x")
    assert workspace.undo() == ()


def test_only_so_many_calls_are_remembered() -> None:
    workspace = MemoryWorkspace(undo=2)
    for text in ("1", "2", "3"):
        workspace.write("a", text)
    assert [workspace.undo(), workspace.undo(), workspace.undo()] == [("a",), ("a",), ()]
    assert workspace.read("a") == "1"
    forgetful = MemoryWorkspace(undo=0)
    forgetful.write("a", "1")
    assert forgetful.undo() == ()


def test_files_that_are_too_large_are_not_kept_for_undoing() -> None:
    large = "x" * (UNDO_SIZE // 2 + 1)
    workspace = MemoryWorkspace([create_file("a", large)])
    workspace.append("b", "1")
    workspace.write("a", large)  # holds the first large text
    workspace.write("a", "1")  # and now the second, which does not fit beside it
    assert workspace.undo() == ("a",)
    assert workspace.read("a") == large
    assert workspace.undo() == ()


def test_a_call_that_cannot_be_held_ends_what_can_be_undone() -> None:
    class Call:
        def __init__(self, size: int | None = 1) -> None:
            self.before = {"a": 1}
            self.size = size

    calls = iter([Call(), Call(None), Call()])
    history = History(lambda: next(calls), 5, 10)
    for left in (True, False, True):
        with history.call():
            pass
        assert (history.last() is not None) is left
    history.pop()
    assert history.last() is None
