"""`python -m bench.fresh MODULE FUNCTION COUNT`: the resident memory, in bytes, of a process that does only this.

A function that measures before it builds, with `last=False`, counts what came since: where it builds too few things to
outweigh the process itself.
"""

from __future__ import annotations

import gc
import importlib
import os
import resource
import sys
from functools import partial

import trio

from bench.harness import Build
from bench.limits import raise_descriptor_limit

__all__: list[str] = []


def main(module: str, function: str, count: int) -> None:
    """Build `count` things with a declared function and print what the process then holds."""
    raise_descriptor_limit()
    build: Build = getattr(importlib.import_module(module), function)
    before = 0

    def measure(*, last: bool = True) -> None:
        nonlocal before
        gc.collect()
        if last:
            print(_resident() - before, flush=True)
            os._exit(0)  # taking a hundred thousand things down again would take as long as building them
        before = _resident()

    trio.run(partial(build, count, measure))
    raise AssertionError(f"{function} has built, and did not say that it can be measured")


def _resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as pages:
        return int(pages.read().split()[1]) * resource.getpagesize()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
