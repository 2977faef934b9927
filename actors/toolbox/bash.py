"""The tool `bash`: a command in a fresh shell, ended with all that it has started."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import trio
from msgspec import UNSET, Meta, Struct, UnsetType

from greenroom.actors.agent import Agent
from greenroom.actors.job import job_owner
from greenroom.actors.process import GRACE, run_command, scrubbed
from greenroom.protocol.errors import ProcessError
from greenroom.protocol.jobs import Ending
from greenroom.protocol.processes import CommandResult
from greenroom.runtime.background import Background, current_job
from greenroom.runtime.cancel import Cancel
from greenroom.runtime.pipeline.handling import Card, Handling
from greenroom.runtime.policies import LocalSpill
from greenroom.runtime.tools import Tool

__all__ = ["bash_tool"]

TIMEOUT: Final = 120.0
"""Seconds for a command, where the call does not say."""

SUMMARY: Final = "Runs a command in a fresh bash shell; see describe('bash') for what it may take and what it returns."

DESCRIPTION: Final = """\
Runs a command in a fresh bash shell and waits for its end. Each call begins anew: variables, options and `cd` of an \
earlier one are gone. Nobody can type anything into it, and its environment has no keys, tokens or passwords.

Arguments:
- `command`: what is run, as you would type it. Join steps that belong together with `&&`.
- `description`: what it is for, in a few words, for whoever looks on.
- `timeoutMs`: after how many milliseconds it is ended; 120000 if you do not say, and 600000 at most.
- `workdir`: the directory to run it in.
- `run_in_background`, where it is offered: return `{"jobId": ...}` at once and let it go on. Use it for what takes \
minutes or serves until it is ended: job_output reads what it has written since you last looked, job_kill ends it. \
There is no deadline then, unless you give one.

Example: {"command": "git status --short && git log -3 --oneline", "description": "See what has changed"}

