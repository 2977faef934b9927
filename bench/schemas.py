"""Schemas from samples: what inferring one costs, and checking a call against it. `data` declares the figures."""

from __future__ import annotations

import statistics
import time
from typing import Any

from greenroom.actors.toolbox.endpoint import endpoint_tool
from greenroom.actors.toolbox.infer import infer_tool

__all__ = ["check", "infer"]

SAMPLES = 1_000
INFERENCES = 3
CHECKS = 2_000


def order(index: int) -> dict[str, Any]:
    return {
        "id": f"o{index:06}",
        "placed": f"2026-{1 + index % 12:02}-{1 + index % 28:02}",
        "status": ("open", "paid", "sent")[index % 3],
        "total": index % 977 / 4,
        "gift": index % 7 == 0,
        "customer": {"name": f"customer {index % 100}", "mail": f"c{index % 100}@example.org"},
        "lines": [{"product": f"p{line}", "amount": 1 + line} for line in range(1 + index % 3)],
        **({"note": f"number {index}"} if index % 2 else {}),
    }


async def infer() -> float:
    """Milliseconds of a call that infers the schema of a thousand orders, with formats and enumerations."""
    tool, call = infer_tool(), {"samples": [order(index) for index in range(SAMPLES)], "format": True, "enum": True}
    taken: list[float] = []
    for _ in range(INFERENCES):
        start = time.perf_counter()
        schema = await tool.execute(call)
        taken.append(time.perf_counter() - start)
        assert schema["properties"]["status"] == {"enum": ["open", "paid", "sent"]}
    return statistics.median(taken) * 1000


async def check() -> float:
    """Microseconds of a call of an endpoint that does nothing, with arguments that fit its samples."""
    samples = [{"id": index, "name": f"name {index}", "price": index / 4, "sold": index % 2 == 0} for index in range(9)]
    tool = endpoint_tool("price", "Sets a price.", samples, len)
    call = {"id": 7, "name": "x", "price": 1.5, "sold": True}
    start = time.perf_counter()
    for _ in range(CHECKS):
        assert await tool.execute(call) == 4
    return (time.perf_counter() - start) / CHECKS * 1e6
