"""An orchestrator on asyncio with a greenroom inside: two steps ask a person at once; one of them gives up in time.

`python examples/asyncio_orchestrator.py`
"""

import asyncio
import time

import greenroom

APPROVAL = {"fields": [{"control": "confirm", "name": "approve", "rule": {"required": True}}]}


async def main() -> None:
    async with greenroom.portal() as portal:
        await portal.run(portal.runtime.terminals.add, "reviewer")
        await portal.run(portal.runtime.terminals.add, "nobody-home")
        async with asyncio.TaskGroup() as steps:
            steps.create_task(deploy(portal))
            steps.create_task(hurry(portal))
            steps.create_task(asyncio.to_thread(person, portal))


async def deploy(portal: greenroom.Portal) -> None:
    answer = await portal.run(portal.runtime.ask, "reviewer", APPROVAL, from_="deploy")
    print("deploy:", answer)


async def hurry(portal: greenroom.Portal) -> None:
    try:
        async with asyncio.timeout(0.2):
            await portal.run(portal.runtime.ask, "nobody-home", APPROVAL, from_="hurry")
    except TimeoutError:  # the question has left every screen by now
        print(
            "hurry: nobody answered; still pending there:", portal.call(portal.runtime.terminals.pending, "nobody-home")
        )


def person(portal: greenroom.Portal) -> None:
    """Would sit at a browser: `await portal.run(portal.runtime.serve)` opens a page for them."""
    while not (pending := portal.call(portal.runtime.terminals.pending, "reviewer")):
        time.sleep(0.01)
    portal.call(portal.runtime.terminals.answer, "reviewer", pending[0].id, {"approve": True})


asyncio.run(main())
