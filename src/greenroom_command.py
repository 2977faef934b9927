"""The command `greenroom`. It stands beside the package, whose import takes a moment in which Ctrl-C is Ctrl-C, too."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; ends the process with its exit code."""
    try:
        from greenroom.actors.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(130)
