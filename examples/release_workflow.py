"""A release with a person in its middle, which survives whatever ends its process.

Run it in one shell, and answer in another one, or at http://127.0.0.1:8642:

    greenroom run examples/release_workflow.json --functions examples.release_workflow --data release.db \
        --terminal reviewer
    greenroom attach reviewer

End it while it waits, with Ctrl-C or `kill -9`: the same command goes on where it was. What was built is not built
again, the question is there again, and an answer that was given is used. `python examples/release_workflow.py` does
the same by itself.
"""

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import trio

import greenroom

RELEASE = json.loads(Path(__file__).with_suffix(".json").read_text("utf-8"))
QUESTION = {
    "label": "Publish release 4.2?",
    "fields": [
        {"control": "confirm", "name": "publish", "rule": {"required": True}},
        {"control": "text", "name": "reason", "rule": {"required": True, "minimum": 3}},
    ],
}


def functions(runtime: greenroom.Runtime) -> dict[str, object]:
    """The behaviours that the workflow names."""

    async def approve(controller: greenroom.TaskController) -> dict[str, Any]:
        note(controller)
        durable = controller.key if runtime.journal is not None else None
        answer = await runtime.ask("reviewer", QUESTION, from_="release", timeout=None, key=durable)
        if not answer["publish"]:
            raise greenroom.Permanent(f"The reviewer said no: {answer['reason']}")
        return answer

    return {"build": build, "tests": tests, "approve": approve, "upload": upload}


async def build(controller: greenroom.TaskController) -> str:
    note(controller)
    for done in range(1, 4):
        controller.report({"note": "compiling", "progress": {"current": done, "total": 3, "unit": "modules"}})
        await trio.sleep(0.1)
    return "release-4.2.tar.gz"


def tests(controller: greenroom.TaskController) -> str:
    note(controller)
    if controller.attempt == 1:
        raise RuntimeError("a port was taken")
    return "passed"


def upload(controller: greenroom.TaskController) -> str:
    note(controller)
    (approval,) = [each.result.value for each in controller.results() if each.phase == "approve"]
    return f"published, because: {approval['reason']}"


def note(controller: greenroom.TaskController) -> None:
    """Write down that a step is carried out, in the file that RELEASE_DIARY names, so that everybody can count."""
    if diary := os.environ.get("RELEASE_DIARY"):
        with open(diary, "a", encoding="utf-8") as file:
            file.write(f"{controller.key}, attempt {controller.attempt}\n")


async def until_asked(data: Path) -> None:
    """Run it until it waits for the reviewer, and leave it there."""
    async with greenroom.open_runtime(data=data) as runtime:
        asked = trio.Event()
        runtime.terminals.add("reviewer", on={"pending": lambda _record: asked.set()})
        await runtime.workflows.start(RELEASE, functions=functions(runtime))
        await asked.wait()
        print("stopping while the reviewer is asked")


async def to_the_end(data: Path) -> None:
    """Run it on, now that the reviewer answers."""
    async with greenroom.open_runtime(data=data) as runtime:
        asked = trio.Event()
        reviewer = runtime.terminals.add("reviewer", on={"pending": lambda _record: asked.set()})
        await asked.wait()
        (form,) = reviewer.pending()
        await runtime.terminals.answer("reviewer", form.id, {"publish": True, "reason": "All checks passed."})
        run = await runtime.workflows.start(RELEASE, functions=functions(runtime))
        result = await run.wait()
        print(result.status)
        for each in result.results:
            print(f"{each.phase}/{each.task}:", each.result.value)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RELEASE_DIARY"] = str(Path(folder, "diary.txt"))
        trio.run(until_asked, Path(folder, "release.db"))
        trio.run(to_the_end, Path(folder, "release.db"))
        print(Path(folder, "diary.txt").read_text("utf-8"), end="")
