"""Random calls of the workspace tool, in memory and in a directory, against texts that are plain lists of units.

The model knows nothing of strings: a text is a list of UTF-16 units, a query is looked for unit by unit. In a directory
somebody else changes files as well.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from greenroom.actors.system import open_runtime
from greenroom.actors.toolbox import workspace_tool
from greenroom.actors.workspace import Workspace, WorkspaceManager
from greenroom.protocol.errors import WorkspaceError
from greenroom.protocol.workspace import WORKSPACE_EVENTS, File, create_file
from greenroom.runtime.tools import Tool
from tests.stress.driver import Driver
from tests.stress.outcome import Outcome, machine

__all__ = ["SUITE", "InDirectory", "InMemory", "run"]

SUITE = 600

CALLS = 3
"""How many calls can be undone."""
PATHS = ["a", "b.md", "sub/c"]
TEXTS = ["", "a", "ab\n", "aab\r\nb", "é😀\n", "😀a😀", "\n\n", "bab\nab\r\n"]
QUERIES = ["a", "ab", "aa", "", "b\n", "\r", "😀", "B"]
PATTERNS = {"a+": "a+", "^a": r"\Aa", "b$": r"b\Z", ".": r"[^\n\r]", r"b?": "b?", r"\n": r"\n", r"[^a]": "[^a]"}
"""Patterns, and what means the same to Python over texts with one character a unit."""

Units = list[int]

paths, texts, numbers = st.sampled_from(PATHS), st.sampled_from(TEXTS), st.integers(1, 6)
looked_for = st.tuples(st.sampled_from(QUERIES), st.just(False)) | st.tuples(
    st.sampled_from([*PATTERNS]), st.just(True)
)
limits = st.none() | st.integers(1, 4)


Files = dict[str, "Entry"]


class Entry(NamedTuple):
    """What the model knows of one file."""

    units: Units
    state: str
    place: tuple[int, int, str]
    """By which a directory is listed: what others have made by its path, then what was made here."""


class Call(NamedTuple):
    """What can be undone: the files before a call, and those that it changed as they were after it."""

    before: Files
    after: dict[str, Entry | None]


def units_of(text: str) -> Units:
    data = text.encode("utf-16-le", "surrogatepass")
    return [data[at] + 256 * data[at + 1] for at in range(0, len(data), 2)]


def text_of(units: Units) -> str:
    return b"".join(unit.to_bytes(2, "little") for unit in units).decode("utf-16-le", "surrogatepass")


def lone(units: Units) -> bool:
    """Whether a unit is half of a character without its other half."""
    try:
        text_of(units).encode()
    except UnicodeEncodeError:
        return True
    return False


def spans_of(units: Units, query: str, regex: bool, sensitive: bool) -> list[tuple[int, int]]:
    """Where the query is: by Python over one character a unit, or by looking at each place."""
    if regex:
        flags = re.ASCII | (0 if sensitive else re.IGNORECASE)
        return [match.span() for match in re.finditer(PATTERNS[query], "".join(map(chr, units)), flags)]
    wanted = units_of(query)
    found: list[tuple[int, int]] = []
    at = 0
    while at + len(wanted) <= len(units):
        here = units[at : at + len(wanted)]
        if here == wanted or (not sensitive and folded(here) == folded(wanted)):
            found.append((at, at + len(wanted)))
            at += max(len(wanted), 1)
        else:
            at += 1
    return found


def folded(units: Units) -> Units:
    return [unit - 32 if ord("a") <= unit <= ord("z") else unit for unit in units]


def lines_of(units: Units) -> list[Units]:
    lines: list[Units] = [[]]
    for unit in units:
        if unit == ord("\n"):
            lines.append([])
        else:
            lines[-1].append(unit)
    return lines


def offset_of(units: Units, line: int, column: int) -> int:
    lines = lines_of(units)
    line = min(line, len(lines))
    return sum(len(before) + 1 for before in lines[: line - 1]) + min(column - 1, len(lines[line - 1]))


class InMemory(RuleBasedStateMachine):
    """One active workspace."""

    on_disk = False

    workspaces: WorkspaceManager
    workspace: Workspace | None = None
    tool: Tool

    def __init__(self) -> None:
        super().__init__()
        self.driver = Driver()
        self.folder: Path | None = None
        self.files: Files = {}
        """In order, but for a directory's."""
        self.calls: list[Call] = []
        """Those that can be undone."""
        self.seen: Files = {}
        """As they were when they were last read or changed here."""
        self.told: dict[str, str | None] = {}
        """The texts, as the events tell of them."""
        self.count = 0

    @initialize(seed=st.dictionaries(paths, texts, min_size=1))
    def begin(self, seed: dict[str, str]) -> None:
        runtime = self.driver.enter(open_runtime())
        if self.on_disk:
            shared = Path("/dev/shm")
            self.folder = Path(tempfile.mkdtemp(dir=shared if shared.is_dir() else None))
            for path, text in seed.items():
                self.save(path, text)
        self.files = {path: Entry(units_of(text), "created", (0, 0, path)) for path, text in seed.items()}
        self.see(*seed)
        self.told.update(seed)

        async def opened() -> Workspace:
            self.workspaces = WorkspaceManager(runtime.tree, undo=CALLS)
            if self.folder is not None:
                return await self.workspaces.mount(self.folder)
            return self.workspaces.add(seed=[create_file(path, text) for path, text in seed.items()])

        self.workspace = self.driver.call(opened)
        self.tool = workspace_tool(self.workspaces, undo=True)
        for event in WORKSPACE_EVENTS:
            self.workspace.emitter.on(event, getattr(self, f"hear_{event}"))

    def save(self, path: str, text: str) -> None:
        assert self.folder is not None
        (self.folder / path).parent.mkdir(exist_ok=True)
        (self.folder / path).write_bytes(text.encode())

    def teardown(self) -> None:
        try:
            self.driver.close()
        finally:
            if self.folder is not None:
                shutil.rmtree(self.folder)

    # ---------------------------------------------------------------- what is told

    def hear_write(self, file: File) -> None:
        self.told[file.path] = file.text

    def hear_remove(self, path: str) -> None:
        del self.told[path]

    def hear_move(self, source: str, target: str) -> None:
        self.told[target] = self.told.pop(source)

    def hear_clear(self) -> None:
        self.told.clear()

    # ---------------------------------------------------------------- the model

    def call(self, operation: str, **args: Any) -> Any:
        """What the tool returns, or the code of what it raises."""
        told = {"operation": operation, **{name.rstrip("_"): args[name] for name in args if args[name] is not None}}
        try:
            return self.driver.call(self.tool.execute, told)
        except WorkspaceError as error:
            return error.code

    def refusal(self, *touched: str, results: Iterable[Units] = ()) -> str | None:
        """The code that a call must be refused with, if it must."""
        if any(self.files.get(path) != self.seen.get(path) for path in touched):
            return "CHANGED"
        if self.folder is not None and any(map(lone, results)):
            return "SURROGATE"
        return None

    def changes(self, files: Files, *touched: str) -> None:
        self.calls = [*self.calls, Call(self.files, {path: files.get(path) for path in touched})][-CALLS:]
        self.files = files
        self.see(*touched)

    def see(self, *paths: str) -> None:
        for path in paths:
            self.seen.pop(path, None)
            if path in self.files:
                self.seen[path] = self.files[path]

    def put(self, operation: str, path: str, units: Units, **args: Any) -> None:
        code = self.refusal(path, results=[units])
        result = self.call(operation, path=path, **args)
        if code is not None:
            assert result == code
            return
        known = self.files.get(path)
        self.count += 1
        entry = Entry(units, "created", (1, self.count, "")) if known is None else Entry(units, "modified", known.place)
        assert (result["path"], result["state"]) == (path, entry.state)
        self.changes(self.files | {path: entry}, path)

    def units(self, path: str) -> Units:
        return self.files[path].units if path in self.files else []

    # ---------------------------------------------------------------- rules

    @rule(operation=st.sampled_from(["write", "prepend", "append"]), path=paths, text=texts)
    def put_text(self, operation: str, path: str, text: str) -> None:
        there, given = self.units(path), units_of(text)
        units = {"write": given, "prepend": given + there, "append": there + given}[operation]
        self.put(operation, path, units, content=text)

    @rule(path=paths, text=texts, line=numbers, column=numbers, to_line=numbers, to_column=numbers)
    def splice(self, path: str, text: str, line: int, column: int, to_line: int, to_column: int) -> None:
        args = {"fromLine": line, "fromColumn": column, "toLine": to_line, "toColumn": to_column, "content": text}
        if path not in self.files:
            assert self.call("splice", path=path, **args) == (self.refusal(path) or "MODALITY")
        elif (line, column) > (to_line, to_column):
            assert self.call("splice", path=path, **args) == (self.refusal(path) or "RANGE")
        else:
            there = self.units(path)
            start, end = offset_of(there, line, column), offset_of(there, to_line, to_column)
            self.put("splice", path, there[:start] + units_of(text) + there[end:], **args)

    @rule(query=looked_for, replacement=texts, limit=limits, sensitive=st.booleans())
    def replace(self, query: tuple[str, bool], replacement: str, limit: int | None, sensitive: bool) -> None:
        changed: Files = {}
        left, count = limit, 0
        for path, entry in self.listed():
            spans = spans_of(entry.units, *query, sensitive)[:left]
            if not spans:
                continue
            units, at = Units(), 0
            for start, end in spans:
                units += entry.units[at:start] + units_of(replacement)
                at = end
            changed[path] = Entry(units + entry.units[at:], "modified", entry.place)
            count += len(spans)
            left = None if left is None else left - len(spans)
        text, regex = query
        result = self.call(
            "replace", query=text, regex=regex, replacement=replacement, sensitive=sensitive, limit=limit
        )
        code = self.refusal(*changed, results=[entry.units for entry in changed.values()])
        if code is not None:
            assert result == code
            return
        assert (result["occurrences"], result["files"]) == (count, len(changed))
        if changed:
            self.changes(self.files | changed, *changed)

    @rule(query=looked_for, limit=limits, sensitive=st.booleans())
    def search(self, query: tuple[str, bool], limit: int | None, sensitive: bool) -> None:
        lines = [
            (path, number, line)
            for path, entry in self.listed()
            for number, line in enumerate(lines_of(entry.units), start=1)
        ]
        hits = [(*place, span) for place in lines for span in spans_of(place[2], *query, sensitive)][:limit]
        text, regex = query
        result = self.call("search", query=text, regex=regex, sensitive=sensitive, limit=limit)
        if any(lone(line) for _, _, line, _ in hits):
            assert result == "SURROGATE"
        else:
            assert result == [
                {"path": path, "line": number, "column": start + 1, "length": end - start, "content": text_of(line)}
                for path, number, line, (start, end) in hits
            ]

    @rule(source=paths, to=paths)
    def move(self, source: str, to: str) -> None:
        code = self.refusal(source, to) if source != to else None
        result = self.call("move", from_=source, to=to)
        if code is not None:
            assert result == code
            return
        moved = source != to and source in self.files
        assert result == {"from": source, "to": to, "moved": moved}
        if moved:
            files: Files = {}
            for path, entry in self.files.items():
                if path == source:
                    files[to] = entry._replace(state="modified")
                elif path != to:
                    files[path] = entry
            self.changes(files, source, to)

    @rule(path=paths)
    def remove(self, path: str) -> None:
        result = self.call("remove", path=path)
        if (code := self.refusal(path)) is not None:
            assert result == code
            return
        assert result == {"path": path, "removed": path in self.files}
        if path in self.files:
            self.changes({other: entry for other, entry in self.files.items() if other != path}, path)

    @rule(path=paths)
    def read(self, path: str) -> None:
        result = self.call("read", path=path)
        self.see(path)
        if path not in self.files:
            assert result is None
        else:
            assert result == ("SURROGATE" if lone(self.units(path)) else text_of(self.units(path)))

    @precondition(lambda self: self.calls)
    @rule()
    def undo(self) -> None:
        result = self.call("undo")
        before, after = self.calls[-1]
        if any(self.units_at(path) != (entry and entry.units) for path, entry in after.items()):
            assert result == "CHANGED"
            return
        assert (result["undone"], set(result["paths"])) == (True, set(after))
        others = {path: entry for path, entry in self.files.items() if path not in after}
        kept = {path: others.get(path, entry) for path, entry in before.items() if path in after or path in others}
        self.files = kept | others
        self.calls.pop()
        self.see(*after)

    # ---------------------------------------------------------------- what always holds

    def units_at(self, path: str) -> Units | None:
        return self.files[path].units if path in self.files else None

    def listed(self) -> list[tuple[str, Entry]]:
        entries = list(self.files.items())
        return entries if self.folder is None else sorted(entries, key=lambda entry: (entry[1].place, entry[0]))

    @invariant()
    def files_are_those_of_the_model(self) -> None:
        if self.workspace is None:
            return
        files = self.driver.call(self.workspace.files)
        expected = [(path, text_of(entry.units), entry.state) for path, entry in self.listed()]
        assert [(file.path, file.text, file.state) for file in files] == expected
        assert self.told == {path: text for path, text, _ in expected}
        for file in files:
            assert file.size == len((file.text or "").encode("utf-8", "surrogatepass"))
            assert file.lines == (len(lines_of(self.units(file.path))) if file.text else 0)
        if self.folder is not None:
            found = {str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file()}
            assert found == {path for path, _, _ in expected}


class InDirectory(InMemory):
    """The same in a directory, where somebody else changes files as well."""

    on_disk = True

    @rule(path=paths, text=texts, gone=st.booleans())
    def meddle(self, path: str, text: str, gone: bool) -> None:
        """Somebody else removes a file, or makes it what it has never been before."""
        assert self.folder is not None
        if gone:
            (self.folder / path).unlink(missing_ok=True)
            self.files = {other: entry for other, entry in self.files.items() if other != path}
            self.told.pop(path, None)
        else:
            self.count += 1
            told = f"{text}{self.count}"
            self.save(path, told)
            known = self.seen.get(path, Entry([], "created", (0, 0, path)))
            self.files = self.files | {path: known._replace(units=units_of(told))}
            self.told[path] = told


_in_memory, _in_directory = machine(InMemory, steps=20), machine(InDirectory, steps=20)


def run(examples: int, seed: int) -> Outcome:
    """Half of the examples in memory and half in a directory."""
    memory = _in_memory(examples - examples // 2, seed)
    directory = _in_directory(examples // 2, seed) if examples > 1 else Outcome(0, [])
    return Outcome(memory.examples + directory.examples, memory.failures + directory.failures)
