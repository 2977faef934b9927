"""A runtime that is what a configuration says, whichever command runs it."""

from __future__ import annotations

import logging
import ssl
from collections.abc import AsyncGenerator, Collection, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

import trio
from msgspec import UNSET

from greenroom.actors.cli.behaviours import behaviours_of, import_behaviours
from greenroom.actors.cli.drawing import plain
from greenroom.actors.cli.naming import cautions, check_names, names_of_commands
from greenroom.actors.cli.offering import offer_bash, offer_tools
from greenroom.actors.cli.options import PORT
from greenroom.actors.cli.policies import set_policies
from greenroom.actors.cli.providers import open_providers
from greenroom.actors.cli.services import offer_services_of
from greenroom.actors.config import Config, Credentials, QuestionsTable, load_config
from greenroom.actors.gateway import Access, AccessToken, Fence, Gateway, GatewayLimits, Mount, check_host, read_tokens
from greenroom.actors.providers.settings import ModelSettings
from greenroom.actors.system import Runtime, open_runtime
from greenroom.actors.toolbox.ask_user_question import ask_user_question_tool
from greenroom.actors.toolbox.todo_write import TodoLists, todo_write_tool
from greenroom.protocol.errors import ConfigError
from greenroom.runtime.tools import Tool

__all__ = [
    "check_door",
    "model_settings",
    "open_composition",
    "open_door",
    "read_access",
    "read_configured_tokens",
    "read_settings",
]

logger = logging.getLogger("greenroom.config")


async def read_settings(file: Path | None) -> Config:
    """The configuration in the file; without one that of all defaults. Raises as `load_config` does."""
    return Config() if file is None else await trio.to_thread.run_sync(load_config, file)


@asynccontextmanager
async def open_composition(
    config: Config, *, recorded: bool = True, others: Collection[str] = ()
) -> AsyncGenerator[Runtime]:
    """A runtime with everything that the configuration names, but for the gateway and the model, which not every
    command has. Unless it is to be `recorded`, it is one to look at: no journal is opened. `others` are names of tools
    that the command offers from elsewhere, for the policies on these.

    Whoever is to fill a seam is looked for before anything starts. Raises `SeamError` for one that cannot, ConfigError
    FUNCTIONS, SERVICES, REMOTE, DATABASE, BASH and EXTRA, JournalError, `WorkspaceError` and `DatabaseError` for what
    else cannot be used, and ConfigError CONFIG_UNKNOWN_TOOL for a policy on a tool that there is not. What
    `cautions` has to say is logged.
    """
    module = None if config.workflows.functions is None else import_behaviours(config.workflows.functions)
    data = None if config.journal is None or not recorded else config.journal.data
    timeout = config.terminals.timeout or None
    async with open_providers(config) as providers:
        async with open_runtime(
            data=data,
            session_persistence=providers.sessions if recorded else None,
            timeout=timeout,
            cap=config.terminals.cap,
            tune_gc=True,
        ) as runtime:
            for name in config.terminals.names:
                runtime.terminals.add(name)
            if module is not None:
                runtime.workflows.functions.update(behaviours_of(module, runtime))
            if config.remote.services is not None:
                offer_services_of(config.remote.services, runtime)
            set_policies(runtime, config, providers, others)
            files = config.workspaces
            await offer_tools(
                runtime,
                () if files is None else files.roots,
                {} if config.databases is None else config.databases.files,
                providers.drivers,
                tools="workspace" if files is None else files.tools,
                private=() if files is None else files.private,
            )
            if config.bash is not None:
                await offer_bash(runtime, config.bash, Credentials(config.credentials.file))
            if config.questions is not None:
                runtime.tools.add(_questions(runtime, config.questions))
            if config.todos is not None:
                runtime.tools.add(todo_write_tool(TodoLists(), several=config.todos.several))
            for add in providers.tools:
                runtime.tools.add(add(runtime))
            offered = {tool.name for tool in runtime.tools.tools()}
            check_names(config, offered | names_of_commands(config) | set(others))
            for caution in cautions(config, runtime.tools, others):
                logger.warning("%s", plain(caution))
            yield runtime


def _questions(runtime: Runtime, questions: QuestionsTable) -> Tool:
    timeout = UNSET if questions.timeout is None else questions.timeout or None
    return ask_user_question_tool(runtime.terminals, questions.terminal, timeout=timeout, delegated=questions.delegated)


def model_settings(config: Config) -> ModelSettings:
    """What the model of the configuration is opened with."""
    llm = config.llm
    return ModelSettings(
        model=llm.model,
        base_url=llm.base_url,
        key=llm.key,
        script=None if llm.script is None else Path(llm.script),
        options=llm.options,
        credentials=Credentials(config.credentials.file),
    )


async def read_access(config: Config) -> Access | None:
    """Who may come in; None where the configuration has no tokens. Raises as `read_tokens` does."""
    return None if config.gateway.tokens is None else Access(await read_configured_tokens(config))


async def read_configured_tokens(config: Config) -> list[AccessToken]:
    """The tokens in the file that the configuration names, which it has to."""
    assert config.gateway.tokens is not None, "whoever has none is not asked for them"
    credentials = Credentials(config.credentials.file)
    return await trio.to_thread.run_sync(read_tokens, Path(config.gateway.tokens), credentials)


async def open_door(
    runtime: Runtime, config: Config, *, access: Access | None, mounts: Iterable[Mount] = ()
) -> Gateway:
    """The gateway of the configuration. Raises ConfigError BIND where nothing can listen, TLS for what is no
    certificate and its key, and what `Runtime.serve` raises."""
    door = config.gateway
    port = PORT if door.port is None else door.port
    tls = await _tls(config)
    return await runtime.serve(
        host=door.host,
        port=port,
        trusted_hosts=door.trusted_hosts,
        trusted_origins=door.trusted_origins,
        limits=GatewayLimits(grace=door.grace),
        access=access,
        tls=tls,
        mounts=mounts,
    )


async def check_door(config: Config, access: Access | None) -> None:
    """Raise what `open_door` would, with nothing listening: ConfigError BIND for an address that other machines reach
    while there are no tokens, TRUST and TLS."""
    door = config.gateway
    check_host(door.host, access or Access())
    Fence(door.trusted_hosts, door.trusted_origins)
    await _tls(config)


async def _tls(config: Config) -> ssl.SSLContext | None:
    door = config.gateway
    return None if door.cert is None else await trio.to_thread.run_sync(_server_tls, door.cert, door.key)


def _server_tls(cert: str, key: str | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(cert, key)
    except OSError as error:  # ssl.SSLError is one
        raise ConfigError("TLS", f"{cert} and {key} are no certificate and its key: {error}.") from None
    return context
