"""Trying what `greenroom serve` would refuse, while nothing is served and no file is written."""

from __future__ import annotations

import trio

from greenroom.actors.cli.composing import check_door, open_composition, read_access
from greenroom.actors.cli.providers import check_providers
from greenroom.actors.config import Config
from greenroom.runtime.journal import check_journal

__all__ = ["check_config"]


async def check_config(config: Config) -> None:
    """Raise what a command that uses the configuration would: see `open_composition`, `check_door`, `check_providers`
    and `check_journal`. Modules that it names are imported, and folders and files that it names are looked at.

    Not tried are a port, which may be free at another time, whether a process writes the journal now, and the model.
    """
    await check_providers(config)
    await check_door(config, await read_access(config))
    if config.journal is not None:
        await trio.to_thread.run_sync(check_journal, config.journal.data)
    async with open_composition(config, recorded=False):
        pass
