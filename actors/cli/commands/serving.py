"""`greenroom serve`: a gateway in this process."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated

import trio
from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import Console as Screen
from rich.text import Text

from greenroom.actors.cli.composing import (
    open_composition,
    open_door,
    read_access,
    read_configured_tokens,
    read_settings,
)
from greenroom.actors.cli.drawing import plain
from greenroom.actors.cli.offering import named_files
from greenroom.actors.cli.options import Names, Seconds
from greenroom.actors.cli.printing import print_error
from greenroom.actors.config import Config, override
from greenroom.actors.gateway import Access
from greenroom.actors.system import Runtime
from greenroom.protocol.errors import ConfigError

__all__ = ["serve"]


async def serve(
    *,
    config: Path | None = None,
    terminal: Names = None,
    workspace: Annotated[list[Path] | None, Parameter(negative=())] = None,
    database: Annotated[list[str] | None, Parameter(negative=())] = None,
    functions: str | None = None,
    services: str | None = None,
    data: Path | None = None,
    host: str | None = None,
    port: Annotated[int | None, Parameter(validator=Number(gte=0, lte=65_535))] = None,
    timeout: Seconds | None = None,
    grace: Seconds | None = None,
    tokens: Path | None = None,
    trusted_host: Annotated[list[str] | None, Parameter(negative=())] = None,
    cert: Path | None = None,
    key: Path | None = None,
) -> int:
    """Serve terminals to people and programs.

    Prints its address, and goes on until Ctrl-C or SIGTERM; SIGHUP reads the tokens again. People answer with a
    browser at http://127.0.0.1:8642, or with `greenroom attach`.

        greenroom serve --terminal reviewer --terminal ops

    Without tokens every program of this machine may do everything, and no other machine reaches the gateway. A token
    is named in the file by the environment variable that holds it, or by its SHA-256; clients find theirs in
    GREENROOM_TOKEN.

    Parameters
    ----------
    config
        A TOML file that says all of this; flags win over it. `greenroom config explain` lists its keys.
    terminal
        A terminal that can be asked; give it once for each.
    workspace
        A folder whose files the tool `workspace` reads and changes; once for each.
    database
        A database of the tool `database` and the file that keeps it, as in shop=shop.db; once for each. A name that
        ends with .json is a JSON document, any other one is SQLite.
    functions
        A module of the current folder: its public functions, or what it calls `functions`, are the behaviours of the
        workflows that clients may run. With --data, runs that were cut off are taken up at once.
    services
        A module of the current folder: what it calls `services`, a mapping of namespaces to services, is what programs
        may call; `greenroom api` prints it.
    data
        The file that durable asks and runs are recorded in; it is made if there is none. Without it nothing is.
    host
        The address to listen on (127.0.0.1). Without access tokens only this machine's own addresses are allowed.
    port
        The port to listen on (8642); 0 takes a free one and prints it.
    timeout
        Seconds until an unanswered form expires, where its ask says nothing else (300); 0 means never.
    grace
        Seconds that a client which lost its connection may be away before its forms are withdrawn (30).
    tokens
        A TOML file of access tokens, a table for each: `token_env` or `token_sha256`, `expires`, and what it grants
        (`attach`, `answer`, `ask`, `ask_as`, `tools`, `runs`, `drive`, `remote`: lists of names; `tree` and `admin`:
        true).
    trusted_host
        A further name, such as greenroom.example:8443, under which the gateway may be called; once for each.
    cert
        The certificate chain for TLS, as PEM.
    key
        The key of the certificate, as PEM.
    """
    settings = override(
        await read_settings(config),
        gateway={
            "host": host,
            "port": port,
            "grace": grace,
            "tokens": tokens,
            "trusted_hosts": trusted_host,
            "cert": cert,
            "key": key,
        },
        terminals={"names": terminal, "timeout": timeout},
        journal={"data": data},
        workflows={"functions": functions},
        remote={"services": services},
        workspaces={"roots": workspace},
        databases={"files": None if database is None else named_files(database)},
    )
    return await _serve(settings)


async def _serve(config: Config) -> int:
    access = await read_access(config)
    screen = Screen(stderr=True)
    async with open_composition(config) as runtime:
        gateway = await open_door(runtime, config, access=access)
        if config.workflows.functions is not None:
            await _recover(runtime, screen)
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # so it is again when the block ends, while the gateway stops
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            print(gateway.url, flush=True)  # from now on somebody may send signals
            screen.print("Stop with Ctrl-C.", style="dim")
            await _until_stopped(signals, config, access, screen)
        screen.print("Stopping.", style="dim")
    return 0


async def _recover(runtime: Runtime, screen: Screen) -> None:
    """Take up the runs that were cut off, and say which."""
    recovered = await runtime.workflows.recover_all()
    for run in recovered.runs:
        screen.print(Text(f"The run {plain(run.id)} goes on.", "dim"), soft_wrap=True)
    for id, error in recovered.refused.items():
        screen.print(Text(f"The run {plain(id)} does not go on: {plain(str(error))}", "yellow"), soft_wrap=True)


async def _until_stopped(signals: AsyncIterator[int], config: Config, access: Access | None, screen: Screen) -> None:
    """Wait for SIGINT or SIGTERM, reading the tokens again at each SIGHUP.

    Stopping takes a second or two, whatever clients do; further SIGTERMs and SIGHUPs change nothing, a second Ctrl-C
    ends the process at once.
    """
    async for number in signals:
        if number != signal.SIGHUP:
            return
        if access is not None:
            try:
                access.replace(await read_configured_tokens(config))
                screen.print("The tokens were read again.", style="dim")
            except ConfigError as error:  # those there are stay
                print_error(error)
