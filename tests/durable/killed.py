"""The process that is killed while people are being asked: `python -m tests.durable.killed`, in the project's root.

See `tests.journal.killed` for how it is driven. It says:

- `asking KEY`, then `shown ID KEY` for each form that is announced, `got KEY TOKEN` or `ended KEY REASON`;
- `answering KEY TOKEN`, then `answered KEY TOKEN` if that was accepted;
- `releasing KEY`, then `released KEY`.
"""

from __future__ import annotations

import random
from typing import Any

import trio

from greenroom.actors.system import Runtime, open_runtime
from greenroom.actors.terminal import Notice
from greenroom.protocol.errors import FormError
from greenroom.protocol.terminals import AnswerSuccess
from tests.journal.killed import obey, say

__all__ = ["OWNER", "PLACES", "form", "key_of", "place"]

OWNER = "run/killed"
PLACES = ("front", "back")
ASKERS = 8
PEOPLE = 3


def form(key: str) -> dict[str, Any]:
    """What is asked with that key."""
    return {"label": key, "fields": [{"control": "text", "name": "token", "rule": {"required": True}}]}


def place(key: str) -> str:
    """Where it is asked."""
    return PLACES[sum(key.encode()) % 2]


def key_of(notice: Notice) -> str:
    """The key by which the form was asked."""
    return str(notice.record.schema.label)


async def live(seed: str, path: str) -> None:
    """Ask, answer and release, what earlier lives have left as well as what is new, for ever."""
    async with open_runtime(data=path, timeout=None) as runtime:
        send, receive = trio.open_memory_channel[Notice](1_000)

        def hear(notice: Notice) -> None:
            if notice.kind == "pending":
                say("shown", notice.id, key_of(notice))
                send.send_nowait(notice)

        for name in PLACES:
            runtime.terminals.subscribe(name, hear)
            runtime.terminals.add(name)
        assert runtime.terminals.durable is not None
        left = [ask.key for ask in runtime.terminals.durable.owned_by(OWNER)]
        async with trio.open_nursery() as nursery:
            for number in range(PEOPLE):
                nursery.start_soon(answer, runtime, receive.clone(), f"{seed}.{number}")
            for number in range(ASKERS):
                nursery.start_soon(ask, runtime, f"{seed}.{number}", left[number::ASKERS])


async def ask(runtime: Runtime, name: str, left: list[str]) -> None:
    """One question after the other. Some expire, some are given up and asked again, most are released in the end."""
    random_, turn = random.Random(name), 0
    while True:
        turn += 1
        key = left.pop() if left else f"{name}.{turn}"
        timeout = random_.choice((None, None, None, 0.02))
        say("asking", key)
        scope = trio.CancelScope()
        if random_.random() < 0.3:
            scope.deadline = trio.current_time() + 0.003
        try:
            with scope:
                values = await runtime.ask(place(key), form(key), key=key, owner=OWNER, timeout=timeout)
                say("got", key, values["token"])
        except FormError as error:
            say("ended", key, error.context["reason"])
        if scope.cancelled_caught:
            left.insert(0, key)
        elif random_.random() < 0.7:
            say("releasing", key)
            assert await runtime.terminals.release(key, owner=OWNER)
            say("released", key)


async def answer(runtime: Runtime, receive: trio.MemoryReceiveChannel[Notice], name: str) -> None:
    """One form after the other; some are left alone."""
    random_, turn = random.Random(name), 0
    async for notice in receive:
        turn += 1
        if random_.random() < 0.1:
            continue
        await trio.sleep(random_.choice((0, 0, 0.004)))
        key, token = key_of(notice), f"{name}.{turn}"
        say("answering", key, token)
        result = await runtime.terminals.answer(notice.to, notice.id, {"token": token})
        if isinstance(result, AnswerSuccess):
            say("answered", key, token)


if __name__ == "__main__":
    obey(live)
