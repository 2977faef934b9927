"""What is stored of sub-agents: a session each, from which one that has ended, also with its process, is begun anew."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container
from typing import NamedTuple, final

import trio

from greenroom.actors.agent import Agent
from greenroom.actors.session import Session, SessionManager
from greenroom.actors.subagent.builders import Plan
from greenroom.protocol.agents import ChildInfo, ChildUnreadable
from greenroom.protocol.errors import SessionError, SubagentError
from greenroom.protocol.sessions import SessionHeader, SubagentDescriptor

__all__ = ["ORIGIN", "Record", "Records"]

logger = logging.getLogger("greenroom.subagents")

ORIGIN = "subagent"
"""What the header of a sub-agent's session says of how it came to be."""


class Record(NamedTuple):
    """A sub-agent that is stored."""

    header: SessionHeader
    descriptor: SubagentDescriptor


@final
class Records:
    """The sessions of the sub-agents of one runtime. Only those of agents that have sessions themselves are stored."""

    def __init__(self, sessions: SessionManager) -> None:
        self._sessions = sessions
        self._left: list[Session] = []
        self._alone = trio.Lock()
        """Nobody lets go of a session while it is opened for somebody else."""

    async def open(self, plan: Plan, parent: Agent) -> Session | None:
        """A session for a new sub-agent; None if it is not to be stored. Nothing of it is kept before its first event.

        Cancelled: nothing was opened.
        """
        if parent.session is None or "session" not in plan.builder.capabilities:
            return None
        async with self._alone:
            await self._sweep()
            return await self._sessions.open(
                plan.id,
                origin=ORIGIN,
                parent_session=parent.session.id,
                delegation_depth=plan.depth,
                agent_preset=plan.provider,
            )

    async def open_again(self, id: str) -> Session:
        """The session of a sub-agent that is stored, which may live meanwhile. Cancelled: as `open`."""
        async with self._alone:
            await self._sweep()
            session = await self._sessions.open(id)
            self._left = [each for each in self._left if each is not session]
            return session

    def leave(self, session: Session | None) -> None:
        """Its sub-agent has ended, or has not begun: it is let go of when the next one is opened."""
        if session is not None:
            self._left.append(session)

    async def _sweep(self) -> None:
        """Let go of the sessions whose sub-agents have ended. One that cannot be written yet stays."""
        for session in tuple(self._left):
            try:
                await self._sessions.dispose(session)
            except Exception as error:
                logger.warning("The log of the sub-agent %s cannot be written yet: %s", session.id, error)
            else:
                self._left.remove(session)

    async def find(self, id: str, parent: Agent | None) -> Record:
        """What is stored of a sub-agent of the parent.

        Raises `SubagentError`: PERSISTENCE_UNAVAILABLE if nothing of the parent's is stored, NOT_RESUMABLE if there is
        no sub-agent of that id or it cannot be read, UNAUTHORIZED if it is another's.
        """
        if parent is None or parent.session is None:
            raise SubagentError(
                "PERSISTENCE_UNAVAILABLE",
                f"No sub-agent {id} lives, and nothing is stored of those that have ended: begin another one. (Those "
                "of an agent with a session are stored.)",
                {"id": id},
            )
        try:
            stored = await self._sessions.read(id)
        except SessionError as error:
            raise SubagentError(
                "NOT_RESUMABLE", f"No sub-agent {id} lives, and none can be begun anew: {error.message}", {"id": id}
            ) from error
        if stored.header.origin != ORIGIN or stored.header.parent_session != parent.session.id:
            raise SubagentError(
                "UNAUTHORIZED",
                f"{id} is given more only by the agent that it works for, and {parent.id} is not.",
                {"id": id, "caller": parent.id},
            )
        descriptor = _descriptor(stored)
        if descriptor is None:
            raise SubagentError(
                "NOT_RESUMABLE", f"{id} has ended before its task was stored: begin another one.", {"id": id}
            )
        return Record(stored.header, descriptor)

    async def ready(
        self, parent: str, live: Callable[[], Container[str]], *, in_full: bool
    ) -> list[ChildInfo | ChildUnreadable]:
        """The sub-agents of the agent of that session that are stored, and not among those that live; `in_full` with
        all beneath them, and beneath the live ones."""
        beneath: dict[str, list[SessionHeader]] = {}
        for header in await self._sessions.list():
            if header.origin == ORIGIN and header.parent_session is not None:
                beneath.setdefault(header.parent_session, []).append(header)
        found: list[ChildInfo | ChildUnreadable] = []
        left = [parent]
        while left:
            above = left.pop()
            for header in beneath.pop(above, ()):
                if in_full:
                    left.append(header.id)
                if header.id not in live():
                    found.append(await self._listed(header, above if in_full else None))
        return [each for each in found if each.id not in live()]

    async def _listed(self, header: SessionHeader, parent: str | None) -> ChildInfo | ChildUnreadable:
        try:
            descriptor = _descriptor(await self._sessions.read(header.id))
        except SessionError as error:
            known = {"CORRUPT": "corrupt", "UNSUPPORTED": "unsupported"}
            return ChildUnreadable(id=header.id, reason=known.get(error.code, "unavailable"))
        if descriptor is None:
            return ChildUnreadable(id=header.id, reason="unavailable")
        return ChildInfo(
            id=header.id,
            label=descriptor.request.description,
            status="ready",
            parent=parent,
            depth=None if parent is None else header.delegation_depth,
        )


def _descriptor(session: Session) -> SubagentDescriptor | None:
    return next((each.data for each in session.events() if isinstance(each.data, SubagentDescriptor)), None)
