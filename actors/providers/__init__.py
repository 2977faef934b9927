"""Models behind one interface. Those that go over HTTP need the extra `agents`, and are imported from their modules."""

from greenroom.actors.providers.scripted import ScriptedCall, ScriptedProvider, ScriptedTurn

__all__ = ["ScriptedCall", "ScriptedProvider", "ScriptedTurn"]
