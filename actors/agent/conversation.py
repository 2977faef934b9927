"""One conversation: its messages, and the sections that older ones were folded into."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, final, overload

import trio

from greenroom.actors.agent.messages import LoggedMessages
from greenroom.protocol.agents import (
    CONVERSATION_RECAP_PREFIX,
    ChatMessage,
    ConversationSnapshot,
    MessageInput,
    Section,
)
from greenroom.protocol.emitter import Emitter, ErrorHandler, Listener
from greenroom.protocol.errors import ConversationError
from greenroom.runtime.provider import Summarize

__all__ = ["Conversation"]

EVENTS: Final = ("compact", "summary", "collapse", "rehydrate")


@final
class Conversation:
    """What an agent remembers: messages that are live, and before them sections that stand for older ones.

    `summarize` folds messages, all of them but the last `keep`; above `sections` sections the oldest are folded into
    one. Without it nothing can be folded. `seed` is a snapshot to go on from; its id counts then.

    With a `log` the messages are those of a session: adding one appends to the log, and folding lets a summary stand in
    place of the oldest in what a model reads, which is no section then. None can be removed (ConversationError LOGGED).

    Events of its `emitter`: `compact(section)`, `summary(text)`, `collapse(section)`, `rehydrate(id, messages)`, each
    after what it tells of.
    """

    def __init__(
        self,
        id: str | None = None,
        *,
        summarize: Summarize | None = None,
        keep: float = 0,
        sections: float | None = None,
        on: Mapping[str, Listener] | None = None,
        error: ErrorHandler | None = None,
        seed: ConversationSnapshot | None = None,
        log: LoggedMessages | None = None,
    ) -> None:
        _check_cap(sections)
        self.emitter = Emitter(EVENTS, on=on, error=error)
        self._summarize = summarize
        self._keep = keep
        self._cap = sections
        self._folding = trio.Lock()
        self._log = log
        if seed is None:
            self.id = str(uuid.uuid4()) if id is None else id
            self._summary: str | None = None
            self._sections: list[Section] = []
            self._own: dict[str, ChatMessage] = {}
        else:
            self.id = seed.id
            self._summary = seed.summary
            self._sections = list(seed.sections)
            self._own = {message.id: message for message in seed.messages}

    def __repr__(self) -> str:
        return f"<Conversation {self.id}>"

    @property
    def _messages(self) -> dict[str, ChatMessage]:
        return self._own if self._log is None else self._log.messages()

    # ---------------------------------------------------------------- the live messages

    @property
    def count(self) -> int:
        """How many messages are live."""
        return len(self._messages)

    def messages(self) -> tuple[ChatMessage, ...]:
        """The live ones, in order."""
        return tuple(self._messages.values())

    def message(self, id: str) -> ChatMessage | None:
        """The live one of that id, if there is one."""
        return self._messages.get(id)

    @overload
    def add(self, messages: MessageInput) -> ChatMessage: ...
    @overload
    def add(self, messages: Iterable[MessageInput]) -> list[ChatMessage]: ...
    def add(self, messages: MessageInput | Iterable[MessageInput]) -> ChatMessage | list[ChatMessage]:
        """Add a message, or several, at the end; as they stand there, each with an id of its own.

        Raises, of a log, what its session raises, and ConversationError LOGGED for what is no user's or model's.
        """
        if isinstance(messages, MessageInput):
            if self._log is not None:
                return self._log.add(messages)
            added = ChatMessage(str(uuid.uuid4()), messages.role, messages.content, messages.calls, messages.images)
            self._own[added.id] = added
            return added
        return [self.add(message) for message in tuple(messages)]

    def remove(self, ids: str | Iterable[str]) -> bool:
        """Remove live messages; whether one of them was there."""
        self._refuse_if_logged()
        removed = [self._own.pop(id, None) for id in ((ids,) if isinstance(ids, str) else tuple(ids))]
        return any(message is not None for message in removed)

    def clear(self) -> None:
        """Remove all live messages. The sections stay."""
        self._refuse_if_logged()
        self._own.clear()

    def _refuse_if_logged(self) -> None:
        if self._log is not None:
            raise ConversationError(
                "LOGGED",
                f"Nothing is removed from the conversation {self.id}, which is read out of a log: fold it, or begin "
                "another one.",
                {"id": self.id},
            )

    # ---------------------------------------------------------------- what was folded

    @property
    def summarizable(self) -> bool:
        """Whether it can be folded."""
        return self._summarize is not None

    @property
    def summary(self) -> str | None:
        """That of all sections together. It is in no view."""
        return self._summary

    def sections(self) -> tuple[Section, ...]:
        """What was folded, the oldest first."""
        return tuple(self._sections)

    def view(self) -> list[ChatMessage]:
        """What a model reads: each section as a message of the assistant, then the live messages."""
        recaps = [
            ChatMessage(section.id, "assistant", f"{CONVERSATION_RECAP_PREFIX}{section.summary}")
            for section in self._sections
        ]
        return [*recaps, *self._messages.values()]

    async def compact(self, *, keep: float | None = None, sections: float | None = None) -> Section | None:
        """Fold all but the last `keep` messages into a new section, and summarize all sections anew.

        `None`, and nothing happens, if there are no more than those. Raises `ConversationError` SUMMARIZER or SECTIONS,
        and what the summarizer raises: at its first call nothing has changed then; later the new section stays, with
        the old summary if it was that call that failed. Cancelled: the same. Others that fold meanwhile wait for it.
        """
        summarize = self._summarize
        if summarize is None:
            raise ConversationError(
                "SUMMARIZER", f"The conversation {self.id} cannot be folded: make it with `summarize`.", {"id": self.id}
            )
        _check_cap(sections)
        cap = self._cap if sections is None else sections
        kept = self._keep if keep is None else keep
        async with self._folding:
            live = self.messages()
            folded = live if kept <= 0 else live[: max(0, len(live) - math.floor(kept))]
            if self._log is not None:
                folded = self._log.foldable(len(folded))
            if not folded:
                return None
            section = Section(str(uuid.uuid4()), await summarize(folded), folded)
            if self._log is not None:
                section, self._summary = self._log.fold(section), section.summary
                self.emitter.emit("summary", self._summary)
                self.emitter.emit("compact", section)
                return section
            for message in folded:
                self._own.pop(message.id, None)
            self._sections.append(section)
            collapsed, failure = None, None
            if cap is not None and len(self._sections) > cap:
                try:
                    collapsed = await self._collapse(summarize, math.ceil(len(self._sections) - cap) + 1)
                except Exception as error:  # the rest is still to be told of
                    failure = error
            self._summary = await summarize(
                [ChatMessage(each.id, "assistant", each.summary) for each in self._sections]
            )
            if collapsed is not None:
                self.emitter.emit("collapse", collapsed)
            self.emitter.emit("summary", self._summary)
            if failure is not None:
                raise failure
            self.emitter.emit("compact", section)
            return section

    async def _collapse(self, summarize: Summarize, count: int) -> Section:
        """Fold the oldest sections into one."""
        messages = tuple(message for section in self._sections[:count] for message in section.messages)
        section = Section(str(uuid.uuid4()), await summarize(messages), messages)
        self._sections[:count] = [section]
        return section

    # ---------------------------------------------------------------- looking back

    def rehydrate(self, id: str) -> tuple[ChatMessage, ...]:
        """The messages that a section stands for; none for an unknown one. They do not become live again."""
        found = next((section.messages for section in self._sections if section.id == id), ())
        self.emitter.emit("rehydrate", id, found)
        return found

    def search(self, text: str) -> list[ChatMessage]:
        """Every message, folded or live, that has the text in it, in whatever case."""
        wanted = text.casefold()
        every = [*(message for section in self._sections for message in section.messages), *self._messages.values()]
        return [message for message in every if wanted in message.content.casefold()]

    def reference(self, label: str | None = None, *, summary: bool = True, messages: Sequence[ChatMessage] = ()) -> str:
        """A few lines by which another conversation can be told of this one."""
        lines = [f"[From another conversation: {self.id if label is None else label}]"]
        if summary and self._summary is not None:
            lines.append(f"Summary: {self._summary}")
        if messages:
            lines.append("Relevant messages:")
            lines += [f"- {message.role}: {message.content}" for message in messages]
        return "\n".join(lines)

    def snapshot(self) -> ConversationSnapshot:
        """All of it, as a store keeps it."""
        return ConversationSnapshot(
            id=self.id, summary=self._summary, sections=self.sections(), messages=self.messages()
        )


def _check_cap(sections: float | None) -> None:
    if sections is not None and not sections >= 1:
        raise ConversationError(
            "SECTIONS", f"A conversation keeps at least one section, not {sections:g}.", {"sections": sections}
        )
