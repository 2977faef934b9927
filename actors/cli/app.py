"""The application: its commands, and what becomes of an error."""

from __future__ import annotations

import errno
import os
import sys
from typing import Final, cast

from cyclopts import App

from greenroom.actors.cli.leaving import CTRL_C
from greenroom.actors.cli.printing import print_error
from greenroom.protocol.errors import ConfigError, GreenroomError

__all__ = ["app", "main"]

COMMANDS: Final = {
    "serve": "commands.serving",
    "ask": "commands.asking",
    "pending": "commands.answering",
    "answer": "commands.answering",
    "attach": "commands.answering",
    "run": "commands.running",
    "runs": "commands.runs",
    "show": "commands.runs",
    "logs": "commands.runs",
    "log": "commands.logging",
    "signal": "commands.runs",
    "resume": "commands.running",
    "cancel": "commands.runs",
    "tools": "commands.tools",
    "api": "commands.api",
    "call": "commands.tools",
    "infer": "commands.tools",
    "mcp": "commands.mcp",
    "chat": "commands.chatting",
    "tree": "commands.looking",
    "demo": "demo",
}
"""Every command, in the order of the help, and the module of its function, imported when the command is called."""

_UNWRITTEN: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""Why a file does not take what is printed into it."""

_HELP: Final = """Agents, people and programs ask each other whole forms, and nobody waits in a circle.

See it happen, then serve a terminal, ask it from another shell, and answer:

    greenroom demo
    greenroom serve --terminal reviewer
    greenroom ask reviewer examples/release-review.json
    greenroom attach reviewer

Run a workflow, which survives whatever ends its process:

    greenroom run release.json --functions release --data release.db --terminal reviewer

A gateway elsewhere is named by GREENROOM_URL, and a token for it is taken from GREENROOM_TOKEN.
"""

_CODES: Final = (
    "Exit codes: 0 done, 1 refused or failed (standard error says why), 2 wrong usage, 130 Ctrl-C, 143 SIGTERM."
)

app = App(
    name="greenroom",
    help=_HELP,
    help_epilogue=_CODES,
    version_flags=["--version"],
    result_action="return_value",
)
for place, (command, module) in enumerate(COMMANDS.items()):
    app.command(f"greenroom.actors.cli.{module}:{command}", name=command, sort_key=place)
app.command("greenroom.actors.cli.commands.config:config_app", name="config")


def main() -> None:
    """Run the command line; ends the process with its exit code. 0: done. 1: refused or failed. 2: wrong usage.

    130 after Ctrl-C, and 128 and the signal's number where a command tidies up after a signal. What has failed is
    said in a sentence; a traceback is a bug.
    """
    words = sys.argv[1:]
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")  # as standard error has it: what is printed came from anywhere
    try:
        if not words or words[0] in app.help_flags:
            app.resolved_commands()  # imports them: the help of all says of each what its function says
        code = app(words, backend="trio")
        if sys.stdout is not None:
            sys.stdout.flush()
    except BaseException as error:
        code = _code_of(error)
    sys.exit(code if isinstance(code, int) else 0)


def _code_of(error: BaseException) -> int:
    match _heart(error):
        case KeyboardInterrupt():
            return CTRL_C
        case SystemExit(code=int() as code):  # of wrong usage; and of rich, whose reader has gone
            return code
        case GreenroomError() as refusal:
            print_error(refusal)
            return 1
        case BrokenPipeError():  # whoever read has gone, and nobody is left to tell
            _drop_output()
            return 1
        case OSError(errno=number, strerror=reason) if number in _UNWRITTEN:
            _drop_output()
            print_error(ConfigError("OUTPUT", f"The output cannot be written: {reason}."))
            return 1
        case _:
            raise error


def _heart(error: BaseException) -> BaseException:
    """What has happened, where a group says nothing else."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    group = cast("BaseExceptionGroup[BaseException]", error)
    inner = [_heart(each) for each in group.exceptions]
    return inner[0] if len({type(each) for each in inner}) == 1 else group


def _drop_output() -> None:
    """Let what is still buffered go nowhere: Python would try to write it once more at the end, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
