"""A directory's workspace: what its files are, what an edit leaves alone, what others change meanwhile."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from greenroom.actors.workspace import DirectoryWorkspace, Limits
from greenroom.protocol.errors import WorkspaceError
from greenroom.protocol.workspace import (
    BinaryContent,
    Change,
    Cleared,
    MemoryWorkspace,
    Moved,
    Query,
    Removed,
    Written,
    create_file,
    range_of,
)

LATIN = b"x = 1\n# caf\xe9\n"
MARKED = b"\xef\xbb\xbfx = 1\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "b.txt").write_bytes(b"b")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.py").write_bytes(b"a\n")
    return tmp_path


@pytest.fixture
def files(root: Path) -> Iterator[DirectoryWorkspace]:
    workspace = DirectoryWorkspace(root)
    yield workspace
    workspace.close()


def refusal(operation: Callable[[], object]) -> tuple[str, dict[str, Any]]:
    with pytest.raises(WorkspaceError) as caught:
        operation()
    return caught.value.code, caught.value.context


def replaced(workspace: DirectoryWorkspace, query: str, replacement: str, **options: Any) -> tuple[int, int]:
    result = workspace.replace(Query(query, **options), replacement)
    return result.occurrences, result.files


def on_disk(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


# -------------------------------------------------------------------- looking


def test_files_are_found_sorted_and_those_that_are_made_come_last(files: DirectoryWorkspace) -> None:
    files.write("z", "z")
    files.write("a", "a")
    files.move("b.txt", "y")
    listed = [(info.path, info.state, info.size, info.lines, info.kind) for info in files.infos()]
    assert listed == [
        ("y", "modified", 1, 1, "text"),
        ("sub/a.py", "created", 2, 2, "text"),
        ("z", "created", 1, 1, "text"),
        ("a", "created", 1, 1, "text"),
    ]
    assert [file.path for file in files.files()] == [path for path, *_ in listed]
    assert files.count() == 4
    assert files.has("nothing", "sub/a.py")
    assert not files.has("nothing")


def test_a_file_that_moved_away_and_one_that_came_in_its_place_are_in_one_order(root: Path) -> None:
    for path in ("m", "n"):
        (root / path).write_text(path)
    workspace = DirectoryWorkspace(root)
    workspace.move("m", "z")
    workspace.move("n", "a")
    for path in ("m", "n"):
        (root / path).write_text("another")
    assert [info.path for info in workspace.infos() if info.path in "amnz"] == ["m", "z", "a", "n"]
    workspace.close()


def test_a_language_is_kept_as_in_memory(files: DirectoryWorkspace) -> None:
    files.move("sub/a.py", "a.md")
    assert files.write("a.md", "x") == create_file("a.md", "x", state="modified", language="python")


@pytest.mark.case("reports/workspace", 3)
def test_what_is_not_utf_8_is_binary_and_stays_untouched(root: Path) -> None:
    (root / "latin").write_bytes(LATIN)
    (root / "marked").write_bytes(MARKED)
    files = DirectoryWorkspace(root)
    assert files.read("latin") is None
    assert replaced(files, "x = 1", "x = 2") == (1, 1)
    for operation in (
        lambda: files.write("latin", "x = 2"),
        lambda: files.write("latin", "2", range_of(1, 5, 1, 6)),
        lambda: files.append("latin", "x"),
        lambda: files.prepend("latin", "x"),
        lambda: files.edit("latin", "x = 1", "x = 2"),
    ):
        assert refusal(operation) == ("MODALITY", {"path": "latin"})
    assert (root / "latin").read_bytes() == LATIN
    assert (root / "marked").read_bytes() == MARKED.replace(b"1", b"2")
    files.close()


@pytest.mark.case("reports/workspace", 3)
def test_a_byte_order_mark_stays_and_is_no_part_of_the_text(root: Path) -> None:
    (root / "marked").write_bytes(MARKED)
    files = DirectoryWorkspace(root)
    assert files.read("marked") == "x = 1\n"
    assert files.write("marked", "2", range_of(1, 5, 1, 6)).text == "x = 2\n"
    assert (root / "marked").read_bytes() == b"\xef\xbb\xbfx = 2\n"
    assert replaced(files, "^x", "y", regex=True) == (1, 1)
    assert (root / "marked").read_bytes() == b"\xef\xbb\xbfy = 2\n"
    files.write("marked", "\ufeffwhole")
    files.prepend("marked", "the ")
    assert (root / "marked").read_bytes() == b"\xef\xbb\xbfthe whole"
    files.write("new", "\ufeffx")
    assert files.read("new") == "x"
    assert (root / "new").read_bytes() == b"\xef\xbb\xbfx"
    files.close()


def test_bytes_come_with_their_kind_and_can_be_moved_and_removed(root: Path) -> None:
    (root / "pic").write_bytes(b"\x89PNG\r\n\x1a\n\xff")
    (root / "other").write_bytes(b"\xff\xfe")
    files = DirectoryWorkspace(root)
    assert files.file("pic") == create_file("pic", BinaryContent("iVBORw0KGgr/", "image/png"))
    other = files.file("other")
    assert other is not None
    assert other.content == BinaryContent("//4=", "application/octet-stream")
    assert [info.path for info in files.infos() if info.kind == "binary"] == ["other", "pic"]
    assert [file.path for file in files.texts()] == ["b.txt", "sub/a.py"]
    assert files.move("pic", "img/pic.png")
    assert files.remove("other")
    assert on_disk(root / "img") == {"pic.png": b"\x89PNG\r\n\x1a\n\xff"}
    files.close()


# -------------------------------------------------------------------- what an edit leaves alone


@pytest.mark.case("reports/workspace", 1)
def test_in_a_directory_line_ends_stay_as_they_are(root: Path) -> None:
    (root / "crlf").write_bytes(b"a\r\nb\r\nc\r\n")
    files = DirectoryWorkspace(root)
    assert files.read("crlf") == "a\r\nb\r\nc\r\n"
    assert replaced(files, "b\r", "B\r") == (1, 1)
    assert (root / "crlf").read_bytes() == b"a\r\nB\r\nc\r\n"
    nothing = files.replace(Query("a\nB"), "x")
    assert nothing.occurrences == 0
    assert "CRLF" in str(nothing.note)
    files.write("crlf", "second", range_of(2, 1, 2, 2))
    assert (root / "crlf").read_bytes() == b"a\r\nsecond\r\nc\r\n"
    files.close()


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o4750, 0o444])
def test_an_edit_keeps_the_mode_and_the_owner(files: DirectoryWorkspace, root: Path, mode: int) -> None:
    script = root / "b.txt"
    if os.geteuid() == 0:
        os.chown(script, 1234, 4321)
    script.chmod(mode)
    before = script.stat()
    files.read("b.txt")
    files.append("b.txt", "!")
    after = script.stat()
    assert (stat.S_IMODE(after.st_mode), after.st_uid, after.st_gid) == (mode, before.st_uid, before.st_gid)
    files.remove("b.txt")
    files.undo()
    again = script.stat()
    assert (stat.S_IMODE(again.st_mode), again.st_uid, again.st_gid) == (mode, before.st_uid, before.st_gid)


def test_a_new_file_is_as_open_as_the_umask_allows(files: DirectoryWorkspace, root: Path) -> None:
    before = os.umask(0o027)
    try:
        files.write("deep/er/new", "x")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((root / path).stat().st_mode) for path in ("deep", "deep/er", "deep/er/new")]
    assert modes == [0o750, 0o750, 0o640]


def test_nothing_but_the_files_is_left_in_the_directory(files: DirectoryWorkspace, root: Path) -> None:
    files.write("new", "x")
    files.write("new", "y")
    replaced(files, "", "-")
    refusal(lambda: files.write("new", "\ud800"))
    files.move("new", "c")
    files.remove("c")
    files.undo()
    files.undo()
    assert sorted(on_disk(root)) == ["b.txt", "new", "sub/a.py"]


# -------------------------------------------------------------------- what others change


def changed(files: DirectoryWorkspace, operation: Callable[[], object], *paths: str) -> None:
    assert refusal(operation) == ("CHANGED", {"path": paths[0], "paths": list(paths)})


@pytest.mark.parametrize("read_before", [False, True])
def test_what_somebody_else_has_changed_is_reported_not_overwritten(
    files: DirectoryWorkspace, root: Path, read_before: bool
) -> None:
    if read_before:
        files.read("b.txt")
    (root / "b.txt").write_bytes(b"theirs")
    for operation in (
        lambda: files.write("b.txt", "ours"),
        lambda: files.write("b.txt", "ours", range_of(1, 1, 1, 1)),
        lambda: files.append("b.txt", "ours"),
        lambda: files.edit("b.txt", "theirs", "ours"),
        lambda: files.replace(Query("theirs"), "ours"),
        lambda: files.remove("b.txt"),
        lambda: files.move("b.txt", "c"),
        lambda: files.move("sub/a.py", "b.txt"),
        lambda: files.clear(),
    ):
        changed(files, operation, "b.txt")
    assert on_disk(root) == {"b.txt": b"theirs", "sub/a.py": b"a\n"}
    assert files.read("b.txt") == "theirs"
    files.append("b.txt", " and ours")
    assert (root / "b.txt").read_bytes() == b"theirs and ours"


def test_a_change_of_the_same_size_and_time_is_found(files: DirectoryWorkspace, root: Path) -> None:
    files.write("b.txt", "ours")
    times = (root / "b.txt").stat()
    (root / "b.txt").write_bytes(b"mine")
    os.utime(root / "b.txt", ns=(times.st_atime_ns, times.st_mtime_ns))
    changed(files, lambda: files.append("b.txt", "!"), "b.txt")


def test_a_file_that_was_only_touched_has_not_changed(files: DirectoryWorkspace, root: Path) -> None:
    files.read("b.txt")
    os.utime(root / "b.txt", ns=(1, 1))
    assert files.append("b.txt", "!").text == "b!"


def test_what_somebody_else_has_made_is_not_overwritten_before_it_was_read(
    files: DirectoryWorkspace, root: Path
) -> None:
    (root / "new").write_bytes(b"theirs")
    changed(files, lambda: files.write("new", "ours"), "new")
    changed(files, lambda: files.move("b.txt", "new"), "new")
    assert [info.path for info in files.infos()] == ["b.txt", "new", "sub/a.py"]
    changed(files, lambda: files.write("new", "ours"), "new")
    files.read("new")
    assert files.write("new", "ours").state == "modified"


def test_what_somebody_else_has_removed_is_not_made_again_before_that_was_seen(
    files: DirectoryWorkspace, root: Path
) -> None:
    (root / "b.txt").unlink()
    changed(files, lambda: files.write("b.txt", "ours"), "b.txt")
    changed(files, lambda: files.remove("b.txt"), "b.txt")
    assert files.read("b.txt") is None
    assert files.write("b.txt", "ours").state == "created"


def test_a_replacement_names_all_files_that_somebody_else_has_changed_and_changes_none(
    files: DirectoryWorkspace, root: Path
) -> None:
    files.write("c", "x")
    (root / "b.txt").write_bytes(b"x")
    (root / "sub" / "a.py").write_bytes(b"x")
    (root / "untouched").write_bytes(b"y")
    changed(files, lambda: files.replace(Query("x"), "z"), "b.txt", "sub/a.py")
    assert on_disk(root) == {"b.txt": b"x", "c": b"x", "sub/a.py": b"x", "untouched": b"y"}


def test_two_workspaces_on_one_directory_see_each_other(files: DirectoryWorkspace, root: Path) -> None:
    other = DirectoryWorkspace(root)
    files.write("b.txt", "first")
    changed(other, lambda: other.write("b.txt", "second"), "b.txt")
    other.read("b.txt")
    other.write("b.txt", "second")
    changed(files, lambda: files.append("b.txt", "!"), "b.txt")
    other.close()


# -------------------------------------------------------------------- undoing


CALLS: list[Callable[[DirectoryWorkspace], object]] = [
    lambda files: files.write("b.txt", "x"),
    lambda files: files.write("deep/new", "x"),
    lambda files: files.move("b.txt", "deep/new"),
    lambda files: files.move("b.txt", "sub/a.py"),
    lambda files: files.remove("latin"),
    lambda files: files.clear(),
    lambda files: files.replace(Query("", limit=3), "-"),
]


@pytest.mark.parametrize("call", CALLS)
def test_a_call_is_put_back_as_a_whole(root: Path, call: Callable[[DirectoryWorkspace], object]) -> None:
    (root / "latin").write_bytes(LATIN)
    files = DirectoryWorkspace(root)
    files.write("b.txt", "before")
    before, listed = on_disk(root), files.infos()
    call(files)
    assert on_disk(root) != before
    assert files.undo()
    assert on_disk(root) == before
    assert files.infos() == listed
    assert files.undo() == ("b.txt",)
    assert files.undo() == ()
    assert (root / "b.txt").read_bytes() == b"b"
    files.close()


@pytest.mark.parametrize("read_before", [False, True])
def test_nothing_is_put_back_over_what_somebody_else_has_changed(
    files: DirectoryWorkspace, root: Path, read_before: bool
) -> None:
    replaced(files, "", "-", limit=3)
    (root / "sub" / "a.py").write_bytes(b"theirs")
    if read_before:
        files.read("sub/a.py")
    before = on_disk(root)
    changed(files, files.undo, "sub/a.py")
    assert on_disk(root) == before


def test_each_change_is_told(root: Path) -> None:
    told: list[Change] = []
    files = DirectoryWorkspace(root, announce=told.append)
    written = files.write("c", "x")
    files.move("c", "d")
    files.remove("d")
    files.undo()
    files.undo()
    files.clear()
    assert told == [
        Written(written),
        Moved("c", "d"),
        Removed("d"),
        Written(create_file("d", "x", state="modified")),
        Written(written),
        Removed("d"),
        Cleared(),
    ]
    files.close()


# -------------------------------------------------------------------- limits


def limited(root: Path, **limits: int) -> DirectoryWorkspace:
    return DirectoryWorkspace(root, limits=Limits(**limits))


def test_a_file_over_the_limit_is_listed_but_neither_read_nor_written(root: Path) -> None:
    (root / "large").write_bytes(b"x" * 11)
    files = limited(root, file_bytes=10)
    assert [(info.path, info.size, info.kind) for info in files.infos()][1] == ("large", 11, "binary")
    for operation in (
        lambda: files.read("large"),
        lambda: files.append("large", "x"),
        lambda: files.write("large", "x"),
        lambda: files.write("b.txt", "x" * 11),
        lambda: files.write("new", "é" * 6),
    ):
        code, context = refusal(operation)
        assert (code, context["limit"]) == ("LIMIT", 10)
    assert replaced(files, "x", "y") == (0, 0)
    files.write("new", "é" * 5)
    files.append("b.txt", "!")
    assert files.move("large", "sub/large")
    assert files.undo() == ()  # it could not be held, so nothing before it can be put back either
    assert on_disk(root)["sub/large"] == b"x" * 11
    files.close()


def test_there_may_be_only_so_many_files(root: Path) -> None:
    files = limited(root, files=2)
    assert refusal(lambda: files.write("c", "x")) == ("LIMIT", {"path": "c", "limit": 2})
    files.write("b.txt", "x")
    files.close()
    assert refusal(lambda: limited(root, files=1)) == ("LIMIT", {"path": str(root), "limit": 1})


def test_only_so_much_is_read_at_once(root: Path) -> None:
    files = limited(root, total_bytes=2)
    assert refusal(lambda: files.texts())[0] == "LIMIT"
    assert refusal(lambda: files.replace(Query("a"), "b"))[0] == "LIMIT"
    assert len(files.infos()) == 2
    files.close()


def test_text_that_utf_8_cannot_hold_is_refused_by_its_place(files: DirectoryWorkspace, root: Path) -> None:
    files.write("b.txt", "a\nb😀c")
    where = {"path": "b.txt", "line": 2, "column": 2}
    assert refusal(lambda: files.write("b.txt", "", range_of(2, 3, 2, 4))) == ("SURROGATE", where)
    assert (root / "b.txt").read_text() == "a\nb😀c"


# -------------------------------------------------------------------- the same as in memory


def test_results_are_those_of_a_workspace_in_memory(files: DirectoryWorkspace) -> None:
    memory = MemoryWorkspace([create_file("b.txt", "b"), create_file("sub/a.py", "a\n")])

    def both(operation: Callable[[Any], object]) -> None:
        assert operation(files) == operation(memory)
        assert files.files() == memory.files()

    both(lambda w: w.write("new", "é😀\n"))
    both(lambda w: w.write("new", "x", range_of(1, 2, 2, 1)))
    both(lambda w: w.replace(Query("[ab]", regex=True, limit=1), "$&"))
    both(lambda w: w.prepend("new", "y"))
    both(lambda w: w.edit("new", "y", "z"))
    both(lambda w: w.move("new", "b.txt"))
    both(lambda w: w.move("gone", "b.txt"))
    both(lambda w: w.move("b.txt", "b.txt"))
    both(lambda w: w.remove("gone"))
    both(lambda w: w.undo())
    both(lambda w: w.infos())
    both(lambda w: w.read("sub/a.py"))
    both(lambda w: w.clear())
