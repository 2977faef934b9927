"""Figures on tool calls, for OpenTelemetry or whatever takes counts and durations like it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import trio

from greenroom.runtime.bus import Bus, Next, closing_all
from greenroom.runtime.pipeline.invocations import Invocation, Settled
from greenroom.runtime.pipeline.outcomes import Outcome, ToolFail

__all__ = ["Meter", "measure_tools"]

Attributes = Mapping[str, str]


class Counter(Protocol):
    def add(self, amount: int, attributes: Attributes) -> None: ...


class Histogram(Protocol):
    def record(self, amount: float, attributes: Attributes) -> None: ...


class Meter(Protocol):
    """What is used of an OpenTelemetry `Meter`."""

    def create_counter(self, name: str, unit: str = "", description: str = "") -> Counter: ...
    def create_histogram(self, name: str, unit: str = "", description: str = "") -> Histogram: ...


def measure_tools(bus: Bus, meter: Meter) -> Callable[[], None]:
    """Count calls (`greenroom.tool.calls`) and take their time (`greenroom.tool.duration`, in seconds, the tool and the
    policies registered later), until the returned function is called. With the extra `telemetry`::

        measure_tools(runtime.bus, opentelemetry.metrics.get_meter("greenroom"))

    Attributes are those of OpenTelemetry's conventions: `gen_ai.tool.name`, and `error.type` (the code) of what failed.
    Names and values of arguments appear nowhere; nor do names of tools that are not there, of which a model may invent
    any number.
    """
    calls = meter.create_counter("greenroom.tool.calls", unit="{call}", description="Tool calls by how they ended.")
    seconds = meter.create_histogram("greenroom.tool.duration", unit="s", description="How long tools took.")

    async def timed(call: Invocation, next: Next[Outcome]) -> Outcome:
        started = trio.current_time()
        outcome = await next()
        seconds.record(trio.current_time() - started, _attributes(call, outcome))
        return outcome

    def counted(settled: Settled) -> None:
        calls.add(1, _attributes(settled.call, settled.outcome))

    return closing_all(bus.on("tools/execute", timed), bus.on("tools/result", counted))


def _attributes(call: Invocation, outcome: Outcome) -> Attributes:
    named = {"gen_ai.tool.name": call.name if call.known else "unknown"}
    return {**named, "error.type": outcome.code} if isinstance(outcome, ToolFail) else named
