"""`greenroom config`: looking at a configuration before anything is started with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import trio
from cyclopts import App
from msgspec import Struct, structs

from greenroom.actors.cli.options import AsJson
from greenroom.actors.cli.printing import print_json, screen
from greenroom.actors.cli.providers import check_providers
from greenroom.actors.config import TABLES, Config, Credentials, load_config, table_of
from greenroom.actors.config.reference import explain as explained
from greenroom.protocol.errors import ConfigError

__all__ = ["config_app"]

UNKNOWN: Final = "(a name that no credential has)"


async def check(file: Path) -> int:
    """Say whether a configuration can be used, and everything that is wrong with it.

    Nothing is started, and no file that it names is opened; the providers that it chooses have to be installed.

        greenroom config check greenroom.toml

    Parameters
    ----------
    file
        The TOML file.
    """
    await check_providers(await trio.to_thread.run_sync(load_config, file))
    print(f"{file} can be used.")
    return 0


async def show(file: Path, *, json: AsJson = False) -> int:
    """Print what a configuration comes to, defaults included.

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
    for name, struct in TABLES.items():
        table = table_of(config, name)
        out.print(f"[{name}]" if table is not None else f"[{name}] is not there", style="bold", markup=False)
        for key in struct.__struct_fields__ if table is not None else ():
            if not isinstance(value := getattr(table, key), Struct) and f"{name}.{key}" not in TABLES:
                out.print(f"{key} = {value!r}", markup=False, highlight=False)
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
        raise ConfigError("CONFIG_UNKNOWN_KEY", f"There is no {key}. There are the tables {', '.join(TABLES)}.")
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
