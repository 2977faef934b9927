"""The way from a command to the gateway that it talks to."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from greenroom.actors.client import Client, connect
from greenroom.protocol.errors import GreenroomError

__all__ = ["reach"]


@asynccontextmanager
async def reach(url: str, *, id: str | None = None) -> AsyncGenerator[Client]:
    """A client of the gateway at `url`, with the token in GREENROOM_TOKEN. A refusal to connect says what to do.

    `id` is what the client calls itself, by which it finds its durable asks (default: something random).

    What is asked in the block is withdrawn when it is cancelled: a command that asks races it with `until_signalled`.
    """
    try:
        async with connect(url, token=os.environ.get("GREENROOM_TOKEN") or None, id=id) as client:
            yield client
    except GreenroomError as error:
        if error.code != "CONNECT":
            raise
        hint = "Start one with `greenroom serve`, or name another with --url or GREENROOM_URL."
        if "status" in error.context:  # there is one, and it refuses
            hint = "Put a valid token into GREENROOM_TOKEN." if error.context["status"] == 401 else ""
        raise type(error)(error.code, f"{error.message} {hint}".rstrip(), error.context) from None
