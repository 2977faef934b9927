"""Inference: the tool called with one record of arguments."""

from __future__ import annotations

from typing import Any

from greenroom.actors.toolbox.infer import infer_tool
from tests.conformance.recorded import error

__all__ = ["OPS"]


async def infer(given: Any) -> Any:
    try:
        return await infer_tool().execute(given)
    except Exception as raised:
        return error(raised)


OPS = {"infer": infer}
