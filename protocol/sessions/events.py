"""What the events of a session say: one struct for the data of each type, and the table of all types."""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias, final

from msgspec import Struct

from greenroom.protocol.agents import ChildRequest, InboxMessage

__all__ = [
    "DATA",
    "SURFACE_TYPES",
    "ApprovalAsked",
    "ApprovalDecided",
    "ApprovalPolicy",
    "AssistantMessage",
    "CallBlock",
    "EndSeed",
    "ErrorInfo",
    "EventData",
    "InboxSpliced",
    "JobEnded",
    "JobStarted",
    "StepEnd",
    "StepStart",
    "SubagentDescriptor",
    "Todo",
    "TodoWrite",
    "ToolCalled",
    "ToolResulted",
    "TurnEnd",
    "TurnEndReason",
    "TurnStart",
    "UserMessage",
]

TurnEndReason: TypeAlias = Literal["completed", "aborted", "blocked", "error", "max-tokens", "interrupted"]


class EventData(Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """The data of one event. Members that hold any JSON hold a frozen copy of it."""


@final
class ErrorInfo(EventData, frozen=True):
    """Why something failed: a code for programs, a sentence for people."""

    code: str
    message: str


@final
class TurnStart(EventData, frozen=True):
    """The agent begins to work on what it was given."""


@final
class TurnEnd(EventData, frozen=True):
    """Nothing is owed any more.

    `aborted` has the `cause` (whatever stopped it), `error` the error. `interrupted` is the end of a turn whose process
    ended in it.
    """

    reason: TurnEndReason
    cause: str | None = None
    error: ErrorInfo | None = None


@final
class StepStart(EventData, frozen=True):
    """The model is asked."""


@final
class StepEnd(EventData, frozen=True):
    """It has answered, and every call that it asked for is over."""


@final
class UserMessage(EventData, frozen=True):
    """What the agent is told. `source` is who tells it, where that is not the user: `context` is a tool or a policy."""

    content: str
    images: tuple[str, ...] = ()
    """Raw base64 without a media type."""
    source: str | None = None


@final
class CallBlock(EventData, frozen=True):
    """A call that a model asks for. The id is the model's, and need not be unique."""

    id: str
    name: str
    arguments: Any


@final
class AssistantMessage(EventData, frozen=True):
    """What the model answered. `interrupted`: it was stopped, and this is what could be seen by then."""

    content: str
    calls: tuple[CallBlock, ...] = ()
    interrupted: bool = False


@final
class ToolCalled(EventData, frozen=True):
    """A call begins. It cites the message that asks for it, or the call in whose tool it was made.

    `position` is its place among the calls of that message, the first of which is 0; one that was made in a tool has
    none.
    """

    call_id: str
    name: str
    arguments: Any
    position: int | None = None


@final
class ToolResulted(EventData, frozen=True):
    """A call is over; `content` is what the model is shown.

    It cites its `tool/call`, or the message that asked for it, if the call never began.
    """

    call_id: str
    name: str
    content: str
    error: ErrorInfo | None = None
    position: int | None = None


@final
class ApprovalAsked(EventData, frozen=True):
    """Somebody is asked whether a call may run. It cites the `tool/call`."""

    id: str
    name: str
    reason: str | None = None


@final
class ApprovalPolicy(EventData, frozen=True):
    """From now on approval is asked for (`ask`), or what needs it is refused without asking anybody (`never`)."""

    mode: Literal["ask", "never"]


@final
class ApprovalDecided(EventData, frozen=True):
    """What was decided. `person`: by somebody, and not by a rule."""

    id: str
    decision: Literal["allowed-once", "rejected", "cancelled", "unavailable"]
    text: str | None = None
    person: bool = False


@final
class Todo(EventData, frozen=True):
    """One thing to do."""

    content: str
    status: Literal["pending", "in_progress", "completed"]


@final
class TodoWrite(EventData, frozen=True):
    """The whole list of what is to be done, in place of the one before."""

    todos: tuple[Todo, ...]


@final
class InboxSpliced(EventData, frozen=True):
    """What waits for the agent is another list now: `inserted` is at its end, what had the ids `removed` is out of it.

    `claimed`: that is read, as the messages of the user that follow, each at its turn. Otherwise it was discarded.
    """

    inserted: tuple[InboxMessage, ...] = ()
    removed: tuple[str, ...] = ()
    claimed: bool = False


@final
class SubagentDescriptor(EventData, frozen=True):
    """The agent works for the one of the parent session, and this is how it was asked for: enough to build it anew."""

    provider: str
    """The name of who has built it."""
    request: ChildRequest


@final
class JobStarted(EventData, frozen=True):
    """The agent owns a job, which lives no longer than it does."""

    id: str
    label: str


@final
class JobEnded(EventData, frozen=True):
    """A job of the agent is over, and it was told so, unless it knew."""

    id: str


@final
class EndSeed(EventData, frozen=True):
    """What stands before it was taken over from the session that this one was forked off."""


DATA: Final[dict[str, type[EventData]]] = {
    "turn/start": TurnStart,
    "turn/end": TurnEnd,
    "step/start": StepStart,
    "step/end": StepEnd,
    "user/message": UserMessage,
    "assistant/message": AssistantMessage,
    "tool/call": ToolCalled,
    "tool/result": ToolResulted,
    "approval/policy": ApprovalPolicy,
    "approval/asked": ApprovalAsked,
    "approval/decided": ApprovalDecided,
    "todo/write": TodoWrite,
    "agent/inbox/spliced": InboxSpliced,
    "subagent/descriptor": SubagentDescriptor,
    "job/started": JobStarted,
    "job/ended": JobEnded,
    "session/end-seed": EndSeed,
}
"""Every type that is known. A log with another one, unless that event is marked as ignorable, is not read."""

SURFACE_TYPES: Final = frozenset({"user/message", "assistant/message", "tool/result"})
"""The types of which a model's history is made."""
