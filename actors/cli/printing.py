"""What a command prints: JSON for a program, text and errors for a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

import msgspec
from rich.console import Console as Screen
from rich.text import Text

from greenroom.actors.cli.drawing import plain
from greenroom.protocol.errors import Deadlock, GreenroomError

__all__ = ["print_error", "print_json", "screen"]

_ENDLESS: Final = 1_000_000
"""Columns of what is no terminal: enough for any line."""


def screen() -> Screen:
    """Standard output for a person. Where it is no terminal, but a pipe or a file, no line is wrapped or cut."""
    found = Screen()
    return found if found.is_terminal else Screen(width=_ENDLESS)


def print_json(value: object) -> None:
    """Print a value on standard output, indented."""
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def print_error(error: GreenroomError) -> None:
    """Say on standard error what was refused or has failed, with all that it names."""
    screen = Screen(stderr=True, soft_wrap=True)
    screen.print(Text.assemble((error.code, "bold red"), "  ", plain(error.message)))
    if isinstance(error, Deadlock):
        screen.print(Text("  " + " -> ".join(plain(name) for name in error.path)))
    for problem in error.context.get("problems", ()):
        place, detail = _parts(problem)
        if detail not in error.message:  # the first one mostly stands there
            screen.print(Text(f"  {plain(f'{place}: {detail}' if place else detail)}"))


def _parts(problem: object) -> tuple[str, str]:
    """Where the problem is, if it says so, and what it is."""
    if isinstance(problem, Mapping):
        told = cast("Mapping[str, object]", problem)
        return str(told.get("field") or ""), str(told.get("detail") or "")
    return "", str(problem)
