"""`greenroom demo`."""

from greenroom.actors.cli.demo.play import STEPS, demo

__all__ = ["STEPS", "demo"]
