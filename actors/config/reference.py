"""`docs/config.md`: every table and key of the configuration, from the structs that read it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from greenroom.actors.config.tables import TABLES
from greenroom.actors.docs import Member, members_of

__all__ = ["config_reference", "explain"]

_TOP: Final = """\
# Configuration

*Made from the code by `python -m greenroom.docs`.*

One TOML file, a table for each component: `greenroom serve --config FILE`. A flag wins over the file. An unknown table
or key is refused with the nearest one that there is, all of them at once. Secrets do not stand in it: the file of
access tokens names the environment variables that hold them, or their hashes.

`greenroom config check FILE` says whether the file can be used, `greenroom config show FILE` what it comes to with all
defaults, and `greenroom config explain KEY` what one key means.
"""


def config_reference() -> str:
    """The whole document."""
    return "\n".join([_TOP, *_tables()])


def _tables() -> Iterator[str]:
    for name, struct in TABLES.items():
        yield f"## `[{name}]`\n"
        yield f"{_about(struct)}\n"
        yield "| key | type | default | |"
        yield "| --- | --- | --- | --- |"
        for member in _members(struct):
            yield f"| `{member.name}` | {_cell(member.type)} | {_default(member)} | {_cell(member.about)} |"
        yield ""


def explain(key: str) -> list[str] | None:
    """What there is to say of a table or of `table.key`, a line each; None if there is no such thing."""
    name, _, wanted = key.strip("[]").partition(".")
    struct = TABLES.get(name)
    if struct is None:
        return None
    members = _members(struct)
    if not wanted:
        return [f"[{name}]", _about(struct), *(f"{name}.{member.name}: {member.about}" for member in members)]
    found = next((member for member in members if member.name == wanted), None)
    if found is None:
        return None
    return [f"{name}.{found.name}", found.about, f"Type: {found.type}. Default: {_default(found)}."]


def _members(struct: type[Struct]) -> list[Member]:
    """The keys of a table."""
    return members_of(struct, lambda nested: nested.__name__)


def _about(struct: type[Struct]) -> str:
    return " ".join(inspect.cleandoc(struct.__doc__ or "").split())


def _default(member: Member) -> str:
    if member.default is None:
        return "**required**"
    return member.default or "none"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
