"""The command line: serve terminals, ask and answer at them, look at the tree, and the demo."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; ends the process with 0, 1 (it was refused or failed), 2 (wrong usage) or 130 (Ctrl-C)."""
    try:
        from greenroom.actors.cli.app import run  # here, so that Ctrl-C while it is imported is Ctrl-C

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)
