"""A program in a process of its own that is killed once it has said how far it is."""

from __future__ import annotations

import subprocess
import sys

import trio

__all__ = ["said_before_its_kill"]


async def said_before_its_kill(program: str, *words: str) -> str:
    """Run the text of a program with these arguments, and kill it as soon as it has printed something; that."""
    process = await trio.lowlevel.open_process([sys.executable, "-c", program, *words], stdout=subprocess.PIPE)
    assert process.stdout is not None
    async with process.stdout:
        said = await process.stdout.receive_some()
        process.kill()
        await process.wait()
    return said.decode().strip()
