"""Processes that end in the middle of a run: `python -m tests.workflows.killed SCENARIO FOLDER`, in the project's root.

What is recorded is `FOLDER/journal`; each call of a behaviour is a line of `FOLDER/calls`. A scenario says `ready` when
it has come as far as it is to come, and is killed then.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from greenroom import Runtime, TaskController, open_runtime
from greenroom.actors.terminal import Notice
from tests.workflows.stage import behaving

__all__ = ["QUESTIONS", "RELEASE", "SUICIDE", "asking", "calls", "kill", "question", "release", "remembering"]

RELEASE = behaving({"a": "send", "b": "ask", "c": "post"})
QUESTIONS = behaving({"a": "p q"}, tasks={"q": {"recoveries": 5}}) | {"id": "questions"}
SUICIDE = behaving({"a": "x"}, tasks={"x": {"retries": 1}}) | {"id": "suicide"}

_ROOT = Path(__file__).parent.parent.parent

Behaviour = Callable[[TaskController], Any]


def question(label: str) -> dict[str, Any]:
    """A form of one text."""
    return {"label": label, "fields": [{"control": "text", "name": "x", "rule": {"required": True}}]}


def remembering(folder: Path, behaviour: Behaviour) -> Behaviour:
    """The behaviour, with a line for each call of it."""

    def call(controller: TaskController) -> Any:
        with (folder / "calls").open("a") as file:
            file.write(f"{controller.task.id}\n")
        return behaviour(controller)

    return call


def calls(folder: Path) -> list[str]:
    """Whose behaviours were called, in order."""
    return (folder / "calls").read_text().split()


def release(folder: Path, runtime: Runtime) -> dict[str, Behaviour]:
    """The behaviours of `RELEASE`: the task in its middle asks a person."""

    async def ask(controller: TaskController) -> Any:
        return await runtime.ask("ops", question("Post it?"), key=controller.key, timeout=None)

    given: dict[str, Behaviour] = {"send": lambda _: "sent", "ask": ask, "post": lambda _: "posted"}
    return {name: remembering(folder, behaviour) for name, behaviour in given.items()}


def asking(folder: Path, runtime: Runtime) -> dict[str, Behaviour]:
    """The behaviours of `QUESTIONS`: each task asks two questions, one after the other."""

    async def asks(controller: TaskController) -> list[Any]:
        name = controller.task.id
        return [
            (await runtime.ask("ops", question(f"{name}{number}"), key=str(number), timeout=None))["x"]
            for number in (1, 2)
        ]

    return {name: remembering(folder, asks) for name in "pq"}


@asynccontextmanager
async def _running(folder: Path) -> AsyncGenerator[tuple[Runtime, trio.MemoryReceiveChannel[Notice]]]:
    """A runtime with the terminal `ops`, and the forms that it is asked."""
    send, receive = trio.open_memory_channel[Notice](100)

    def hear(notice: Notice) -> None:
        if notice.kind == "pending":
            send.send_nowait(notice)

    async with open_runtime(data=folder / "journal") as runtime:
        runtime.terminals.subscribe("ops", hear)
        runtime.terminals.add("ops")
        yield runtime, receive


async def _ready() -> None:
    print("ready", flush=True)
    await trio.sleep_forever()


async def released(folder: Path) -> None:
    """Until the person is asked."""
    async with _running(folder) as (runtime, asked):
        await runtime.workflows.start(RELEASE, functions=release(folder, runtime))
        await asked.receive()
        await _ready()


async def questioned(folder: Path) -> None:
    """Until q asks its second question, and p has its results."""
    async with _running(folder) as (runtime, asked):
        run = await runtime.workflows.start(QUESTIONS, functions=asking(folder, runtime))
        async for notice in asked:
            label = str(notice.record.schema.label)
            if label != "q2":
                await runtime.terminals.answer("ops", notice.id, {"x": f"answer to {label}"})
            if label == "p2":
                break
        async for event in run.events():
            if event.event == "complete" and event.task == "p":
                break
        while [str(record.schema.label) for record in runtime.terminals.pending()] != ["q2"]:
            await trio.lowlevel.checkpoint()
        await _ready()


async def suicide(folder: Path) -> None:
    """A run whose behaviour ends the process, in the first life as well as in those that recover it."""
    functions = {"x": remembering(folder, lambda _: os._exit(1))}
    async with open_runtime(data=folder / "journal", functions=functions) as runtime:
        await runtime.workflows.start(SUICIDE)
        for run in (await runtime.workflows.recover_all()).runs:
            await run.wait()


def kill(scenario: str, folder: Path) -> None:
    """Let a process come to the middle of the scenario, and kill it."""
    command = [sys.executable, "-m", "tests.workflows.killed", scenario, str(folder)]
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        finally:
            process.kill()


def main(scenario: str, folder: Path) -> None:
    """Live that long; `suicide` lives ten times."""
    if scenario == "suicide":
        for _ in range(10):
            if not (child := os.fork()):
                trio.run(suicide, folder)
                os._exit(0)
            os.waitpid(child, 0)
        print("ready", flush=True)
    else:
        trio.run({"release": released, "questions": questioned}[scenario], folder)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
