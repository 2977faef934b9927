"""Sub-agents: agents beneath an agent, for one task or for as long as it lives, and the control of them."""

from greenroom.actors.subagent.manager import Subagents
from greenroom.actors.subagent.providers import CAPABILITIES, ChildProvider, ChildSpec, ForkProvider, SpawnProvider

__all__ = ["CAPABILITIES", "ChildProvider", "ChildSpec", "ForkProvider", "SpawnProvider", "Subagents"]
