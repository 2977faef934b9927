"""Commands of the system: run in a group of their own, and ended with all that they have started."""

from greenroom.actors.process.command import GRACE, run_command
from greenroom.actors.process.environment import scrubbed

__all__ = ["GRACE", "run_command", "scrubbed"]
