"""The application: its commands, and what becomes of an error."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from cyclopts import App

from greenroom.actors.cli.commands.answering import answer, attach, pending
from greenroom.actors.cli.commands.asking import ask
from greenroom.actors.cli.commands.looking import tree
from greenroom.actors.cli.commands.serving import serve
from greenroom.actors.cli.commands.tools import call, infer, tools
from greenroom.actors.cli.demo import demo
from greenroom.actors.cli.leaving import CTRL_C
from greenroom.actors.cli.printing import print_error
from greenroom.protocol.errors import GreenroomError

__all__ = ["app", "run"]

COMMANDS: Final[tuple[Callable[..., Awaitable[int]], ...]] = (
    serve,
    ask,
    pending,
    answer,
    attach,
    tools,
    call,
    infer,
    tree,
    demo,
)
"""Every command, in the order of the help."""

app = App(
    name="greenroom",
    help="Agents, people and programs ask each other whole forms, and nobody waits in a circle.",
    version_flags=["--version"],
    result_action="return_value",
)
for place, command in enumerate(COMMANDS):
    app.command(command, sort_key=place)


def run(words: Sequence[str]) -> int:
    """Run a command to its end; the exit code. Raises KeyboardInterrupt for a Ctrl-C that the command leaves to it."""
    try:
        code = app(words, backend="trio")
    except BaseExceptionGroup as group:
        if group.split(KeyboardInterrupt)[1] is not None:
            raise
        return CTRL_C
    except GreenroomError as error:
        print_error(error)
        return 1
    except BrokenPipeError:
        sys.stderr.close()  # whoever read our output has gone, and nobody is left to tell
        return 1
    return code if isinstance(code, int) else 0