Returns `exitCode` (or the `signal` that ended it), whether it was ended because its time was over (`timedOut`), and \
the last 64000 bytes of `stdout` and `stderr`; if there were more, `spillPath` is the file that has all of it. An \
exit code that is not 0 is no error of the call: read what it says. When the shell has ended, whatever it has left in \
the background is ended too: `&` and `nohup` do not keep it.
"""


class Bash(Struct):
    command: Annotated[str, Meta(min_length=1, description="What is run.")]
    description: Annotated[str, Meta(min_length=1, description="What it is for, in a few words.")]
    timeout_ms: Annotated[
        Annotated[int, Meta(ge=1, le=600_000)] | UnsetType,
        Meta(description="After how many milliseconds it is ended."),
    ] = msgspec.field(default=UNSET, name="timeoutMs")
    workdir: Annotated[str | UnsetType, Meta(description="The directory to run it in.")] = UNSET


def bash_tool(
    *,
    background: Background | None = None,
    root: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    spill: LocalSpill | None = None,
    home: str | os.PathLike[str] | None = None,
    session_log: Callable[[str], str | os.PathLike[str]] | None = None,
    grace: float = GRACE,
    name: str = "bash",
) -> Tool:
    """The tool `bash`, which runs commands with the rights of this process: `root` keeps nothing from leaving it.

    `root` is the directory in which commands begin, and beneath which a call's `workdir` must lie, also by links;
    without one it is that of this process, and any will do. `env` adds variables to this process's own, of which
    those are left out that may be secret. `spill` keeps long output (default: a private folder of the system's for
    temporary files), `grace` is how many seconds a command has between SIGTERM and SIGKILL. With a `background`
    (`runtime.jobs`) it can go on as a job, which is killed in the same way.

    A command of an agent finds that one's id in `GREENROOM_SESSION_ID`; with `session_log` (`JsonlPersistence.path`)
    the file of its session in `GREENROOM_SESSION_LOG`, if it has one; and `home`, where greenroom keeps what it keeps,
    in `GREENROOM_HOME`. Whatever of that name is around greenroom itself is another's.

    It raises `ToolError` TOOL for arguments that are none, and ProcessError: WORKDIR, SPAWN. A cancelled call, and one
    that is stopped, ends once nothing of its command is left.
    """
    shell = shutil.which("bash") or "/bin/sh"
    kept = LocalSpill() if spill is None else spill

    async def execute(call: Bash) -> dict[str, Any]:
        job, abort, agent = current_job(), Cancel(), job_owner()
        if job is not None:
            job.write("")  # it is read as it comes
            job.on_kill(abort.set)
        timeout = call.timeout_ms / 1000 if call.timeout_ms is not UNSET else None if job is not None else TIMEOUT
        result = await run_command(
            (shell, "-c", call.command),
            env=scrubbed(os.environ, {**_about(agent, home, session_log), **(env or {})}),
            cwd=await trio.to_thread.run_sync(_folder, root, "." if call.workdir is UNSET else call.workdir),
            timeout=timeout,
            abort=abort,
            grace=grace,
            spill=kept,
            owner="" if agent is None else agent.ref.path,
            heard=None if job is None else job.write,
        )
        if job is not None:
            for name, stream in (("stdout", result.stdout), ("stderr", result.stderr)):
                if stream.spill_path is not None:  # of what nobody has read a part may be dropped
                    job.write(f"\n[all of {name}: {stream.spill_path}]\n")
            job.note(_manner(result, abort.reason), ending=_ending(result))
        value: dict[str, Any] = msgspec.to_builtins(result)
        return value

    return Tool(
        name,
        execute,
        summary=SUMMARY,
        description=DESCRIPTION,
        parameters=Bash,
        background=background,
        handling=Handling(
            returns=CommandResult,
            render=_rendered,
            present_call=lambda args: Card(args["description"], args["command"]),
        ),
    )


def _about(
    agent: Agent | None,
    home: str | os.PathLike[str] | None,
    session_log: Callable[[str], str | os.PathLike[str]] | None,
) -> dict[str, str]:
    """What a command is told of whoever runs it. It begins in another folder than this process."""
    told = {} if home is None else {"GREENROOM_HOME": os.path.abspath(home)}
    if agent is not None:
        told["GREENROOM_SESSION_ID"] = agent.id
        if agent.session is not None and session_log is not None:
            told["GREENROOM_SESSION_LOG"] = os.path.abspath(session_log(agent.id))
    return told


def _folder(root: str | os.PathLike[str] | None, workdir: str) -> Path:
    """Where a command begins. Blocks."""
    base = Path.cwd() if root is None else Path(root)
    try:
        base = base.resolve(strict=True)
        folder = (base / workdir).resolve(strict=True)
        reason = None if folder.is_dir() else "it is no directory"
    except (OSError, ValueError, RuntimeError) as error:
        folder, reason = base, str(error)
    if root is not None and not folder.is_relative_to(base):
        reason = f"it lies outside of {base}"
    if reason is not None:
        raise ProcessError(
            "WORKDIR",
            f"Nothing was run in {workdir}: {reason}. Give a directory relative to {base}, or none.",
            {"workdir": workdir, "root": str(base)},
        )
    return folder


def _manner(result: CommandResult, reason: str | None = None) -> str:
    """How it ended, in words; `reason` is why it was aborted."""
    manner = f"exit code {result.exit_code}" if result.signal is None else f"ended by {result.signal}"
    if result.timed_out and result.timeout_ms is not None:
        return f"its {result.timeout_ms / 1000:g} s were over: {manner}"
    return f"{reason or 'it was told to end'}: {manner}" if result.aborted else manner


def _ending(result: CommandResult) -> Ending:
    return "killed" if result.aborted else "failed" if result.timed_out else "completed"


def _rendered(_args: Any, value: Any) -> str:
    """What a model is shown: the output, and beneath it what there is to say of it."""
    result = msgspec.convert(value, CommandResult)
    parts: list[str] = []
    for name, stream in (("stdout", result.stdout), ("stderr", result.stderr)):
        if stream.truncated:
            path = stream.spill_path
            parts.append(f"[the end of {name}; {'no file has all of it' if path is None else f'all of it: {path}'}]")
        elif name == "stderr" and stream.text:
            parts.append("[stderr]")
        if stream.text:
            parts.append(stream.text.rstrip("\n"))
    return "\n".join((*parts, f"[{_manner(result)}]"))
