"""Writing the journal: what it is worth that those who write at the same time share a transaction."""

from __future__ import annotations

import tempfile
import time
from contextlib import closing
from pathlib import Path

import trio

from bench.harness import times, workload
from greenroom.runtime.journal import open_journal
from greenroom.runtime.journal.file import JournalFile
from greenroom.runtime.tree import run_tree

PAYLOAD = workload("one-field")["valid"]
WRITERS, EACH = 1_000, 10
ROWS = 100

DISK = "/var/tmp" if Path("/var/tmp").is_dir() else None
"""Where a temporary file lies on a disk, as /tmp need not."""


async def one_row_one_commit() -> float:
    """Rows per second of one task that inserts each into a journal's own table in a transaction of its own, through a
    worker thread, as whoever does not share has to."""
    with tempfile.TemporaryDirectory(dir=DISK) as folder, closing(JournalFile(Path(folder, "journal.db"))) as file:
        connection = file.writer
        connection.execute("INSERT INTO streams (id, name, first, began) VALUES (1, 'stream', 0, 0)")
        limiter = trio.CapacityLimiter(1)

        def commit(number: int) -> None:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("INSERT INTO events VALUES (1, ?, 0, 'answered', ?)", (number, b"x" * 30))
            connection.execute("COMMIT")

        start = time.perf_counter()
        for number in range(ROWS):
            await trio.to_thread.run_sync(commit, number, limiter=limiter)
        return ROWS / (time.perf_counter() - start)


@times("journal/group-commit", against=one_row_one_commit)
async def group_commit() -> float:
    """Rows per second of a thousand tasks, each with a stream of its own and waiting for each of its commits."""
    with tempfile.TemporaryDirectory(dir=DISK) as folder:
        async with run_tree() as tree:
            journal = await open_journal(tree, Path(folder, "journal.db"))

            async def write(writer: int) -> None:
                stream = f"stream-{writer}"
                for _ in range(EACH):
                    await journal.append(stream, "answered", PAYLOAD)

            start = time.perf_counter()
            async with trio.open_nursery() as nursery:
                for writer in range(WRITERS):
                    nursery.start_soon(write, writer)
            return WRITERS * EACH / (time.perf_counter() - start)
