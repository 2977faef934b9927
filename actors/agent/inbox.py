"""The inbox of an agent: input from others, and when it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final
from uuid import uuid4

from greenroom.protocol.agents.inbox import InboxKind, InboxMessage
from greenroom.protocol.errors import AgentError
from greenroom.protocol.schemas.gates import encodable
from greenroom.protocol.sessions import INBOX, InboxSpliced, project
from greenroom.runtime.inbox import InboxClaimed, InboxDiscarded, InboxInserted

if TYPE_CHECKING:
    from greenroom.actors.agent.agent import Agent
    from greenroom.actors.session import Session

__all__ = ["DEFAULT_INBOX_LIMIT", "Inbox", "check_input"]

DEFAULT_INBOX_LIMIT: Final = 256
"""How many messages an inbox holds, where nothing else is said."""


@final
class Inbox:
    """Input that waits for an agent. Putting it in never waits, and each call gives the id of the message.

    ::

        agent.inbox.followup("Now write the release notes.")   # a turn of its own, once the present one has ended
        agent.inbox.steer("The tag is v2, not v1.")             # read before the model is asked next
        agent.inbox.inject("The build has ended.")              # likewise, but nothing is begun for it

    A turn is one run of the agent. A `followup` and a `steer` wake an agent that is idle: a run begins that nobody
    awaits, and whose end and failure its emitter tells. Such a run reads one followup, or, if there is a steer, what is
    for the next step instead. Every run reads what is for the next step before it asks its model, and does not end
    while there is more of that and a turn left.

    What is put in is read once, as a message of the user, or discarded; the bus tells of both. An agent that ends
    discards what it has. With a session each change is logged before it is made, and what an agent has not read when it
    ends, or is killed, is read by the next one on that session; it outlives the process once the session is flushed.

    Putting in raises AgentError: INPUT for what is no text, INBOX_FULL (context `limit`), PLACE if the agent lives
    nowhere; ActorError STOPPED if it stops or has ended; what its session raises. Nothing has changed then.
    """

    def __init__(self, agent: Agent, limit: int) -> None:
        if limit < 1:
            raise ValueError(f"An inbox holds at least one message, not {limit}")
        self.limit: Final = limit
        self._agent = agent
        self._log = agent.session
        self._queued: list[InboxMessage] = [] if self._log is None else waiting(self._log)
        self._closed = False

    @property
    def messages(self) -> tuple[InboxMessage, ...]:
        """What waits, in order of arrival."""
        return tuple(self._queued)

    @property
    def wakes(self) -> bool:
        """Whether something waits that an idle agent begins a run for."""
        return any(message.kind != "inject" for message in self._queued)

    @property
    def full(self) -> bool:
        """Whether it takes no more until something of it was read. Whoever is refused then wakes an idle agent."""
        return len(self._queued) >= self.limit

    @property
    def for_next_step(self) -> bool:
        """Whether something waits that is read before a turn ends."""
        return any(message.kind != "followup" for message in self._queued)

    def followup(self, text: str, *, source: str | None = None) -> str:
        """For a turn of its own, after those that are queued before it."""
        return self._insert("followup", text, source)

    def steer(self, text: str, *, source: str | None = None) -> str:
        """For the next step, and for a turn if there is none."""
        return self._insert("steer", text, source)

    def inject(self, text: str, *, source: str | None = None) -> str:
        """For the next step, whenever there is one."""
        return self._insert("inject", text, source)

    def clear(self, reason: str = "cleared") -> None:
        """Discard everything that waits."""
        self._take(tuple(self._queued), discarded=reason)

    # ---------------------------------------------------------------- for the agent

    def claim_step(self) -> tuple[InboxMessage, ...]:
        """What is for the next step. It is not here any more."""
        return self._take(tuple(message for message in self._queued if message.kind != "followup"))

    def claim_turn(self) -> tuple[InboxMessage, ...]:
        """What a run begins with that was woken: nothing if something else has taken it."""
        if any(message.kind == "steer" for message in self._queued):
            return self.claim_step()
        first = next((message for message in self._queued if message.kind == "followup"), None)
        return self._take(tuple(each for each in self._queued if each is first or each.kind == "inject"))

    def close(self, reason: str) -> None:
        """The agent has ended: what waits is not read by it, and it takes no more."""
        self._closed, self._log = True, None
        self.clear(reason)

    # ---------------------------------------------------------------- without a checkpoint

    def _insert(self, kind: InboxKind, text: str, source: str | None) -> str:
        self._agent.require_place()
        ref = self._agent.ref
        if self._closed or not ref.alive:
            raise ref.stopped()
        check_input(text)
        if self.full:
            self._agent.wake()  # if all of it is for a next step, nothing else brings one about
            raise AgentError(
                "INBOX_FULL",
                f"The inbox of the agent {self._agent.id} holds {self.limit} messages that it has not read yet: wait "
                "until it has, or say more in one message.",
                {"agent": self._agent.id, "limit": self.limit},
            )
        message = InboxMessage(uuid4().hex, kind, text, source)
        if self._log is not None:
            self._log.append("agent/inbox/spliced", InboxSpliced(inserted=(message,)))
        self._queued.append(message)
        ref.tree.inboxes.inserted(InboxInserted(ref.path, message))
        if kind != "inject":
            self._agent.wake()
        return message.id

    def _take(self, taken: tuple[InboxMessage, ...], *, discarded: str | None = None) -> tuple[InboxMessage, ...]:
        if not taken:
            return ()
        gone = {message.id for message in taken}
        if self._log is not None:
            removed = tuple(message.id for message in taken)
            self._log.append("agent/inbox/spliced", InboxSpliced(removed=removed, claimed=discarded is None))
        self._queued = [message for message in self._queued if message.id not in gone]
        ref = self._agent.ref
        if discarded is None:
            ref.tree.inboxes.claimed(InboxClaimed(ref.path, taken))
        else:
            ref.tree.inboxes.discarded(InboxDiscarded(ref.path, taken, discarded))
        return taken


def check_input(text: object) -> None:
    """Raises AgentError INPUT for what no agent reads."""
    if not isinstance(text, str) or not text.strip() or not encodable(text):
        raise AgentError("INPUT", "An agent reads text, with something in it and without halves of characters.")


def waiting(session: Session) -> list[InboxMessage]:
    """What an earlier agent of the session has left unread. What was taken over from another session is not its own."""
    return list(project([INBOX], session.live_events()).values[INBOX.key])
