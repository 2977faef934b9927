"""`greenroom config`: looking at a configuration before anything is started with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import trio
from cyclopts import App
from msgspec import structs

from greenroom.actors.cli.checking import check_config
from greenroom.actors.cli.composing import read_settings
from greenroom.actors.cli.options import AsJson
from greenroom.actors.cli.printing import print_json, screen
from greenroom.actors.config import TABLES, Config, Credentials, load_config
from greenroom.actors.config.reference import explain as explained
from greenroom.actors.config.reference import nearest_key
from greenroom.actors.config.writing import config_toml
from greenroom.protocol.errors import ConfigError

__all__ = ["config_app"]

UNKNOWN: Final = "(a name that no credential has)"


async def check(file: Path) -> int:
    """Say whether a configuration can be used, or what is wrong with it.

    What `greenroom serve` would refuse is tried: modules that it names are imported, the tools that it names are looked
    for, the providers that it chooses have to be installed. Nothing is served, and no file is written; whether the port
    is free and what the model says are not tried.

        greenroom config check greenroom.toml

    Parameters
    ----------
    file
        The TOML file.
    """
    await check_config(await read_settings(file))
    print(f"{file} can be used.")
    return 0


async def show(file: Path, *, json: AsJson = False) -> int:
    """Print what a configuration comes to, defaults included, as TOML that can be read again.

    What is not set is a comment. So is the name of a credential that there is not, since it may be the secret itself.

        greenroom config show greenroom.toml

    Parameters
    ----------
    file
        The TOML file.
    """
    config = await trio.to_thread.run_sync(_read_to_be_shown, file)
    if json:
        print_json(config)
        return 0
    out = screen()
    for line in config_toml(config, withheld=UNKNOWN):
        style = "bold" if line.startswith("[") else "dim" if line.startswith("#") else ""
        out.print(line, style=style, markup=False, highlight=False, soft_wrap=True)
    return 0


def _read_to_be_shown(file: Path) -> Config:
    """The configuration, without names in it that no credential has: each may be the secret itself."""
    config = load_config(file)
    credentials = Credentials(config.credentials.file)

    def shown(name: str) -> str:
        try:
            return name if name in credentials else UNKNOWN
        except ConfigError:  # of the credentials, which are not what is shown
            return UNKNOWN

    llm, bash = config.llm, config.bash
    return structs.replace(
        config,
        llm=llm if llm.key is None else structs.replace(llm, key=shown(llm.key)),
        bash=None if bash is None else structs.replace(bash, env=tuple(map(shown, bash.env))),
    )


async def explain(key: str | None = None) -> int:
    """Say what a key of the configuration means, or list all tables and keys.

        greenroom config explain gateway.grace

    Parameters
    ----------
    key
        A table, or a table and its key, as in gateway.grace.
    """
    out = screen()
    lines = None
    if key is None:
        lines = [line for name in TABLES for line in explained(name) or ()]
    elif (lines := explained(key)) is None:
        near = nearest_key(key)
        raise ConfigError(
            "CONFIG_UNKNOWN_KEY",
            f"There is no {key}{'' if near is None else f' (did you mean {near}?)'}. There are the tables "
            f"{', '.join(TABLES)}.",
            {"keys": [{"key": key, "nearest": near}]},
        )
    for line in lines:
        out.print(line, style="bold" if line.startswith("[") else "", markup=False, highlight=False)
    return 0


_COMMANDS: Final[tuple[Callable[..., Awaitable[int]], ...]] = (check, show, explain)

config_app = App(
    name="config",
    help="Check, show and explain a configuration: one TOML file for `greenroom serve`.",
    sort_key=100,
    result_action="return_value",
)
for command in _COMMANDS:
    config_app.command(command)
