"""What `greenroom serve` offers to those who may call tools: data in the folders and files that it is given, and
commands."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Literal

import trio

from greenroom.actors.config import BashTable, Credentials
from greenroom.actors.database import FILE, MEMORY_DRIVERS, DatabaseFiles, DriverFactory
from greenroom.actors.session import JsonlPersistence
from greenroom.actors.system import Runtime
from greenroom.actors.toolbox.bash import bash_tool
from greenroom.actors.toolbox.database import database_tool
from greenroom.actors.toolbox.describe import describe_tool
from greenroom.actors.toolbox.file_tools import file_tools
from greenroom.actors.toolbox.infer import infer_tool
from greenroom.actors.toolbox.job_kill import job_kill_tool
from greenroom.actors.toolbox.job_list import job_list_tool
from greenroom.actors.toolbox.job_output import job_output_tool
from greenroom.actors.toolbox.workspace import workspace_tool
from greenroom.actors.workspace import PRIVATE, WorkspaceManager
from greenroom.protocol.errors import ConfigError
from greenroom.runtime.policies import LocalSpill, observation_policy

__all__ = ["named_files", "offer_bash", "offer_tools"]


async def offer_tools(
    runtime: Runtime,
    folders: Iterable[str],
    databases: Mapping[str, str],
    drivers: Mapping[str, DriverFactory] = MEMORY_DRIVERS,
    *,
    tools: Literal["workspace", "files"] = "workspace",
    private: Collection[str] = PRIVATE,
) -> None:
    """Add the tools `describe` and `infer`; if there are folders, which are the workspaces, the first one active, the
    tool `workspace` or those on files, with the policy that goes with these; `database` if there are databases, by
    name, each with the file that keeps it. `drivers` are what else it may create databases in. Folders and files named
    in `private` are no part of a workspace.

    Raises ConfigError DATABASE for a file that cannot be, `WorkspaceError` for a folder that cannot be a workspace and
    `DatabaseError` for a file that holds something else.
    """
    runtime.tools.add((describe_tool(runtime.tools), infer_tool()))
    roots = [Path(folder) for folder in folders]
    files = {name: Path(file) for name, file in databases.items()}
    if roots:
        workspaces = WorkspaceManager(runtime.tree)
        for root in roots:
            await workspaces.mount(root, _free_name(workspaces, root), private=private)
        if tools == "files":
            observation_policy(runtime.bus)
            runtime.tools.add(file_tools(workspaces))
        else:
            runtime.tools.add(workspace_tool(workspaces, undo=True))
    if files:
        kept = DatabaseFiles(files)
        for name, file in files.items():
            if not await trio.Path(file.parent).is_dir():
                raise ConfigError("DATABASE", f"{name}={file} cannot be kept: there is no folder {file.parent}.")
            await kept.get(name)  # what cannot be read is told now, not to whoever calls first
        every = {**drivers, FILE: kept.storage}
        runtime.tools.add(database_tool(runtime.tree, store=kept, drivers=every, driver=FILE))


async def offer_bash(runtime: Runtime, table: BashTable, credentials: Credentials) -> None:
    """Add the tool `bash`, and those for its jobs. Raises ConfigError: BASH for a folder that is none and for a
    credential that there is not, and what looking it up raises."""
    if not await trio.Path(table.root).is_dir():
        raise ConfigError("BASH", f"bash.root: commands cannot begin in {table.root}, which is no folder.")
    env = await trio.to_thread.run_sync(lambda: {name: credentials.get(name) for name in table.env})
    if missing := [name for name, secret in env.items() if secret is None]:
        raise ConfigError(
            "BASH",
            f"bash.env: there are no credentials for {len(missing)} of its {len(env)} names; set them in the"
            " environment or in credentials.file.",
        )
    found = {name: secret for name, secret in env.items() if secret is not None}
    jobs, spill = runtime.jobs, None if table.spill is None else LocalSpill(table.spill)
    logs = runtime.sessions.persistence
    session_log = logs.path if isinstance(logs, JsonlPersistence) else None
    runtime.tools.add(
        (
            bash_tool(background=jobs, root=table.root, env=found, spill=spill, session_log=session_log),
            job_list_tool(jobs),
            job_output_tool(jobs),
            job_kill_tool(jobs),
        )
    )


def named_files(spelled: Iterable[str]) -> dict[str, str]:
    """Databases and their files, each spelled NAME=FILE. Raises ConfigError DATABASE for what is spelled otherwise."""
    files: dict[str, str] = {}
    for each in spelled:
        name, _, file = each.partition("=")
        if not name or not file:
            raise ConfigError("DATABASE", f"{each} names no database and its file; write it as in shop=shop.db.")
        if name in files:
            raise ConfigError("DATABASE", f"The database {name} is given two files, {files[name]} and {file}.")
        files[name] = file
    return files


def _free_name(workspaces: WorkspaceManager, root: Path) -> str:
    """The folder's own name, with a number if another workspace has it."""
    name = root.absolute().name or str(root)
    number = 1
    while workspaces.workspace(free := name if number == 1 else f"{name}~{number}") is not None:
        number += 1
    return free
