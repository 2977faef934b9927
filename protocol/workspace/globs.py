"""Globs: patterns of whole paths, matched in time linear in the path.

`*` is any run of characters and `?` any one, neither of them `/`; `[a-z]` one of these and `[!a-z]` one that is none of
these; `{a,b}` either of two; `**` between slashes any number of folders, none included. A backslash takes the next
character as it is. A glob without a slash is about the last name of a path, in whatever folder it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from greenroom.protocol.errors import PatternError, WorkspaceError
from greenroom.protocol.patterns import compile_pattern
from greenroom.protocol.workspace.slicing import printable

__all__ = ["Glob", "compile_glob"]

Glob: TypeAlias = Callable[[str], bool]
"""Whether a whole path fits."""

LONGEST: Final = 4096
"""How many characters a glob may have: as many as a path (PATH_MAX of Linux)."""

ALTERNATIVES: Final = 100
"""How many globs without braces one with braces may stand for."""

_ANY: Final = r"[\s\S]"
_ONE: Final = r"(?:[\ud800-\udbff][\udc00-\udfff]|[^/])"
"""One character, of which an emoji has two units."""


def compile_glob(glob: str) -> Glob:
    """What tells whether a path fits. Raises `WorkspaceError` PATTERN (context `query`) for what is no glob."""
    try:
        if len(glob) > LONGEST:
            raise ValueError(f"it has {len(glob):,} characters, and may have {LONGEST:,}.")
        plain = list(_expanded(glob))
        return compile_pattern(f"^(?:{'|'.join(map(_path_source, plain))})$", limit=None).matches
    except (ValueError, PatternError) as error:
        why = error.message if isinstance(error, PatternError) else str(error)
        shown = printable(glob[:80])
        raise WorkspaceError(
            "PATTERN", f"The glob `{shown}` cannot be used: {why}", {"query": printable(glob)}
        ) from None


def _expanded(glob: str) -> Iterator[str]:
    """The globs without braces that it stands for. Raises ValueError for braces that do not close, and too many."""
    done = 0
    line = [glob]
    while line:
        each = line.pop()
        parts = _first_braces(each)
        if parts is None:
            yield each
            done += 1
            continue
        before, choices, after = parts
        if done + len(line) + len(choices) > ALTERNATIVES:
            raise ValueError(f"its braces stand for more than {ALTERNATIVES} globs; look for one after another.")
        line.extend(f"{before}{choice}{after}" for choice in reversed(choices))


def _first_braces(glob: str) -> tuple[str, list[str], str] | None:
    """What is before the first pair of braces, the choices in it, and what is behind; `None` without one."""
    begin: int | None = None
    choices: list[str] = []
    depth = start = 0
    at = 0
    while at < len(glob):
        char = glob[at]
        if char == "\\":
            at += 1
        elif char == "{":
            depth += 1
            if begin is None:
                begin, start = at, at + 1
        elif char == "," and depth == 1:
            choices.append(glob[start:at])
            start = at + 1
        elif char == "}" and depth:
            depth -= 1
            if not depth:
                return glob[:begin], [*choices, glob[start:at]], glob[at + 1 :]
        at += 1
    if depth:
        raise ValueError("a `{` is not closed; write `\\{` for the character itself.")
    return None


def _path_source(glob: str) -> str:
    """The source of a pattern for a glob without braces."""
    glob = glob.removeprefix("./")
    if not glob:
        raise ValueError("it is empty; `**` stands for every file.")
    if glob.startswith("!"):
        raise ValueError("it says what is not wanted; say what is. Write `\\!` for the character itself.")
    if glob.startswith("/"):
        raise ValueError("it begins with `/`; begin it in the folder that is searched.")
    if glob.endswith("/"):
        raise ValueError(f"it names a folder; `{glob}**` stands for the files in it.")
    parts = glob.split("/")
    if ".." in parts or "." in parts or "" in parts:
        raise ValueError("a part of it is empty, `.` or `..`; name each folder.")
    if len(parts) == 1 and glob != "**":
        return f"(?:{_ANY}*/)?{_name_source(glob)}"
    *folders, last = parts
    sources = [f"(?:{_ANY}*/)?" if part == "**" else f"{_name_source(part)}/" for part in folders]
    return "".join([*sources, f"{_ANY}+" if last == "**" else _name_source(last)])


def _name_source(name: str) -> str:
    source: list[str] = []
    at = 0
    while at < len(name):
        char = name[at]
        at += 1
        if char == "*":
            if source[-1:] != ["[^/]*"]:
                source.append("[^/]*")
        elif char == "?":
            source.append(_ONE)
        elif char == "[":
            end = name.find("]", at + (2 if name[at : at + 1] in ("!", "^") else 1))
            if end < 0:
                raise ValueError("a `[` is not closed; write `\\[` for the character itself.")
            source.append(_class_source(name[at:end]))
            at = end + 1
        elif char == "\\":
            if at == len(name):
                raise ValueError("a backslash stands at the end of a name; parts are separated by `/`.")
            source.append(re.escape(name[at]))
            at += 1
        else:
            source.append(re.escape(char))
    return "".join(source)


def _class_source(inside: str) -> str:
    negated = inside[0] in "!^"
    members = inside[1:] if negated else inside
    if any(ord(char) > 0xFFFF for char in members):
        raise ValueError("an emoji, or another character beyond U+FFFF, stands in brackets; write it in `{a,b}`.")
    spelled = "".join(f"\\u{ord(char):04x}" if char != "-" else "-" for char in members)
    return f"[^/{spelled}]" if negated else f"[{spelled}]"
