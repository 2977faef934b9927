"""An agent asks a person a form; a reviewer, here a function, answers it. `python examples/embed.py`"""

import trio

import greenroom

FORM = {
    "label": "Publish release 4.2?",
    "fields": [
        {"control": "confirm", "name": "publish", "rule": {"required": True}},
        {"control": "text", "name": "reason", "rule": {"required": True, "minimum": 3}},
    ],
}


async def main() -> None:
    async with greenroom.open_runtime() as runtime, trio.open_nursery() as nursery:
        runtime.terminals.add("reviewer")
        nursery.start_soon(reviewer, runtime)
        print(await runtime.ask("reviewer", FORM, from_="release-agent", timeout=60))


async def reviewer(runtime: greenroom.Runtime) -> None:
    await trio.sleep(0.1)  # a person takes a moment
    (form,) = runtime.terminals.pending("reviewer")
    await runtime.terminals.answer("reviewer", form.id, {"publish": True, "reason": "All checks passed."})


trio.run(main)
