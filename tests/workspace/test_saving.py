"""Saving: whatever happens, a file is as before or as after, and nothing else is left for good."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from greenroom.actors.workspace import DirectoryWorkspace, Limits
from greenroom.actors.workspace.directory import confined
from greenroom.protocol.errors import WorkspaceError
from greenroom.protocol.workspace import Query

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def files(tmp_path: Path) -> Iterator[DirectoryWorkspace]:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text("x")
    workspace = DirectoryWorkspace(tmp_path)
    yield workspace
    workspace.close()


def failing(function: Callable[..., Any], number: int, code: int = errno.ENOSPC) -> Callable[..., Any]:
    """The function, of which the call of this number (from 1) fails."""
    left = number

    def call(*args: Any, **options: Any) -> Any:
        nonlocal left
        left -= 1
        if not left:
            raise OSError(code, os.strerror(code))
        return function(*args, **options)

    return call


def on_disk(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.iterdir())}


def test_a_killed_save_leaves_the_file_as_before_or_as_after(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.workspace.killed", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    killed, littered = map(int, done.stdout.split())
    assert killed > littered > 10, "a save is made of many steps"
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["new", "old", "sub"]


@pytest.mark.parametrize("step", ["fsync", "replace", "fchmod"])
def test_a_failed_save_leaves_the_old_file_and_nothing_else(
    files: DirectoryWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setattr(os, step, failing(getattr(os, step), 1))
    with pytest.raises(WorkspaceError) as caught:
        files.write("a", "y")
    assert (caught.value.code, caught.value.context) == ("IO", {"path": "a", "reason": os.strerror(errno.ENOSPC)})
    assert on_disk(tmp_path) == {"a": "x", "b": "x", "c": "x"}
    assert files.undo() == ()
    assert files.write("a", "y").text == "y"


def test_a_failed_first_save_leaves_no_file(
    files: DirectoryWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", failing(os.fsync, 1))
    with pytest.raises(WorkspaceError):
        files.write("new", "y")
    assert on_disk(tmp_path) == {"a": "x", "b": "x", "c": "x"}


def test_nothing_is_changed_before_everything_is_ready_to_be(
    files: DirectoryWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", failing(os.fsync, 3))
    with pytest.raises(WorkspaceError):
        files.replace(Query("x"), "y")
    assert on_disk(tmp_path) == {"a": "x", "b": "x", "c": "x"}


def test_what_was_saved_before_the_disk_failed_can_be_put_back(
    files: DirectoryWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(os, "replace", failing(os.replace, 2, errno.EIO))
        with pytest.raises(WorkspaceError) as caught:
            files.replace(Query("x"), "y")
    assert caught.value.context["path"] == "b"
    assert on_disk(tmp_path) == {"a": "y", "b": "x", "c": "x"}
    assert files.undo() == ("a",)
    assert on_disk(tmp_path) == {"a": "x", "b": "x", "c": "x"}


def test_a_new_file_does_not_take_the_place_of_one_that_came_at_the_last_moment(
    files: DirectoryWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def too_late(*args: Any, **options: Any) -> None:
        (tmp_path / "new").write_text("theirs")
        link(*args, **options)

    monkeypatch.setattr(os, "link", too_late)
    with pytest.raises(WorkspaceError) as caught:
        files.write("new", "ours")
    assert (caught.value.code, caught.value.context) == ("CHANGED", {"path": "new", "paths": ["new"]})
    assert on_disk(tmp_path) == {"a": "x", "b": "x", "c": "x", "new": "theirs"}


def test_a_change_while_a_file_is_being_staged_is_found(
    files: DirectoryWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync, times = os.fsync, iter([True])

    def meanwhile(descriptor: int) -> None:
        fsync(descriptor)
        if next(times, False):
            (tmp_path / "a").write_text("theirs")

    monkeypatch.setattr(os, "fsync", meanwhile)
    with pytest.raises(WorkspaceError) as caught:
        files.write("a", "ours")
    assert caught.value.code == "CHANGED"
    assert on_disk(tmp_path) == {"a": "theirs", "b": "x", "c": "x"}


def test_where_files_have_one_name_only_new_ones_are_saved_all_the_same(
    files: DirectoryWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", failing(os.link, 1, errno.EPERM))
    files.write("new", "y")
    assert on_disk(tmp_path) == {"a": "x", "b": "x", "c": "x", "new": "y"}


def test_who_saves_is_alone_and_what_it_stages_is_not_swept_away(
    files: DirectoryWorkspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confined, "PATIENCE", 0.0)
    fsync, met = os.fsync, list[str]()

    def meanwhile(descriptor: int) -> None:
        if not met:
            with pytest.raises(WorkspaceError) as caught:
                DirectoryWorkspace(tmp_path)
            met.append(caught.value.context["reason"])
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", meanwhile)
    files.write("a", "y")
    assert met == ["locked"]
    assert on_disk(tmp_path) == {"a": "y", "b": "x", "c": "x"}


def test_a_hundred_megabytes_are_refused_by_name_or_stored_right(tmp_path: Path) -> None:
    large = "0123456789" * 10_000_000
    files = DirectoryWorkspace(tmp_path)
    with pytest.raises(WorkspaceError, match=r"large\.txt has 100,000,000 bytes") as caught:
        files.write("large.txt", large)
    assert (caught.value.code, caught.value.context) == ("LIMIT", {"path": "large.txt", "limit": 16 * 2**20})
    assert on_disk(tmp_path) == {}
    files.close()
    files = DirectoryWorkspace(tmp_path, limits=Limits(file_bytes=20_000_000))
    assert files.write("large.txt", large[:20_000_000]).size == 20_000_000
    assert files.read("large.txt") == large[:20_000_000]
    files.close()
