"""Who fills the seams of a configuration, opened for as long as a command runs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import trio
from msgspec import Struct

from greenroom.actors.config import Config
from greenroom.actors.config.seams import SEAMS, open_seam
from greenroom.actors.database import DriverFactory
from greenroom.actors.session import Persistence
from greenroom.actors.system import Runtime
from greenroom.runtime.policies import Meter, SpillStore
from greenroom.runtime.seams import Seam, check_groups
from greenroom.runtime.tools import Tool

__all__ = ["Providers", "check_providers", "chosen", "entered", "made", "open_providers"]


class Providers(Struct, frozen=True, kw_only=True):
    """What has been opened. None where the configuration has no use for it."""

    spill: SpillStore | None = None
    meter: Meter | None = None
    sessions: Persistence | None = None
    drivers: dict[str, DriverFactory] = {}
    tools: tuple[Callable[[Runtime], list[Tool]], ...] = ()
    """What each package adds, once there is a runtime. Each raises `SeamError` BROKEN_PROVIDER for what is no tool."""


@asynccontextmanager
async def open_providers(config: Config) -> AsyncGenerator[Providers]:
    """Open what the policies and the databases of the configuration need, for the length of the block.

    Raises `SeamError`: NO_PROVIDER, DUPLICATE_PROVIDER, and BROKEN_PROVIDER for one that cannot be loaded, raises while
    it opens, or gives something else than it should.
    """
    spilling, measuring = config.policies.spill, config.policies.metrics
    store: Any = None
    meter: Any = None
    sessions: Any = None
    async with AsyncExitStack() as stack:
        if spilling is not None:
            seam, make = await chosen("spill", spilling.store)
            store = made(seam, spilling.store, lambda: make(spilling.root), "save")
        if config.sessions is not None:
            place = config.sessions
            seam, make = await chosen("session_persistence", place.persistence)
            sessions = made(seam, place.persistence, lambda: make(place.root, project=place.project), "claim")
        if measuring is not None:
            seam, make = await chosen("telemetry", measuring.meter)
            meter = await entered(stack, seam, measuring.meter, make, "create_counter")
        drivers: dict[str, DriverFactory] = {}
        for name in () if config.databases is None else config.databases.drivers:
            _, drivers[name] = await chosen("storage", name)
        tools = [partial(_tools_of, name, *await chosen("tools", name)) for name in config.tools.add]
        yield Providers(spill=store, meter=meter, sessions=sessions, drivers=drivers, tools=tuple(tools))


async def check_providers(config: Config) -> None:
    """Raise what choosing a provider for each seam of the configuration raises, and what `check_groups` does of what is
    installed. Nothing is opened."""
    await trio.to_thread.run_sync(check_groups, tuple(SEAMS))
    spill, metrics, databases = config.policies.spill, config.policies.metrics, config.databases
    await chosen("llm", config.llm.provider)
    if spill is not None:
        await chosen("spill", spill.store)
    if metrics is not None:
        await chosen("telemetry", metrics.meter)
    if config.sessions is not None:
        await chosen("session_persistence", config.sessions.persistence)
    if config.subagents is not None:
        await chosen("subagents", config.subagents.provider)
    for name in () if databases is None else databases.drivers:
        await chosen("storage", name)
    for name in config.tools.add:
        await chosen("tools", name)


async def chosen(seam: str, name: str) -> tuple[Seam[Callable[..., Any]], Callable[..., Any]]:
    """The seam of that name and its provider of that name. Raises what `open_seam` and `Seam.choose` raise."""
    opened = await trio.to_thread.run_sync(open_seam, seam)
    return opened, await trio.to_thread.run_sync(opened.choose, name)


def _tools_of(name: str, seam: Seam[Any], make: Callable[..., Any], runtime: Runtime) -> list[Tool]:
    try:
        given = make(runtime)
        tools: list[Any] = [given] if isinstance(given, Tool) else list(given)
        if not tools:
            raise ValueError("it gives no tool")
        for tool in tools:
            if not isinstance(tool, Tool):
                raise TypeError(f"what it gives is {type(tool).__name__}, which is no tool")
            if runtime.tools.tool(tool.name) is not None:
                raise ValueError(f"there is a tool {tool.name} already")
            if not (tool.description or "").strip():
                raise ValueError(f"the tool {tool.name} has no description")
    except Exception as error:
        raise seam.broken(name, error) from error
    return tools


def made(seam: Seam[Any], name: str, make: Callable[[], Any], method: str) -> Any:
    """What the provider makes, which has to have the method. Raises what `Seam.broken` gives."""
    try:
        return _with(method, make())
    except Exception as error:
        raise seam.broken(name, error) from error


async def entered(stack: AsyncExitStack, seam: Seam[Any], name: str, make: Callable[[], Any], method: str) -> Any:
    """The same of a provider that gives an async context manager, which the stack ends."""
    try:
        return _with(method, await stack.enter_async_context(make()))
    except Exception as error:
        raise seam.broken(name, error) from error


def _with(method: str, thing: Any) -> Any:
    if not callable(getattr(thing, method, None)):
        raise TypeError(f"what it gives is {type(thing).__name__}, which has no method {method}")
    return thing
