"""An agent's conversations, by id, and which of them it is in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import final

from greenroom.actors.agent.conversation import Conversation
from greenroom.actors.agent.messages import LoggedMessages
from greenroom.actors.agent.store import ConversationStore
from greenroom.protocol.agents import ConversationSnapshot
from greenroom.protocol.emitter import ErrorHandler, Listener
from greenroom.runtime.provider import Summarize

__all__ = ["ConversationManager"]


@final
class ConversationManager:
    """Conversations in order of adding, one of them active or none.

    `summarize`, `keep` and `sections` are given to each that it makes; `store` keeps snapshots for `save` and `open`.
    """

    def __init__(
        self,
        *,
        summarize: Summarize | None = None,
        keep: float = 0,
        sections: float | None = None,
        store: ConversationStore | None = None,
    ) -> None:
        self._summarize = summarize
        self._keep = keep
        self._sections = sections
        self._store = store
        self._conversations: dict[str, Conversation] = {}
        self._active: str | None = None

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._conversations)

    @property
    def active(self) -> Conversation | None:
        """The one that is being held, if one is."""
        return None if self._active is None else self._conversations.get(self._active)

    def conversation(self, id: str) -> Conversation | None:
        """The one of that id, if there is one."""
        return self._conversations.get(id)

    def conversations(self) -> list[Conversation]:
        """All of them, in order."""
        return list(self._conversations.values())

    def add(
        self,
        id: str | None = None,
        *,
        seed: ConversationSnapshot | None = None,
        log: LoggedMessages | None = None,
        on: Mapping[str, Listener] | None = None,
        error: ErrorHandler | None = None,
    ) -> Conversation:
        """Add one, which goes on from `seed` if that is given, or shows a session's `log`.

        A known id is replaced in its place. One that is added while none is active becomes it.
        """
        conversation = Conversation(
            id,
            summarize=self._summarize,
            keep=self._keep,
            sections=self._sections,
            on=on,
            error=error,
            seed=seed,
            log=log,
        )
        self._conversations[conversation.id] = conversation
        if self._active is None:
            self._active = conversation.id
        return conversation

    def switch(self, id: str) -> Conversation | None:
        """Make the one of that id the active one; `None`, and nothing changes, if there is none."""
        found = self._conversations.get(id)
        if found is not None:
            self._active = id
        return found

    def remove(self, ids: str | Iterable[str]) -> bool:
        """Forget conversations; whether one of them was there. What a store has stays.

        If the active one is among them, none is active afterwards.
        """
        removed = False
        for id in (ids,) if isinstance(ids, str) else tuple(ids):
            removed = self._conversations.pop(id, None) is not None or removed
            if self._active == id:
                self._active = None
        return removed

    def clear(self) -> None:
        """Forget all of them."""
        self.remove(tuple(self._conversations))

    async def open(self, id: str) -> Conversation | None:
        """Make the one of that id the active one: the one there is, or else one that goes on from what the store has.

        `None`, and nothing changes, if there is neither. Raises what the store raises.
        """
        if id not in self._conversations and self._store is not None:
            snapshot = await self._store.get(id)
            if snapshot is not None and id not in self._conversations:
                self.add(seed=snapshot)
        return self.switch(id)

    async def save(self, id: str) -> bool:
        """Store one as it is now. False without a store or such a conversation. Raises what the store raises."""
        conversation = self._conversations.get(id)
        if conversation is None or self._store is None:
            return False
        await self._store.set(conversation.snapshot())
        return True
