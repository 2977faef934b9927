"""A directory's workspace: nothing leads out of it."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from greenroom.actors.workspace import DirectoryWorkspace
from greenroom.actors.workspace.directory.confined import Confined
from greenroom.actors.workspace.directory.paths import PRIVATE, split_path
from greenroom.protocol.errors import WorkspaceError
from greenroom.protocol.workspace import Query

LEADING_OUT = [
    "",
    "/etc/passwd",
    "//etc/passwd",
    "..",
    "../secret",
    "a/../../secret",
    "a/..",
    ".",
    "./a",
    "a/./b",
    "a//b",
    "a/",
    "a\0b",
    "C:",
    "c:/secret",
    "a/c:secret",
    "..\\secret",
    "\\\\host\\share",
    "\udc2e\udc2e/secret",
    "\ud800",
    "d/" * 101 + "a",
    # what another file system may take for one of those
    ".. /secret",
    "../\u200b/secret",
    "..\u200b/secret",
    ".\u2060./secret",
    "．．/secret",
    "‥/secret",
    "․․/secret",
    "﹒﹒/secret",
    "a／..／secret",
    "a＼secret",
    " ",
    "...",
    # what is another program's
    ".git/hooks/post-checkout",
    "sub/.git/config",
    ".GIT/config",
    ".g\u200cit/config",
    ".ｇｉｔ/config",
    ".git./config",
    ".git",
    # what is used for saving
    ".greenroom-0.tmp",
    ".Greenroom-0.tmp",
]

NAMING_A_FILE = [
    "a",
    "a b/c d",
    ".env",
    ".gitignore",
    "..a",
    "a..",
    "ärger/😀.txt",
    "a.git/b",
    "-",
    "~",
    "%2e%2e",
    "ab:c",
]


@pytest.mark.parametrize("path", LEADING_OUT)
def test_a_path_that_may_lead_out_is_refused(path: str) -> None:
    with pytest.raises(WorkspaceError) as caught:
        split_path(path)
    assert caught.value.code == "PATH"
    assert set(caught.value.context) == {"path"}
    caught.value.message.encode()


@pytest.mark.parametrize("path", NAMING_A_FILE)
def test_other_paths_name_a_file(path: str) -> None:
    assert "/".join(split_path(path)) == path


def test_private_names_can_be_others() -> None:
    assert PRIVATE == (".git", ".hg", ".svn")
    assert split_path(".git/config", private=()) == (".git", "config")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret").write_text("secret")
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "a.txt").write_text("a")
    return folder


@pytest.fixture
def files(root: Path) -> Iterator[DirectoryWorkspace]:
    workspace = DirectoryWorkspace(root)
    yield workspace
    workspace.close()


USES: list[Callable[[DirectoryWorkspace, str], object]] = [
    lambda files, path: files.read(path),
    lambda files, path: files.has(path),
    lambda files, path: files.write(path, "overwritten"),
    lambda files, path: files.append(path, "overwritten"),
    lambda files, path: files.edit(path, "secret", "overwritten"),
    lambda files, path: files.remove(path),
    lambda files, path: files.move(path, "here"),
    lambda files, path: files.move("sub/a.txt", path),
]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("path", ["../outside/secret", "/etc/passwd", "sub/../../outside/secret"])
def test_every_operation_refuses_such_a_path(
    files: DirectoryWorkspace, outside: Path, use: Callable[[DirectoryWorkspace, str], object], path: str
) -> None:
    with pytest.raises(WorkspaceError) as caught:
        use(files, path)
    assert caught.value.code == "PATH"
    assert [each.name for each in outside.iterdir()] == ["secret"]
    assert (outside / "secret").read_text() == "secret"


@pytest.mark.parametrize("use", USES)
def test_no_operation_goes_through_a_link(
    root: Path, outside: Path, use: Callable[[DirectoryWorkspace, str], object]
) -> None:
    (root / "folder").symlink_to(outside)
    (root / "sub" / "inner").symlink_to("..")
    workspace = DirectoryWorkspace(root)
    for path in ("folder/secret", "folder/new", "sub/inner/sub/a.txt"):
        with pytest.raises(WorkspaceError, match="link") as caught:
            use(workspace, path)
        assert caught.value.code == "PATH"
    workspace.close()
    assert [(each.name, each.read_text()) for each in outside.iterdir()] == [("secret", "secret")]
    assert (root / "sub" / "a.txt").read_text() == "a"


@pytest.mark.parametrize("target", ["../outside/secret", "sub/a.txt", "nowhere"])
def test_no_operation_goes_to_what_a_link_points_to(root: Path, outside: Path, target: str) -> None:
    (root / "link").symlink_to(target)
    workspace = DirectoryWorkspace(root)
    assert not workspace.has("link")
    for use in USES:
        if use is not USES[1]:
            with pytest.raises(WorkspaceError, match="link") as caught:
                use(workspace, "link")
            assert caught.value.code == "PATH"
    workspace.close()
    assert (outside / "secret").read_text() == "secret"
    assert os.readlink(root / "link") == target


def test_links_are_neither_listed_nor_searched(root: Path, outside: Path) -> None:
    (root / "link").symlink_to(outside / "secret")
    (root / "folder").symlink_to(outside)
    workspace = DirectoryWorkspace(root)
    assert [info.path for info in workspace.infos()] == ["sub/a.txt"]
    assert [file.path for file in workspace.files()] == ["sub/a.txt"]
    assert workspace.count() == 1
    assert workspace.replace(Query("secret"), "x", lambda: None).occurrences == 0
    workspace.close()


def test_a_folder_that_is_swapped_for_a_link_leads_nowhere(root: Path, outside: Path) -> None:
    workspace = DirectoryWorkspace(root)
    assert workspace.read("sub/a.txt") == "a"
    (root / "sub").rename(root / "moved")
    (root / "sub").symlink_to(outside)
    with pytest.raises(WorkspaceError) as caught:
        workspace.write("sub/secret", "x")
    assert caught.value.code == "PATH"
    workspace.close()
    assert (outside / "secret").read_text() == "secret"


def test_a_file_that_is_swapped_for_a_link_at_the_last_moment_is_not_read(
    files: DirectoryWorkspace, root: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_ = os.open

    def swapped(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == "a.txt":
            (root / "sub" / "a.txt").unlink()
            (root / "sub" / "a.txt").symlink_to(outside / "secret")
        return open_(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", swapped)
    with pytest.raises(WorkspaceError) as caught:
        files.read("sub/a.txt")
    assert caught.value.code == "IO"


def test_a_file_that_becomes_a_link_while_all_are_read_is_passed_over(
    files: DirectoryWorkspace, root: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "b").write_text("b")
    walk = Confined.walk

    def then_swapped(self: Confined, most: int, *, sweep: bool = False) -> dict[str, os.stat_result]:
        found = walk(self, most, sweep=sweep)
        (root / "sub" / "a.txt").unlink(missing_ok=True)
        (root / "sub" / "a.txt").symlink_to(outside / "secret")
        return found

    monkeypatch.setattr(Confined, "walk", then_swapped)
    for look in (files.infos, files.files, files.texts):
        assert [each.path for each in look()] == ["b"]
        (root / "sub" / "a.txt").unlink()
        (root / "sub" / "a.txt").write_text("a")


def test_the_root_may_be_reached_by_a_link_and_is_kept_when_that_changes(root: Path, outside: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    workspace = DirectoryWorkspace(link)
    link.unlink()
    link.symlink_to(outside)
    workspace.write("b", "b")
    assert (root / "b").read_text() == "b"
    assert not (outside / "b").exists()
    workspace.close()


def test_a_second_name_of_a_file_outside_is_let_go_by_an_edit(root: Path, outside: Path) -> None:
    os.link(outside / "secret", root / "same")
    workspace = DirectoryWorkspace(root)
    workspace.write("same", "changed")
    assert (outside / "secret").read_text() == "secret"
    workspace.close()


def test_what_is_no_file_is_no_file(files: DirectoryWorkspace, root: Path) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(root / "socket"))
        for path in ("sub", "pipe", "socket"):
            assert not files.has(path)
            for use in USES:
                if use is not USES[1]:
                    with pytest.raises(WorkspaceError) as caught:
                        use(files, path)
                    assert caught.value.code == "PATH"
        assert [info.path for info in files.infos()] == ["sub/a.txt"]


def test_a_file_is_no_folder(files: DirectoryWorkspace) -> None:
    assert files.read("sub/a.txt/b") is None
    assert not files.has("sub/a.txt/b")
    with pytest.raises(WorkspaceError, match="not a folder") as caught:
        files.write("sub/a.txt/b", "x")
    assert caught.value.code == "PATH"


def test_names_that_no_path_can_spell_are_passed_over(root: Path) -> None:
    for name in (b"latin-\xe9.txt", b"back\\slash", b".greenroom-notes", b".greenroom-12.tmp"):
        (Path(os.fsdecode(os.fsencode(root) + b"/" + name))).write_bytes(b"x")
    (root / ".git").mkdir()
    (root / ".greenroom-0123456789abcdef.tmp").mkdir()
    (root / ".git" / "config").write_text("[core]")
    workspace = DirectoryWorkspace(root)
    assert [info.path for info in workspace.infos()] == ["sub/a.txt"]
    workspace.close()
    assert (root / ".git" / "config").read_text() == "[core]"
    assert len(list(root.iterdir())) == 7, "they stay where they are"


def test_a_folder_too_deep_for_a_path_is_passed_over(files: DirectoryWorkspace, root: Path) -> None:
    deepest = "d/" * 100 + "a"
    files.write(deepest, "x")
    (root / deepest).with_name("d").mkdir()
    ((root / deepest).with_name("d") / "b").write_text("beyond")
    assert [info.path for info in files.infos()] == ["sub/a.txt", deepest]
    assert [file.path for file in files.files()] == ["sub/a.txt", deepest]
    assert files.read(deepest) == "x"


def test_a_directory_that_is_none_cannot_be_opened(root: Path) -> None:
    for path in (root / "nowhere", root / "sub" / "a.txt"):
        with pytest.raises(WorkspaceError) as caught:
            DirectoryWorkspace(path)
        assert (caught.value.code, caught.value.context["path"]) == ("IO", str(path))
