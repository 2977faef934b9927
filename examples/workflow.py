"""A run of three phases: checks side by side, one of which needs a second attempt, then a person, then the rest.

`python examples/workflow.py`
"""

from __future__ import annotations

from typing import Any

import trio

import greenroom

RELEASE = {
    "id": "release-4.2",
    "name": "Release 4.2",
    "bail": True,
    "phases": [
        {
            "id": "check",
            "name": "Check",
            "tasks": [
                {"id": "lint", "name": "Lint", "behavior": "check"},
                {"id": "tests", "name": "Tests", "behavior": "flaky", "retries": 2},
            ],
        },
        {"id": "approve", "name": "Approve", "tasks": [{"id": "ask", "name": "Ask", "behavior": "approve"}]},
        {"id": "publish", "name": "Publish", "tasks": [{"id": "upload", "name": "Upload", "behavior": "check"}]},
    ],
}
QUESTION = {"fields": [{"control": "confirm", "name": "publish", "rule": {"required": True}}]}


def check(controller: greenroom.TaskController) -> str:
    return f"{controller.key} is fine"


def flaky(controller: greenroom.TaskController) -> str:
    if controller.attempt == 1:
        raise RuntimeError("a port was taken")
    return f"{controller.key} is fine in attempt {controller.attempt}"


async def main() -> None:
    async with greenroom.open_runtime() as runtime, trio.open_nursery() as nursery:
        asked = trio.Event()
        reviewer = runtime.terminals.add("reviewer", on={"pending": lambda _record: asked.set()})

        async def approve(_controller: greenroom.TaskController) -> dict[str, Any]:
            return await runtime.ask("reviewer", QUESTION, timeout=60)

        async def answer() -> None:
            await asked.wait()
            (form,) = reviewer.pending()
            await runtime.terminals.answer("reviewer", form.id, {"publish": True})

        nursery.start_soon(answer)
        functions = {"check": check, "flaky": flaky, "approve": approve}
        result = await runtime.workflows.run(RELEASE, functions=functions)
        print(result.status)
        for each in result.results:
            print(f"{each.phase}/{each.task}:", each.result.value)


trio.run(main)
