"""Terminals: scripts over one runtime whose clock stands still but for the script's own advances."""

from __future__ import annotations

from typing import Any

import msgspec
import trio

from greenroom.actors.system import Runtime, open_runtime
from greenroom.actors.terminal import MemoryTerminalStore
from greenroom.actors.toolbox.answer import answer_tool
from greenroom.actors.toolbox.ask import ask_tool
from greenroom.protocol.errors import GreenroomError
from greenroom.protocol.forms import Form, Settled
from greenroom.protocol.terminals import AnswerResult, PendingForm
from tests.clock import advance, settle
from tests.conformance.customs import with_customs
from tests.conformance.recorded import Placeholders, error

UNSET = msgspec.UNSET


async def script(given: Any) -> Any:
    options = given.get("options", {})
    async with open_runtime(
        timeout=options["timeout"] / 1000 if "timeout" in options else 300.0,
        cap=options.get("cap"),
        store=MemoryTerminalStore() if options.get("store") else None,
        wall_clock=trio.current_time,
    ) as runtime:
        async with trio.open_nursery() as nursery:
            play = _Play(runtime, nursery)
            steps = [await play.step(step) for step in given["steps"]]
            nursery.cancel_scope.cancel()
    return {"steps": steps}


class _Play:
    """What one script has asked so far, and what it was told since its last step."""

    def __init__(self, runtime: Runtime, nursery: trio.Nursery) -> None:
        self.terminals = runtime.terminals
        self.nursery = nursery
        self.ids = Placeholders()
        self.asks = 0
        self.events: list[Any] = []
        self.settled: list[Any] = []
        emitter = self.terminals.emitter
        emitter.on("pending", lambda record: self.events.append(["pending", self.ids.issue(record.id)]))
        emitter.on("answer", lambda to, id, values: self.events.append(["answer", to, self.ids.issue(id), values]))
        emitter.on("expire", lambda to, id: self.events.append(["expire", to, self.ids.issue(id)]))

    async def step(self, step: Any) -> Any:
        step = self.ids.read(step)
        self.events.clear()
        self.settled.clear()
        try:
            told = await getattr(self, "do_" + step["do"].replace(".", "_"))(step)
        except GreenroomError as raised:
            told = _error(raised)
        await settle()
        if self.events:
            told["events"] = list(self.events)
        if self.settled:
            told["settled"] = sorted(self.settled, key=lambda entry: entry["ask"])
        return self.ids.write(told)

    # ---------------------------------------------------------------- asking

    async def do_ask(self, step: Any) -> Any:
        async def ask() -> Any:
            form = Form(with_customs(step["schema"], step.get("custom", [])))
            return await self.terminals.ask(step["from"], step["to"], form)

        return await self._asked(ask)

    async def do_tool_ask(self, step: Any) -> Any:
        tool = ask_tool(self.terminals, step["from"])
        return await self._asked(lambda: tool.execute(step["args"]))

    async def _asked(self, ask: Any) -> Any:
        number, self.asks = self.asks, self.asks + 1

        async def run() -> None:
            try:
                value = await ask()
            except GreenroomError as raised:
                self.settled.append({"ask": number, **_error(raised)})
            else:
                self.settled.append({"ask": number, "value": value})

        self.nursery.start_soon(run)
        await settle()
        return {"ask": number, **self._parked()}

    def _parked(self) -> Any:
        parked = [event[1] for event in self.events if event[0] == "pending"]
        return {"id": parked[-1]} if parked else {}

    async def do_park(self, step: Any) -> Any:
        terminal = self.terminals.terminal(step["name"])
        if terminal is None:
            return {"error": {"code": None}}
        number, self.asks = self.asks, self.asks + 1
        form = Form(with_customs(step["schema"], step.get("custom", [])))
        form.on_end(
            lambda outcome: self.settled.append(
                {"ask": number, "value": outcome.values}
                if isinstance(outcome, Settled)
                else {"ask": number, "error": {"code": "ABANDONED"}}
            )
        )
        try:
            await terminal.park(form)
        except GreenroomError as raised:
            return {"ask": number, **_error(raised)}
        return {"ask": number, **self._parked()}

    # ---------------------------------------------------------------- answering

    async def do_answer(self, step: Any) -> Any:
        return {"answer": _result(await self.terminals.answer(step["to"], step["id"], step["values"]))}

    async def do_tool_answer(self, step: Any) -> Any:
        return {"result": msgspec.to_builtins(await answer_tool(self.terminals, step["to"]).execute(step["args"]))}

    # ---------------------------------------------------------------- the registry

    async def do_add(self, step: Any) -> Any:
        timeout = step["timeout"] / 1000 if "timeout" in step else UNSET
        self.terminals.add(step["name"], timeout=timeout, cap=step.get("cap", UNSET))
        return {"terminals": self.terminals.terminals()}

    async def do_pending(self, step: Any) -> Any:
        return {"pending": [_record(record, "full" in step) for record in self.terminals.pending(step.get("to"))]}

    async def do_stop(self, step: Any) -> Any:
        terminal = self.terminals.terminal(step["name"])
        if terminal is None:
            return {"stopped": None}
        if "ids" in step:
            return {"stopped": await terminal.stop(step["ids"])}
        await terminal.stop()
        return {"stopped": None}

    async def do_remove(self, step: Any) -> Any:
        if "names" in step:
            return {"removed": await self.terminals.remove(step["names"])}
        await self.terminals.remove()
        return {"removed": None}

    async def do_save(self, step: Any) -> Any:
        return {"saved": await self.terminals.save(step["name"])}

    async def do_open(self, step: Any) -> Any:
        return {"opened": await self.terminals.open(step["name"]) is not None}

    async def do_count(self, _step: Any) -> Any:
        parked = {
            name: terminal.count for name in self.terminals.terminals() if (terminal := self.terminals.terminal(name))
        }
        return {"count": self.terminals.count, "parked": parked}

    async def do_destroy(self, _step: Any) -> Any:
        await self.terminals.destroy()
        return {}

    async def do_advance(self, step: Any) -> Any:
        await advance(step["ms"])
        return {}


def _result(result: AnswerResult) -> Any:
    return _wordless(msgspec.to_builtins(result))


def _error(raised: GreenroomError) -> Any:
    return _wordless(msgspec.to_builtins(error(raised)))


def _wordless(told: Any) -> Any:
    """Without messages, which no record holds."""
    if isinstance(told, dict):
        return {name: _wordless(member) for name, member in told.items() if name != "message"}
    return [_wordless(entry) for entry in told] if isinstance(told, list | tuple) else told


def _record(record: PendingForm, full: bool) -> Any:
    told = msgspec.to_builtins(record) | {"time": 0}
    return told if full else {name: value for name, value in told.items() if name not in ("schema", "time")}


OPS = {"terminal.script": script}
