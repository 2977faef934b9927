"""Asking a terminal: the whole way of a form from the ask over the answer to the asker, and telling who looks."""

from __future__ import annotations

import functools
import json
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import Any

import trio
import trio.testing

from bench.harness import cost, rate, times, workload
from bench.journal import DISK, one_row_one_commit
from greenroom import FormSchema, Runtime, open_runtime, parse_form
from greenroom.actors.terminal import Notice
from greenroom.actors.terminal.ticket import Ticket
from greenroom.protocol.forms import Form
from greenroom.runtime.mailbox import Mailbox

ONE, TEN = workload("one-field"), workload("ten-field")
IN_FLIGHT = 10_000
SUBSCRIBERS, ELSEWHERE = 1_000, 5_000


def _schema(source: Any) -> FormSchema:
    parsed = parse_form(source)
    assert parsed is not None, "the workload is a sound schema"
    return parsed


async def _cycles(runtime: Runtime, form: dict[str, Any], count: int, fresh: bool = False) -> float:
    """Asks per second of one asker, each answered by another task before the next is asked."""
    terminals = runtime.terminals
    terminals.add("reviewer")
    seen = Mailbox()

    def told(notice: Notice) -> None:
        if notice.kind == "pending":
            seen.offer(notice)

    async def answer() -> None:
        while True:
            notice = await seen.receive()
            result = await terminals.answer("reviewer", notice.id, form["valid"])
            assert result.success

    text, schema = json.dumps(form["schema"]), _schema(form["schema"])
    unsubscribe = terminals.subscribe("reviewer", told)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(answer)
        await trio.testing.wait_all_tasks_blocked()
        start = time.perf_counter()
        for _ in range(count):
            await terminals.ask("agent", "reviewer", Form(_schema(json.loads(text)) if fresh else schema))
        taken = time.perf_counter() - start
        nursery.cancel_scope.cancel()
    unsubscribe()
    return count / taken


@rate("terminals/cycle-1")
async def cycle_1() -> float:
    """A one-field form, its parsed schema opened each time."""
    async with open_runtime() as runtime:
        return await _cycles(runtime, ONE, 3_000)


@rate("terminals/cycle-10")
async def cycle_10() -> float:
    """A ten-field form, its parsed schema opened each time."""
    async with open_runtime() as runtime:
        return await _cycles(runtime, TEN, 2_000)


@rate("terminals/cycle-10-fresh")
async def cycle_10_fresh() -> float:
    """A ten-field form whose schema comes as JSON each time."""
    async with open_runtime() as runtime:
        return await _cycles(runtime, TEN, 1_000, fresh=True)


async def _seconds_of_a_cycle(in_flight: int) -> float:
    async with open_runtime(tune_gc=True) as runtime:
        terminals, schema = runtime.terminals, _schema(ONE["schema"])
        async with trio.open_nursery() as nursery:
            for number in range(in_flight):
                name = f"terminal-{number % 100}"
                terminals.add(name)
                nursery.start_soon(functools.partial(terminals.ask, f"agent-{number}", name, Form(schema)))
            await trio.testing.wait_all_tasks_blocked()
            per_second = await _cycles(runtime, ONE, 3_000)
            nursery.cancel_scope.cancel()
    return 1 / per_second


@times("terminals/cycle-1-with-10k-in-flight", against=functools.partial(_seconds_of_a_cycle, 0))
async def cycle_1_with_10k_in_flight() -> float:
    """How much longer a cycle takes while 10,000 other asks are open, with the collector's thresholds raised."""
    return await _seconds_of_a_cycle(IN_FLIGHT)


async def _durable_cycles(askers: int, each: int) -> float:
    """Durable asks per second, each from its asking over its recorded answer to its asker, on a disk."""
    with tempfile.TemporaryDirectory(dir=DISK) as folder:
        async with open_runtime(data=Path(folder, "journal.db")) as runtime:
            terminals, schema = runtime.terminals, _schema(ONE["schema"])
            terminals.add("reviewer")
            send, receive = trio.open_memory_channel[str](askers)

            def told(notice: Notice) -> None:
                if notice.kind == "pending":
                    send.send_nowait(notice.id)

            async def answer() -> None:
                async for id in receive:
                    result = await terminals.answer("reviewer", id, ONE["valid"])
                    assert result.success

            async def ask(asker: int) -> None:
                for number in range(each):
                    await terminals.ask("agent", "reviewer", Form(schema), key=f"{asker}.{number}")

            terminals.subscribe("reviewer", told)
            async with trio.open_nursery() as answering:
                for _ in range(askers):
                    answering.start_soon(answer)
                start = time.perf_counter()
                async with trio.open_nursery() as asking:
                    for asker in range(askers):
                        asking.start_soon(ask, asker)
                taken = time.perf_counter() - start
                answering.cancel_scope.cancel()
            return askers * each / taken


@times("terminals/durable-cycle-1", against=one_row_one_commit)
async def durable_cycle_1() -> float:
    """One asker, against rows that are each committed by themselves; a cycle records the question and the answer."""
    return await _durable_cycles(1, 60)


@times("terminals/durable-cycle-100", against=one_row_one_commit)
async def durable_cycle_100() -> float:
    """A hundred askers at a time."""
    return await _durable_cycles(100, 8)


async def _seconds_of_an_event(elsewhere: int) -> float:
    """Telling all subscribers of a terminal that a form is pending;

    each keeps the notice, as a connection's queue does.
    """
    rounds = 200
    async with open_runtime() as runtime:
        terminals = runtime.terminals
        terminal = terminals.add("reviewer")
        for number in range(SUBSCRIBERS + elsewhere):
            name = "reviewer" if number < SUBSCRIBERS else f"terminal-{number % 50}"
            terminals.subscribe(name, deque[Notice](maxlen=8).append)
        ticket = Ticket("id", Form(_schema(TEN["schema"])), None, "agent", "reviewer", 0.0)
        start = time.perf_counter()
        for _ in range(rounds):
            terminals.announce(terminal, "pending", ticket)
        return (time.perf_counter() - start) / rounds


@cost("terminals/event-1k")
async def event_1k() -> float:
    """One event to 1,000 subscribers."""
    return await _seconds_of_an_event(0)


@times("terminals/event-1k-with-5k-elsewhere", against=functools.partial(_seconds_of_an_event, 0))
async def event_1k_with_5k_elsewhere() -> float:
    """The same, against it with 5,000 more subscribers of other terminals."""
    return await _seconds_of_an_event(ELSEWHERE)
