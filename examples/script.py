"""A plain script that knows nothing of trio asks a person, whom a thread plays here. `python examples/script.py`"""

import threading
import time

import greenroom

REGIONS = [{"value": "eu", "label": "Europe"}, {"value": "us", "label": "United States"}]
QUESTION = {"fields": [{"control": "select", "name": "region", "choices": REGIONS}]}


def person(portal: greenroom.Portal) -> None:
    while not (pending := portal.call(portal.runtime.terminals.pending, "ops")):
        time.sleep(0.01)
    portal.call(portal.runtime.terminals.answer, "ops", pending[0].id, {"region": "eu"})


with greenroom.portal(timeout=60) as portal:
    portal.call(portal.runtime.terminals.add, "ops")
    threading.Thread(target=person, args=[portal]).start()
    try:
        print("deploying to", portal.call(portal.runtime.ask, "ops", QUESTION, from_="deploy")["region"])
    except greenroom.GreenroomError as error:  # expired, refused as a circle, no such terminal ...
        print("not deployed:", error)
