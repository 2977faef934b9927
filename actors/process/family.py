"""The processes that a command has started, and those that these have: who of them lives, and signals to them.

Whoever makes a session of its own is found all the same: Linux tells of each process its parent and its session
(proc(5)), and its environment, which has the command's mark however often it forks. Only a process that drops its
environment, its session and its parents one after another between two looks is lost. On other systems there is the
group alone (kill(2)). All of it blocks, for some milliseconds.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Final, NamedTuple, final

__all__ = ["MARK", "Family"]

MARK: Final = "GREENROOM_COMMAND"
"""The variable by which the processes of a command are known: each command has a value of its own."""

_DEAD: Final = (b"Z", b"X", b"x")
"""States of processes that run no more: they only wait for their parents to hear of it."""


class _Process(NamedTuple):
    parent: int
    session: int


@final
class Family:
    """The process `leader`, which leads a group and a session of its own, and all that it has started.

    The leader must not have been reaped: its number could be another's then.
    """

    __slots__ = ("_entry", "_sessions", "leader")

    def __init__(self, leader: int, mark: str) -> None:
        self.leader = leader
        self._sessions = {leader}
        """Those that its processes have made: whoever is in one of them is of the family, whoever their parent was."""
        self._entry = f"{MARK}={mark}\0".encode()

    def living(self) -> frozenset[int]:
        """The numbers of those that live; where /proc is missing, the group's with a minus if anything of it lives."""
        if not sys.platform.startswith("linux"):
            return self._group()
        lives: dict[int, _Process] = {}
        found: set[int] = set()
        known: set[str] = set()
        # Again until nobody is new: one that ended before it was looked at may just have started another.
        while new := [name for name in os.listdir("/proc") if name.isdigit() and name not in known]:
            known.update(new)
            for name in new:
                if (process := _look(name)) is not None:
                    lives[int(name)] = process
                    if self._marked(name):
                        found.add(int(name))
        while True:
            self._sessions |= {lives[number].session for number in found}
            more = {
                number
                for number, process in lives.items()
                if number not in found and (process.session in self._sessions or process.parent in found)
            }
            if not more:
                return frozenset(found)
            found |= more

    def signal(self, number: int) -> frozenset[int]:
        """Send a signal to all that live, to those of the group at once; who they were."""
        living = self.living()
        if living:
            with suppress(ProcessLookupError, PermissionError):  # it has just ended; or it is another user's by now
                os.killpg(self.leader, number)
        for process in living:
            with suppress(ProcessLookupError, PermissionError):
                if process > 0 and os.getpgid(process) != self.leader:
                    os.kill(process, number)
        return living

    def _group(self) -> frozenset[int]:
        try:
            os.killpg(self.leader, 0)
        except (ProcessLookupError, PermissionError):  # the latter where nothing but the dead leader is left
            return frozenset()
        return frozenset((-self.leader,))

    def _marked(self, name: str) -> bool:
        try:
            with open(f"/proc/{name}/environ", "rb") as environ:
                return self._entry in environ.read()
        except OSError:  # it has just ended, or it is another user's
            return False


def _look(name: str) -> _Process | None:
    """A process that lives, if this is one."""
    try:
        with open(f"/proc/{name}/stat", "rb") as stat:
            told = stat.read()
    except OSError:
        return None
    state, parent, _group, session = told[told.rindex(b")") + 2 :].split()[:4]  # the name may hold anything
    return None if state in _DEAD else _Process(int(parent), int(session))
