"""The demo: a release that needs a person's approval, played over real connections and with real processes.

Each step does something and checks that it has happened; `--break STEP` sabotages one, and the demo must notice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Annotated, Final

import trio
from cyclopts import Parameter
from rich.console import Console as Screen
from rich.text import Text

from greenroom.actors.cli.demo.asking import accept, ask, attach, circle, expire, refuse, serve, tree, withdraw
from greenroom.actors.cli.demo.releasing import approve, kill, resume, run
from greenroom.actors.cli.demo.stage import Failed, ReleaseAgent, Stage
from greenroom.actors.cli.drawing import plain
from greenroom.actors.system import open_runtime
from greenroom.protocol.errors import ConfigError, GreenroomError

__all__ = ["STEPS", "demo", "play"]

STEPS: Final[dict[str, Callable[[Stage], Awaitable[None]]]] = {
    "serve": serve,
    "attach": attach,
    "ask": ask,
    "refuse": refuse,
    "circle": circle,
    "accept": accept,
    "expire": expire,
    "withdraw": withdraw,
    "tree": tree,
    "run": run,
    "kill": kill,
    "approve": approve,
    "resume": resume,
}


async def play(screen: Screen, broken: str | None) -> int:
    """Play all steps, stopping at the first that fails. 0 if none does, else 1."""
    async with open_runtime(tune_gc=True) as runtime, trio.open_nursery() as nursery:
        async with AsyncExitStack() as stack:
            stage = Stage(screen, runtime, nursery, stack, broken)
            stage.agent = runtime.spawn(ReleaseAgent(runtime), "release-agent")
            runtime.terminals.add("reviewer")
            runtime.terminals.add("release-agent", operator=stage.agent)
            code = await _run(stage)
        nursery.cancel_scope.cancel()
    return code


async def _run(stage: Stage) -> int:
    for number, (stage.step, step) in enumerate(STEPS.items(), start=1):
        what = (step.__doc__ or "").strip()
        stage.screen.print(Text.assemble((f"{number}. ", "dim"), (what, "bold")))
        try:
            await step(stage)
        except (Failed, GreenroomError, OSError) as error:
            stage.screen.print(Text(f"   {stage.step} failed: {plain(str(error))}", "bold red"))
            return 1
    stage.screen.print(Text("Everything happened as it should.", "green"))
    return 0


async def demo(*, break_: Annotated[str | None, Parameter(name="--break")] = None) -> int:
    """Play a release that needs a person's approval, in a few seconds.

    A real server, real connections, and a check after each step: exits with 0 only if every one has really happened.

    Parameters
    ----------
    break_
        Sabotage this step, to see that it is noticed.
    """
    if break_ is not None and break_ not in STEPS:
        raise ConfigError("STEP", f"The demo has no step {break_}; its steps are {', '.join(STEPS)}.")
    return await play(Screen(), break_)
