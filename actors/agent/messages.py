"""Messages that stand in a session's log: what a conversation over one shows, and where it writes."""

from __future__ import annotations

from typing import final

from greenroom.actors.session import Session
from greenroom.protocol.agents import CONVERSATION_RECAP_PREFIX, ChatMessage, MessageInput, Section
from greenroom.protocol.errors import ConversationError
from greenroom.protocol.schemas import NotJson
from greenroom.protocol.sessions import AssistantMessage, CallBlock, Replace, UserMessage, message_id
from greenroom.protocol.tools import ToolCall
from greenroom.runtime.pipeline.outcomes import legible
from greenroom.runtime.pipeline.snapshot import snapshot

__all__ = ["LoggedMessages"]


@final
class LoggedMessages:
    """The history of a session, as a conversation's messages. It holds nothing itself."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def messages(self) -> dict[str, ChatMessage]:
        """All of them by id, in the order in which a model reads them."""
        return {message.id: message for message in self._session.history()}

    def add(self, message: MessageInput) -> ChatMessage:
        """Append a message of the user, or an answer. Raises what the session raises, and ConversationError LOGGED for
        any other, which the agent itself logs with the call that it answers."""
        session = self._session
        match message.role:
            case "user":
                event = session.append("user/message", UserMessage(message.content, message.images))
            case "assistant":
                answer = AssistantMessage(legible(message.content), tuple(map(_block, message.calls)))
                event = session.append("assistant/message", answer)
            case role:
                raise ConversationError(
                    "LOGGED",
                    f"A message of the role {role} cannot be added to the conversation {session.id}, which is read out "
                    "of a log: add what the user says.",
                    {"id": session.id, "role": role},
                )
        return ChatMessage(
            message_id(session.id, event.seq), message.role, message.content, message.calls, message.images
        )

    def foldable(self, count: int) -> tuple[ChatMessage, ...]:
        """The oldest messages that one can stand in place of, at most so many: an answer goes with all results of its
        calls, and an earlier summary does not go alone."""
        session = self._session
        messages, nodes = session.history(), session.order.surface.nodes
        ids = [message_id(session.id, seq) for seq in nodes]
        for length in range(min(count, len(messages)), 0, -1):
            cut_off = length < len(messages) and messages[length].role == "tool"
            if not cut_off and {message.id for message in messages[:length]} == set(ids[:length]):
                alone = length == 1 and isinstance(session.event(nodes[0]).surface_op, Replace)
                return () if alone else tuple(messages[:length])
        return ()

    def fold(self, section: Section) -> Section:
        """Let the section's summary stand in place of its messages, which the log keeps, while the history still begins
        with them. Raises SessionError ORDER if it does not."""
        session = self._session
        nodes = session.order.surface.nodes
        last = nodes[min(len(section.messages), len(nodes)) - 1]
        recap = AssistantMessage(f"{CONVERSATION_RECAP_PREFIX}{section.summary}")
        event = session.append("assistant/message", recap, replace=(nodes[0], last))
        return Section(message_id(session.id, event.seq), section.summary, section.messages)


def _block(call: ToolCall) -> CallBlock:
    """The call as it is logged: with no arguments where they are none that could be kept, nor carried out."""
    arguments = snapshot(call.arguments)
    return CallBlock(legible(call.id), legible(call.name), {} if isinstance(arguments, NotJson) else arguments)
