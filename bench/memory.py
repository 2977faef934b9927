"""What is kept for things that only wait."""

from __future__ import annotations

import functools
from typing import Any

import trio
import trio.testing

from bench.gateway import peers
from bench.harness import Measure, memory, workload
from greenroom import (
    Agent,
    FormSchema,
    MessageInput,
    ProviderResult,
    Runtime,
    ScriptedProvider,
    Tool,
    ToolCall,
    open_runtime,
    parse_form,
)
from greenroom.actors.terminal import Terminal
from greenroom.protocol.forms import Form

ONE = workload("one-field")
TERMINALS = 100
BATCH = 1_000


def _distinct_schema() -> FormSchema:
    parsed = parse_form(ONE["schema"])
    assert parsed is not None, "the workload is a sound schema"
    return parsed


async def _ask(runtime: Runtime, from_: str, to: str) -> dict[str, Any]:
    return await runtime.terminals.ask(from_, to, Form(_distinct_schema()))


def _terminals(runtime: Runtime) -> list[Terminal]:
    found = (runtime.terminals.terminal(name) for name in runtime.terminals.terminals())
    return [terminal for terminal in found if terminal is not None]


@memory("memory/parked-ask", count=100_000)
async def parked_ask(count: int, measure: Measure) -> None:
    """Asks with their waiting tasks, over 100 terminals, each with a schema object of its own."""
    async with open_runtime(tune_gc=True) as runtime:
        for number in range(TERMINALS):
            runtime.terminals.add(f"terminal-{number}")
        async with trio.open_nursery() as nursery:
            for number in range(count):
                nursery.start_soon(_ask, runtime, f"agent-{number}", f"terminal-{number % TERMINALS}")
                if number % BATCH == BATCH - 1:
                    await trio.testing.wait_all_tasks_blocked()
            await trio.testing.wait_all_tasks_blocked()
            assert sum(terminal.count for terminal in _terminals(runtime)) == count
            measure()
            nursery.cancel_scope.cancel()


@memory("memory/idle-terminal", count=100_000)
async def idle_terminal(count: int, measure: Measure) -> None:
    """Terminals that have had one ask and its answer each."""
    async with open_runtime(tune_gc=True) as runtime:
        terminals, schema = runtime.terminals, _distinct_schema()
        for first in range(0, count, BATCH):
            names = [f"terminal-{number}" for number in range(first, first + BATCH)]
            async with trio.open_nursery() as nursery:
                for name in names:
                    terminals.add(name)
                    nursery.start_soon(functools.partial(terminals.ask, "agent", name, Form(schema)))
                await trio.testing.wait_all_tasks_blocked()
                for name in names:
                    (record,) = terminals.pending(name)
                    assert (await terminals.answer(name, record.id, ONE["valid"])).success
        await trio.testing.wait_all_tasks_blocked()
        measure()


@memory("memory/idle-connection", count=10_000)
async def idle_connection(count: int, measure: Measure) -> None:
    """WebSockets that are attached to a terminal where nothing happens; their other ends are in another process."""
    async with open_runtime(tune_gc=True) as runtime:
        gateway = await runtime.serve()
        runtime.terminals.add("reviewer")
        async with peers(gateway.port) as clients:
            assert await clients.do("attach", count, "reviewer") == count
            await trio.testing.wait_all_tasks_blocked()
            assert gateway.connections == runtime.terminals.subscriptions == count
            measure()


@memory("memory/live-agent", count=1_000)
async def live_agent(count: int, measure: Measure) -> None:
    """Agents in the middle of a run: each has a caller, and a tool call that goes on."""
    provider = ScriptedProvider([ProviderResult("", tools=(ToolCall("1", "wait", {}),))], record=False)
    async with open_runtime(tune_gc=True) as runtime, trio.open_nursery() as nursery:
        measure(last=False)  # a process without agents is as large as a thousand of them
        for number in range(count):
            agent = runtime.agents.add(Agent(provider, id=f"agent-{number}", tools=[Tool("wait", trio.sleep_forever)]))
            agent.context.messages.add(MessageInput("user", "Begin."))
            nursery.start_soon(agent.generate)
        await trio.testing.wait_all_tasks_blocked()
        assert all(agent.status == "running" for agent in runtime.agents.agents())
        measure()
        nursery.cancel_scope.cancel()
