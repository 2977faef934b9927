"""A process that holds a journal and does what it is told: `python -m tests.journal.child PATH`, in the project's root.

It says `ready` once the journal is open, and ends when its input does. The other child, which is killed while it
writes, is in `kill_run.py`.
"""

from __future__ import annotations

import sys

import trio

from tests.journal.stage import opened


async def main(path: str) -> None:
    async with opened(path) as journal:
        await journal.append("child", "began", None)
        print("ready", flush=True)
        await trio.to_thread.run_sync(sys.stdin.read)


if __name__ == "__main__":
    trio.run(main, sys.argv[1])
