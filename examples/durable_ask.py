"""A question that outlives its process: it is asked, the program stops, and the next one gets the answer."""

import tempfile
from pathlib import Path

import trio

import greenroom

FORM = {
    "label": "Publish release 4.2?",
    "fields": [{"control": "confirm", "name": "publish", "rule": {"required": True}}],
}


async def ask_and_stop(file: Path) -> None:
    async with greenroom.open_runtime(data=file) as runtime:
        runtime.terminals.add("reviewer")
        with trio.move_on_after(0.5):  # nobody is there yet
            await runtime.ask("reviewer", FORM, key="release 4.2", timeout=7 * 86_400)
        print("stopping; recorded is", [form.id for form in runtime.terminals.pending("reviewer")])


async def go_on(file: Path) -> None:
    async with greenroom.open_runtime(data=file) as runtime, trio.open_nursery() as nursery:
        runtime.terminals.add("reviewer")
        nursery.start_soon(answer, runtime)
        print(await runtime.ask("reviewer", FORM, key="release 4.2"))
        await runtime.terminals.release("release 4.2")


async def answer(runtime: greenroom.Runtime) -> None:
    await trio.sleep(0.1)  # a person takes a moment
    (form,) = runtime.terminals.pending("reviewer")
    print("there again is", [form.id])
    await runtime.terminals.answer("reviewer", form.id, {"publish": True})


with tempfile.TemporaryDirectory() as folder:
    trio.run(ask_and_stop, Path(folder, "greenroom.db"))
    trio.run(go_on, Path(folder, "greenroom.db"))
