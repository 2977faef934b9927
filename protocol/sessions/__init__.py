"""Sessions: one agent's log, its events, their order, and what is read out of it.

- `events`: what each type of event says
- `record`: the header, and an event in its row
- `order`, `surface`: in which order events stand, and the history that they make
- `repair`: what is added after a process has ended in a turn
- `projections`: what a log comes to
- `codec`: as JSON, and as lines of a file
"""

from greenroom.protocol.sessions.events import (
    DATA,
    ApprovalAsked,
    ApprovalDecided,
    ApprovalPolicy,
    AssistantMessage,
    CallBlock,
    EndSeed,
    ErrorInfo,
    EventData,
    InboxSpliced,
    JobEnded,
    JobStarted,
    StepEnd,
    StepStart,
    SubagentDescriptor,
    Todo,
    TodoWrite,
    ToolCalled,
    ToolResulted,
    TurnEnd,
    TurnEndReason,
    TurnStart,
    UserMessage,
)
from greenroom.protocol.sessions.order import Order
from greenroom.protocol.sessions.projections import (
    INBOX,
    JOBS,
    TODOS,
    TURNS,
    Projection,
    ProjectionSnapshot,
    Turns,
    project,
)
from greenroom.protocol.sessions.record import VERSION, Replace, SessionEvent, SessionHeader, read_data
from greenroom.protocol.sessions.repair import repair
from greenroom.protocol.sessions.surface import Surface, history, message_id

__all__ = [
    "DATA",
    "INBOX",
    "JOBS",
    "TODOS",
    "TURNS",
    "VERSION",
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
    "Order",
    "Projection",
    "ProjectionSnapshot",
    "Replace",
    "SessionEvent",
    "SessionHeader",
    "StepEnd",
    "StepStart",
    "SubagentDescriptor",
    "Surface",
    "Todo",
    "TodoWrite",
    "ToolCalled",
    "ToolResulted",
    "TurnEnd",
    "TurnEndReason",
    "TurnStart",
    "Turns",
    "UserMessage",
    "history",
    "message_id",
    "project",
    "read_data",
    "repair",
]
