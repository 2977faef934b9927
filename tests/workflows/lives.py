"""The process that is killed while it runs workflows: `python -m tests.workflows.lives`, in the project's root.

See `tests.journal.killed` for how it is driven. It says:

- `starting RUN`, then `started RUN`;
- `event RUN NUMBER NAME TASK VALUE` for each event that is shown, with `-` for what an event lacks;
- `entering RUN TASK TOKEN` when a behaviour is called;
- `answering RUN TOKEN`, then `answered RUN TOKEN` if that was accepted;
- `signalling RUN TOKEN`, then `signalled RUN TOKEN`;
- `dying STATEMENT` right before it kills itself between two statements of a transaction.
"""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

import trio
import trio.lowlevel
from msgspec import UNSET

from greenroom import Runtime, TaskController, open_runtime
from greenroom.actors.terminal import Notice
from greenroom.actors.workflow import Run
from greenroom.protocol.terminals import AnswerSuccess
from greenroom.protocol.workflows import WorkflowEvent
from tests.journal.killed import obey, say
from tests.workflows.stage import behaving

__all__ = ["ASKED", "OPS", "described", "form", "functions", "workflow"]

OPS = "ops"
ASKED = "b1"
RUNNERS = 4
STATEMENTS = 80
"""Up to so many statements of the writing connection are executed before one at which the process kills itself."""


def workflow(run: str) -> dict[str, Any]:
    """Tasks side by side, some of which need two attempts; then a person, a signal, and one more task."""
    tasks = {name: {"retries": 1, "recoveries": 1_000} for name in ("a1", "a2", "a3", "b1", "c1", "d1")}
    return behaving({"a": "a1 a2 a3", "b": "b1", "c": "c1", "d": "d1"}, tasks=tasks) | {"id": run}


def form(run: str) -> dict[str, Any]:
    """What the run asks."""
    return {"label": run, "fields": [{"control": "text", "name": "token", "rule": {"required": True}}]}


def described(event: WorkflowEvent) -> tuple[str, str, str]:
    """What has to be the same when the event is read again: its name, its task and the value of its result."""
    result = event.result
    value = "-" if result is UNSET or not result.result.success else str(result.result.value)
    return event.event, "-" if event.task is UNSET else event.task, value


def functions(runtime: Runtime, entered: Callable[[str, str], str]) -> Mapping[str, object]:
    """The behaviours of every run. `entered(run, task)` gives a token, which is what the task comes to."""

    async def works(controller: TaskController) -> str:
        token = entered(controller.task.workflow.id, controller.task.id)
        await trio.lowlevel.checkpoint()
        if controller.attempt == 1 and controller.task.id == "a2":
            raise RuntimeError("not yet")
        return token

    async def asks(controller: TaskController) -> str:
        run = controller.task.workflow.id
        entered(run, ASKED)
        values = await runtime.ask(OPS, form(run), key=controller.key, timeout=None)
        return str(values["token"])

    async def is_signalled(controller: TaskController) -> str:
        entered(controller.task.workflow.id, "c1")
        return str(await controller.signal("go"))

    return {**dict.fromkeys(("a1", "a2", "a3", "d1"), works), ASKED: asks, "c1": is_signalled}


async def live(seed: str, path: str) -> None:
    """Take up what earlier lives have left, and start, answer and signal runs, for ever."""
    random_, numbers = random.Random(seed), count()

    def token() -> str:
        return f"{seed}.{next(numbers)}"

    def entered(run: str, task: str) -> str:
        said = token()
        say("entering", run, task, said)
        return said

    async with open_runtime(data=path, timeout=None) as runtime:
        if random_.random() < 0.5:
            die_at(runtime, random_.randrange(STATEMENTS))
        runtime.workflows.functions.update(functions(runtime, entered))
        send, receive = trio.open_memory_channel[Notice](10_000)
        runtime.terminals.subscribe(OPS, lambda notice: send.send_nowait(notice) if notice.kind == "pending" else None)
        runtime.terminals.add(OPS)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(answer, runtime, receive, token)
            for run in (await runtime.workflows.recover_all()).runs:
                nursery.start_soon(see_off, run, token)
            for runner in range(RUNNERS):
                nursery.start_soon(start, runtime, f"{seed}.{runner}", token)


def die_at(runtime: Runtime, number: int) -> None:
    """Kill the process right before so many statements more have been executed by the one who writes the file."""
    assert runtime.journal is not None
    left = number

    def executing(statement: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            say("dying", "_".join(statement.split()[:3]))
            os.kill(os.getpid(), signal.SIGKILL)

    runtime.journal._writer._file.writer.set_trace_callback(executing)


async def start(runtime: Runtime, name: str, token: Callable[[], str]) -> None:
    """One run after the other."""
    for number in count():
        id = f"{name}.{number}"
        say("starting", id)
        run = await runtime.workflows.start(workflow(id))
        say("started", id)
        await see_off(run, token)


async def see_off(run: Run, token: Callable[[], str]) -> None:
    """Signal a run and tell of it until it is over."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(signals, run, token())
        async for event in run.events():
            say("event", run.id, event.number, *described(event))


async def signals(run: Run, token: str) -> None:
    await trio.sleep(0.005)
    if not run.workflow.terminal:
        say("signalling", run.id, token)
        await run.signal("go", token)
        say("signalled", run.id, token)


async def answer(runtime: Runtime, asked: trio.MemoryReceiveChannel[Notice], token: Callable[[], str]) -> None:
    async for notice in asked:
        run, said = str(notice.record.schema.label), token()
        await trio.sleep(0.001)
        say("answering", run, said)
        if isinstance(await runtime.terminals.answer(OPS, notice.id, {"token": said}), AnswerSuccess):
            say("answered", run, said)


if __name__ == "__main__":
    obey(live)
