"""Actors without terminals: typed requests, a failure, and a restart in place. `python examples/counter.py`"""

import logging

import trio

from greenroom import Actor, Message, Request, Restart, handles, run_tree


class Add(Request[int], frozen=True):
    value: int


class Break(Message, frozen=True):
    pass


class Counter(Actor):
    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    @handles(Add)
    def add(self, message: Add) -> int:
        self.total += message.value
        return self.total

    @handles(Break)
    def break_(self, _message: Break) -> None:
        raise RuntimeError("nobody asked for this, so it is the actor's failure")


async def main() -> None:
    async with run_tree() as tree:
        tree.bus.on("actor/failed", lambda failed: print("failed:", failed.path, "- begins anew:", failed.restarting))
        counter = tree.spawn(Counter, "counter", restart=Restart("on_failure", backoff=0))
        print(await counter.ask(Add(2)), await counter.ask(Add(3)))
        counter.tell(Break())
        print(await counter.ask(Add(1)), "after the restart, behind the same address")


logging.getLogger("greenroom").setLevel(logging.CRITICAL)  # the failure is logged too, with its traceback
trio.run(main)
