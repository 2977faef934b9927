"""`docs/config.md`: every table and key of the configuration, from the structs that read it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from greenroom.actors.config.nearest import nearest
from greenroom.actors.config.seams import SEAMS
from greenroom.actors.config.tables import TABLES
from greenroom.actors.docs import Member, members_of

__all__ = ["config_reference", "explain", "nearest_key"]

_TOP: Final = """\
# Configuration

*Made from the code by `python -m greenroom.docs`.*

One TOML file, a table for each component: `greenroom serve --config FILE`, and `chat`, `mcp` and `tools` take it too. A
flag wins over the file. An unknown table or key is refused with the nearest one that there is, all of them at once.
Secrets do not stand in it: where one is needed it has the name of a credential, which is looked up in the environment
and in the file of `[credentials]`; the file of access tokens names them likewise, or has their hashes.

`greenroom config check FILE` says whether the file can be used, `greenroom config show FILE` what it comes to with all
defaults, and `greenroom config explain KEY` what one key means.
"""


_NAMES: Final = {struct: name for name, struct in TABLES.items()}


_SEAMS_TOP: Final = """\
## Seams

Places that others may fill. A package provides for one by an entry point in the group of the seam, `greenroom.` and
its name; once it is installed, the key chooses it by the name of the entry point. `examples/provider_package` is a
whole one. A provider that cannot be loaded, that fails while it opens, or whose name is taken is refused with the name
of its distribution, and only where it is used.
"""


def config_reference() -> str:
    """The whole document."""
    return "\n".join([_TOP, *_tables(), *_seams()])


def _tables() -> Iterator[str]:
    for name, struct in TABLES.items():
        yield f"## `[{name}]`\n"
        yield f"{_about(struct)}\n"
        yield "| key | type | default | requires | |"
        yield "| --- | --- | --- | --- | --- |"
        for member in _members(struct):
            cells = (_cell(member.type), _default(member), _required(f"{name}.{member.name}"), _cell(member.about))
            yield f"| `{member.name}` | {' | '.join(cells)} |"
        yield ""


def _seams() -> Iterator[str]:
    yield _SEAMS_TOP
    yield "| seam | kind | chosen by | comes along | what a provider is called with and gives |"
    yield "| --- | --- | --- | --- | --- |"
    for name, seam in SEAMS.items():
        built_in = ", ".join(f"`{each}`" for each in seam.built_in)
        yield f"| `{name}`: {seam.about} | {seam.kind} | `{seam.chosen_by}` | {built_in} | {seam.given} |"
    yield ""


def explain(key: str) -> list[str] | None:
    """What there is to say of a table or of `table.key`, a line each; None if there is no such thing."""
    spelled = key.strip("[]")
    name, wanted = (spelled, "") if spelled in TABLES else spelled.rpartition(".")[::2]
    struct = TABLES.get(name)
    if struct is None:
        return None
    members = _members(struct)
    if not wanted:
        return [f"[{name}]", _about(struct), *(f"{name}.{member.name}: {member.about}" for member in members)]
    found = next((member for member in members if member.name == wanted), None)
    if found is None:
        return None
    required = _required(f"{name}.{found.name}")
    needs = [f"Requires: {required}."] if required else []
    return [f"{name}.{found.name}", found.about, *needs, f"Type: {found.type}. Default: {_default(found)}."]


def nearest_key(key: str) -> str | None:
    """The table or the key that was probably meant by one that there is not."""
    keys = [f"{name}.{key}" for name, struct in TABLES.items() for key in struct.__struct_fields__]
    return nearest(key.strip("[]"), (*TABLES, *keys))


def _required(key: str) -> str:
    """What a key requires, if it names who fills a seam."""
    seam = next((name for name, seam in SEAMS.items() if seam.chosen_by == key), None)
    return "" if seam is None else f"a provider of `{seam}`"


def _members(struct: type[Struct]) -> list[Member]:
    """The keys of a table."""
    return members_of(struct, lambda nested: f"table [{_NAMES[nested]}]")


def _about(struct: type[Struct]) -> str:
    return " ".join(inspect.cleandoc(struct.__doc__ or "").split())


def _default(member: Member) -> str:
    if member.default is None:
        return "**required**"
    return member.default or "none"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
