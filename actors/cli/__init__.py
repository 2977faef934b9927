"""The command line: serve terminals, ask and answer at them, look at the tree, and the demo."""

from greenroom.actors.cli.app import main

__all__ = ["main"]
