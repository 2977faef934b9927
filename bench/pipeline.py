"""Calls of tools: what a policy costs, whether many calls stay cheap; jobs, and the log of an agent."""

from __future__ import annotations

import time
from typing import Any

from bench.harness import cost, rate, times
from greenroom import (
    Accept,
    Allow,
    Bus,
    Invocation,
    Job,
    Next,
    Outcome,
    Pipeline,
    Review,
    Settled,
    Tool,
    ToolCall,
    ToolManager,
    Verdict,
    open_runtime,
)

CALLS = 3_000
LISTENERS = 10
JOBS = 1_000
FEW, MANY = 1_000, 10_000
ROUNDS_A_SIDE = 5

CALL = ToolCall("1", "look", {"name": "x", "deep": {"list": [1, 2, 3]}})


def _tools(pipeline: Pipeline | None) -> ToolManager:
    tools = ToolManager(pipeline=pipeline)
    tools.add(Tool("look", lambda arguments: {"found": arguments["name"]}))
    return tools


async def _seconds(tools: ToolManager, calls: int = CALLS) -> float:
    """The seconds of one call."""
    start = time.perf_counter()
    for _ in range(calls):
        assert (await tools.execute(CALL)).success
    return (time.perf_counter() - start) / calls


async def plain() -> float:
    return await _seconds(_tools(None))


@times("pipeline/no-policies", against=plain)
async def no_policies() -> float:
    """A call where there is a pipeline and nothing registered on it."""
    return await _seconds(_tools(Pipeline(Bus())))


async def _pass_through(call: Invocation, next: Next[Verdict]) -> Verdict:
    return await next()


@times("pipeline/pass-through-listener")
async def pass_through_listener() -> float:
    """Microseconds that one more listener adds to a call that has a policy already, if it only calls `next`."""
    few, many = Pipeline(Bus()), Pipeline(bus := Bus())
    few.guard(lambda call: None)
    many.guard(lambda call: None)
    for _ in range(LISTENERS):
        bus.on(many.pre_execute, _pass_through)
    without, together = _tools(few), _tools(many)
    pairs = [(await _seconds(without, 500), await _seconds(together, 500)) for _ in range(ROUNDS_A_SIDE)]
    return (min(pair[1] for pair in pairs) - min(pair[0] for pair in pairs)) / LISTENERS * 1e6


@times("pipeline/10k-calls-5-policies")
async def many_calls() -> float:
    """How many times as long ten thousand calls take as one thousand, with a policy at each of five stages."""
    pipeline = Pipeline(bus := Bus())
    told: list[Settled] = []

    async def decide(call: Invocation, next: Next[Verdict]) -> Verdict:
        return Allow() if "name" in call.arguments else await next()

    async def around(call: Invocation, next: Next[Outcome]) -> Outcome:
        return await next()

    async def review(settled: Settled, next: Next[Review]) -> Review:
        return Accept(contexts=(await next()).contexts)

    def observe(settled: Settled) -> None:
        told[:] = [settled]

    listeners: list[tuple[Any, Any]] = [
        (pipeline.pre_execute, decide),
        (pipeline.execute, around),
        (pipeline.post_execute, review),
        (pipeline.result, observe),
    ]
    for event, listener in listeners:
        bus.on(event, listener)
    pipeline.guard(lambda call: None)
    tools = _tools(pipeline)
    few = await _seconds(tools, FEW) * FEW
    many = await _seconds(tools, MANY) * MANY
    return many / few


async def _work(_job: Job) -> str:
    return "done"


@cost("jobs/start-and-finish")
async def start_and_finish() -> float:
    """A job with a place in the tree, from its start to the end that its starter waits for."""
    async with open_runtime() as runtime:
        start = time.perf_counter()
        for _ in range(JOBS):
            job = await runtime.jobs.start("bench", "Do nothing", _work)
            assert (await job.wait()).status == "completed"
        return (time.perf_counter() - start) / JOBS


EVENTS = 5_000


@rate("log/append")
async def appending() -> float:
    """Events a second that are appended to a session of a runtime, in memory."""
    async with open_runtime() as runtime:
        session = await runtime.sessions.open("bench")
        message = {"content": "Look at the plan, and say what is left to do."}
        start = time.perf_counter()
        for _ in range(EVENTS):
            session.append("user/message", message)
        return EVENTS / (time.perf_counter() - start)
