"""What a holder of an access token may do."""

from __future__ import annotations

from typing import Final

import msgspec

__all__ = ["EVERYTHING", "PROTOCOL", "TOKEN_PROTOCOL", "Grants", "Names"]

PROTOCOL: Final = "greenroom"
"""The subprotocol that a WebSocket with a token in its handshake is answered with."""
TOKEN_PROTOCOL: Final = "greenroom.token."
"""What precedes a token, in base64url, among the subprotocols that a browser offers: it can set no other header."""

Names = tuple[str, ...]
"""Names of terminals, tools, runs or remote methods. `*` stands for all of them, and at the end of a name for whatever
follows."""


class Grants(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is granted; nothing that is not named here."""

    attach: Names = ()
    """See what is pending at these terminals, and what happens there."""
    answer: Names = ()
    """Answer forms at these terminals."""
    ask: Names = ()
    """Ask these terminals."""
    ask_as: Names = ()
    """Ask in these names, and take back what was asked in them. Asking in nobody's name needs no grant of its own."""
    tools: Names = ()
    """Call these tools."""
    runs: Names = ()
    """See these runs of workflows, by their ids, with all that their tasks have come to."""
    drive: Names = ()
    """Start, resume, signal and cancel these runs, and see them."""
    remote: Names = ()
    """Call these remote methods, and open these streams, by namespace and name: `release/start`, `release/*`."""
    tree: bool = False
    """Read the tree of actors, which names every terminal and who waits for whom."""
    admin: bool = False
    """Everything, on every terminal, tool and run, and every remote method."""

    def may_attach(self, terminal: str) -> bool:
        """It may see that terminal."""
        return self.admin or _among(terminal, self.attach)

    def may_answer(self, terminal: str) -> bool:
        """It may answer there."""
        return self.admin or _among(terminal, self.answer)

    def may_ask(self, terminal: str) -> bool:
        """It may ask that terminal."""
        return self.admin or _among(terminal, self.ask)

    def may_ask_as(self, name: str | None) -> bool:
        """It may ask in that name, or in nobody's."""
        return self.admin or name is None or _among(name, self.ask_as)

    def may_withdraw(self, asker: str | None) -> bool:
        """It may take back what was asked in that name; what was asked in nobody's, only an administrator may."""
        return self.admin or (asker is not None and _among(asker, self.ask_as))

    def may_call(self, tool: str) -> bool:
        """It may call that tool."""
        return self.admin or _among(tool, self.tools)

    def may_reach(self, endpoint: str) -> bool:
        """It may call the remote method, or open the stream, of that name."""
        return self.admin or _among(endpoint, self.remote)

    def may_see(self, run: str) -> bool:
        """It may look at that run."""
        return self.may_drive(run) or _among(run, self.runs)

    def may_drive(self, run: str) -> bool:
        """It may start that run, and steer it."""
        return self.admin or _among(run, self.drive)

    def may_know(self, terminal: str) -> bool:
        """It may do something with that terminal, and so may know that it is there."""
        return self.may_attach(terminal) or self.may_answer(terminal) or self.may_ask(terminal)

    @property
    def may_read_tree(self) -> bool:
        """It may read the tree."""
        return self.admin or self.tree


EVERYTHING = Grants(admin=True)
"""What every program of this machine has while no token is configured."""


def _among(name: str, names: Names) -> bool:
    return any(name.startswith(known[:-1]) if known.endswith("*") else name == known for known in names)
