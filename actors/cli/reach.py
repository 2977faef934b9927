"""The way from a command to the gateway that it talks to."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from greenroom.actors.client import Client, connect
from greenroom.protocol.errors import GreenroomError

__all__ = ["reach"]


@asynccontextmanager
async def reach(url: str) -> AsyncGenerator[Client]:
    """A client of the gateway at `url`, with the token in GREENROOM_TOKEN. A refusal to connect says what to do."""
    try:
        async with connect(url, token=os.environ.get("GREENROOM_TOKEN") or None) as client:
            yield client
    except GreenroomError as error:
        if error.code != "CONNECT":
            raise
        hint = "Start one with `greenroom serve`, or name another with --url or GREENROOM_URL."
        if error.context.get("status") == 401:
            hint = "Put the token into GREENROOM_TOKEN."
        raise type(error)(error.code, f"{error.message} {hint}", error.context) from None
