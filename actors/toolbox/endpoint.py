"""Tools from samples: a function whose arguments are checked against what samples of them have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from greenroom.protocol.errors import ToolError
from greenroom.protocol.schemas import REFUSED, Contract, fault_text
from greenroom.protocol.schemas.infer import infer_schema, schema_to_object
from greenroom.runtime.tools import Tool

__all__ = ["endpoint_tool"]


def endpoint_tool(
    name: str,
    description: str,
    samples: list[Any],
    execute: Callable[[dict[str, Any]], Any],
    *,
    format: bool = False,
    enum: bool = False,
    validate: bool = True,
) -> Tool:
    """A tool that takes arguments such as the samples, and hands them to `execute` as one dict.

    What it advertises and what it checks are one schema, inferred here once (`format`, `enum`: see
    `infer_schema`). Arguments are read before: texts that spell numbers become such, unknown ones are dropped.
    Samples that are no records are the one argument `value`. With `validate=False` the very dict that came is handed
    on, unchecked. `execute` may be async; what it raises passes.

    Raises `ToolError` (TOOL), context `name`: without samples here, and at a call, with the `faults`, for arguments
    that do not fit.
    """
    if not samples:
        raise ToolError("TOOL", f"endpoint requires at least one sample, and {name} has none", {"name": name})
    parameters = schema_to_object(infer_schema(samples, format=format, enum=enum))
    contract = Contract(parameters)

    def call(args: dict[str, Any]) -> Any:
        if not validate:
            return execute(args)
        read = contract.parse(args)
        if read is REFUSED:
            faults = contract.explain(args)
            told = "; ".join(fault_text(fault) for fault in faults[:5])
            context = {"name": name, "faults": msgspec.to_builtins(faults)}
            raise ToolError("TOOL", f"malformed endpoint call arguments: {told}", context)
        return execute(read)

    return Tool(name, call, description=description, parameters=parameters)
