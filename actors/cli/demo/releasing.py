"""Steps of the demo: a workflow in a process of its own, which is killed and goes on where it was."""

from __future__ import annotations

import re
import signal
import tempfile
from pathlib import Path
from typing import Final

import trio

from greenroom.actors.cli.demo.stage import Failed, Stage, check, example
from greenroom.actors.cli.demo.workshop import RUN, Workshop
from greenroom.actors.client import connect
from greenroom.actors.system import open_runtime

__all__ = ["approve", "kill", "resume", "run"]

WAITING: Final = 60.0
"""Seconds that a process may take for what it is to do; a machine under load is slow."""

APPROVAL: Final = {"publish": True, "reason": "Read the changes."}


async def run(stage: Stage) -> None:
    """A workflow runs in a process of its own, until it asks the reviewer"""
    folder = Path(stage.stack.enter_context(tempfile.TemporaryDirectory()))
    shop = stage.workshop = Workshop(folder)
    stage.stack.push_async_callback(shop.close)
    for name in ("release_workflow.json", "release_workflow.py"):
        await trio.Path(folder / name).write_text(await example(name), "utf-8")
    if stage.sabotaged:
        await trio.Path(folder / "release_workflow.py").write_text("functions = {}", "utf-8")
    process = await shop.start(["run", "release_workflow.json"])
    with trio.move_on_after(WAITING):
        async with connect(await _gateway(process)) as client, client.attach("reviewer") as reviewer:
            if not reviewer.pending:
                await anext(reviewer)
            (shop.form,) = reviewer.pending
        for step, times in (await shop.steps()).items():
            stage.say(f"{step}: {'once' if times == 1 else f'{times} times'}")
        return
    raise Failed("the reviewer was never asked")


async def _gateway(process: trio.Process) -> str:
    """The address that the process says on standard error."""
    said = b""
    stderr = process.stderr
    while stderr is not None and (more := await stderr.receive_some()):
        said += more
        if found := re.search(rb"its gateway (ws://\S+)\s", said):
            return found[1].decode()
    raise Failed(f"the process ended: {said.decode(errors='replace').strip()}")


async def kill(stage: Stage) -> None:
    """It is killed between two steps, with SIGKILL"""
    process = stage.workshop.process
    if process is None:
        raise Failed("there is no process")
    process.send_signal(signal.SIGTERM if stage.sabotaged else signal.SIGKILL)
    with trio.move_on_after(WAITING):
        code = await process.wait()
        check(code == -signal.SIGKILL, f"it had time to tidy up, and ended with {code}")
        stage.say(f"process {process.pid} is gone")
        return
    raise Failed("it still lives")


async def approve(stage: Stage) -> None:
    """The form is still there, and the reviewer approves while nothing runs"""
    shop = stage.workshop
    async with open_runtime(data=shop.data) as runtime:
        runtime.terminals.add("reviewer")
        gateway = await runtime.serve(port=0)
        async with connect(gateway.url) as client, client.attach("reviewer") as reviewer:
            with trio.move_on_after(WAITING):
                if not reviewer.pending:
                    await anext(reviewer)
            check(list(reviewer.pending) == [shop.form], "the reviewer is not asked what the run had asked")
            values = {"publish": True} if stage.sabotaged else APPROVAL
            check((await reviewer.answer(shop.form, values)).success, "the approval was refused")
    stage.say(f"{shop.form} is answered: {APPROVAL['reason']}")


async def resume(stage: Stage) -> None:
    """The run is resumed: it uses the approval, and does no finished step again"""
    shop = stage.workshop
    before = await shop.steps()
    if stage.sabotaged:
        await trio.Path(shop.data).unlink()
    process = await shop.start(["resume", RUN])
    with trio.move_on_after(WAITING):
        await _drained(process)
        check(await process.wait() == 0, "the run did not come to its end")
        after = await shop.steps()
        for step in ("check/build", "check/tests"):
            check(after[step] == before[step], f"{step} was done again")
        check(after["publish/upload"] == 1, "it was not published, or not once")
        async with open_runtime(data=shop.data) as runtime:
            results = (await runtime.workflows.look(RUN)).workflow.results()
        values = {f"{each.phase}/{each.task}": each.result.value for each in results}
        check(values["approve/ask"] == APPROVAL, "the run has another approval than was given")
        stage.say(f"publish/upload: {values['publish/upload']}")
        return
    raise Failed("the run does not come to its end")


async def _drained(process: trio.Process) -> None:
    """Read what it says until it has ended, so that it need not wait for anybody."""
    if process.stderr is not None:
        async for _ in process.stderr:
            pass
