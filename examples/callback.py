"""A graph runner that only has a callback for what a step decides, with people behind it. `python examples/callback.py`

The runner calls `decide(step, state)` in worker threads of its own and waits for what it returns; that is all it knows.
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import greenroom

State = dict[str, Any]
GRAPH = {"draft": "review", "review": "publish", "publish": None}


def run_graph(decide: Callable[[str, State], State]) -> State:
    """What stands for somebody else's framework."""
    state: State = {}
    step: str | None = "draft"
    with ThreadPoolExecutor() as workers:
        while step is not None:
            state |= workers.submit(decide, step, state).result()
            step = GRAPH[step]
    return state


def form(step: str, state: State) -> dict[str, Any]:
    field = {"control": "text", "name": step, "rule": {"required": True}}
    return {"label": f"{step}? So far: {state}", "fields": [field]}


def person(portal: greenroom.Portal, done: threading.Event) -> None:
    """Answers whatever is asked, as somebody at a browser would."""
    while not done.wait(0.01):
        for form in portal.call(portal.runtime.terminals.pending, "editor"):
            values = {field.name: f"{field.name} is fine" for field in form.schema.fields}
            portal.call(portal.runtime.terminals.answer, "editor", form.id, values)


with greenroom.portal(timeout=60) as portal, ThreadPoolExecutor() as people:
    portal.call(portal.runtime.terminals.add, "editor")
    done = threading.Event()
    people.submit(person, portal, done)
    try:
        print(
            run_graph(lambda step, state: portal.call(portal.runtime.ask, "editor", form(step, state), from_="graph"))
        )
    finally:
        done.set()
