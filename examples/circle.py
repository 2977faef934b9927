"""Two agents that ask each other: the second ask is refused at once, and says why. `python examples/circle.py`"""

import trio

import greenroom

QUESTION = {"fields": [{"control": "text", "name": "opinion", "rule": {"required": True}}]}


async def main() -> None:
    async with greenroom.open_runtime() as runtime, trio.open_nursery() as nursery:
        runtime.terminals.add("writer")
        runtime.terminals.add("critic")
        nursery.start_soon(writer, runtime)

        with trio.fail_after(5):  # only so that a broken example ends; nobody waits this long
            while not (asked := runtime.terminals.pending("critic")):
                await trio.lowlevel.checkpoint()
        try:
            await runtime.ask("writer", QUESTION, from_="critic")
        except greenroom.Deadlock as refused:
            print("refused:", " -> ".join(refused.path))
        await runtime.terminals.answer("critic", asked[0].id, {"opinion": "Too many adverbs."})


async def writer(runtime: greenroom.Runtime) -> None:
    print("answered:", await runtime.ask("critic", QUESTION, from_="writer"))


trio.run(main)
