"""The tools that a configuration names in its policies: which of them there have to be, and which may come later."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final, final

from greenroom.actors.config import Config, SpillTable, table_of
from greenroom.actors.config.nearest import nearest
from greenroom.actors.mcp.names import MOUNTED
from greenroom.protocol.errors import ConfigError
from greenroom.runtime.tools import ToolManager

__all__ = ["NamedTools", "cautions", "check_names", "names_of_commands"]

_KEYS: Final = (
    ("approvals", "tools"),
    ("policies.timeout", "tools"),
    ("policies.retry", "tools"),
    ("policies.spill", "skip"),
    ("policies.repeats", "exclude"),
)
"""The tables and keys that name tools."""

_UNCHECKED: Final = frozenset(SpillTable(max_inline_bytes=1).skip)
"""What `policies.spill.skip` has by itself, whether there is such a tool or not."""


@final
class NamedTools(Collection[str]):
    """The tools that a policy is for, by the names that a configuration has for them.

    One that an MCP server is to bring may be missing still, or be misspelled. As long as one is, nobody can tell which
    tool was meant, so that the tools of all MCP servers count as named. `others` are names of tools that are there, but
    not in the registry.
    """

    def __init__(self, names: Collection[str], registry: ToolManager, others: Collection[str] = ()) -> None:
        self._names = frozenset(names)
        self._mounted = sorted(name for name in self._names.difference(others) if name.startswith(MOUNTED))
        self._registry = registry

    @property
    def missing(self) -> list[str]:
        """The named tools that no MCP server has brought."""
        return [name for name in self._mounted if self._registry.tool(name) is None]

    def __contains__(self, name: object) -> bool:
        return name in self._names or (isinstance(name, str) and name.startswith(MOUNTED) and bool(self.missing))

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def names_of_commands(config: Config) -> set[str]:
    """The tools that `greenroom chat` and `greenroom mcp` offer under this configuration beside those that every
    command does: one file may be for them and for a server."""
    names = {"ask", "agent"}
    if config.workspaces is not None and config.workspaces.tools == "files":
        names.add("ask_user_question")
    if config.subagents is not None:
        names |= {"subagent", "report"}
        if config.subagents.continuable:
            names |= {"send_message", "interrupt_agent", "list_agents"}
    return names


def check_names(config: Config, offered: Collection[str]) -> None:
    """Raise ConfigError CONFIG_UNKNOWN_TOOL for names that are of none of the tools offered, all of them at once
    (context `keys`: where each stands, the `tool`, and the `nearest` one if any is near; `known`).

    A policy for a tool that there is not would let the tool that was meant pass. Tools of MCP servers come later, so
    that their names are not refused: see `NamedTools`.
    """
    unknown = [
        {"key": key, "tool": name, "nearest": nearest(name, offered)}
        for key, names in _named(config)
        for name in names
        if name not in offered and not name.startswith(MOUNTED)
    ]
    if unknown:
        known = sorted(offered)
        told = (
            f"{each['key']} names {each['tool']}" + (f" (did you mean {each['nearest']}?)" if each["nearest"] else "")
            for each in unknown
        )
        raise ConfigError(
            "CONFIG_UNKNOWN_TOOL",
            f"There is no such tool: {', '.join(told)}. With this configuration there are {', '.join(known)}.",
            {"keys": unknown, "known": known},
        )


def cautions(config: Config, registry: ToolManager, others: Collection[str] = ()) -> Iterator[str]:
    """What can be used as it is, but does more or less than its writer may expect, a sentence each."""
    approvals, timeout = config.approvals, config.policies.timeout
    if approvals.tools and approvals.terminal is None and approvals.mode == "ask":
        yield (
            f"approvals.terminal names nobody who is asked: every call of {', '.join(approvals.tools)} is refused, "
            "unless `greenroom chat` asks whoever runs it, or a program listens to approval/request."
        )
    for key, names, what in (
        ("approvals.tools", approvals.tools, "needs approval"),
        ("policies.timeout.tools", () if timeout is None else timeout.tools or (), "has that deadline"),
    ):
        if missing := NamedTools(names, registry, others).missing:
            yield (
                f"{key} names {', '.join(missing)}, which no MCP server has brought yet: until one does, every tool of "
                f"every MCP server {what}."
            )


def _named(config: Config) -> Iterator[tuple[str, tuple[str, ...]]]:
    for table, key in _KEYS:
        found: Any = table_of(config, table)
        names: tuple[str, ...] = () if found is None else getattr(found, key) or ()
        if key == "skip":
            names = tuple(name for name in names if name not in _UNCHECKED)
        yield f"{table}.{key}", names
