"""A session's events as lines that a person reads. What they hold came from models and tools: it cannot steer a
terminal."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

from rich.text import Text

from greenroom.actors.cli.drawing import plain
from greenroom.actors.session.loading import restored
from greenroom.protocol.forms import display_lines
from greenroom.protocol.sessions import (
    ApprovalAsked,
    ApprovalDecided,
    ApprovalPolicy,
    AssistantMessage,
    EndSeed,
    InboxSpliced,
    JobEnded,
    JobStarted,
    Replace,
    SessionEvent,
    SubagentDescriptor,
    TodoWrite,
    ToolCalled,
    ToolResulted,
    TurnEnd,
    TurnStart,
    UserMessage,
)
from greenroom.runtime.pipeline.outcomes import compact

__all__ = ["describe_event"]

INDENT = " " * 10


def describe_event(event: SessionEvent) -> Iterator[Text]:
    """The lines about an event that a reader would miss; none about a step. Raises SessionError for one that is none.

    The number comes first, by which `--after` goes on.
    """
    told = _told(restored(event))
    if told is None:
        return
    who, what, style = told
    first, *rest = display_lines(what) or [""]
    yield Text.assemble((f"{event.seq:>5} {_moment(event.time)} ", "dim"), (plain(who), f"bold {style}"), "  ", first)
    for line in rest:
        yield Text(f"{INDENT}{line}")


def _moment(milliseconds: int) -> str:
    try:
        return datetime.datetime.fromtimestamp(milliseconds / 1000).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):  # no time at which anything was written
        return str(milliseconds)


def _told(event: SessionEvent) -> tuple[str, str, str] | None:
    """Who, what, and in which color."""
    match event.data:
        case UserMessage() as said:
            return said.source or "user", said.content, "cyan"
        case AssistantMessage() as said:
            if not said.content and said.calls:
                return None  # its calls follow
            summary = "  (in place of what is above)" if isinstance(event.surface_op, Replace) else ""
            return "agent", f"{said.content}{' ... (stopped)' if said.interrupted else summary}", "green"
        case ToolCalled() as call:
            who = "call" if call.position is not None else "call in a tool"
            return who, f"{call.name} {compact(call.arguments)}", "yellow"
        case ToolResulted() as result:
            return f"result of {result.name}", result.content, "red" if result.error else "yellow"
        case ApprovalPolicy() as policy:
            return "approval", f"from now on: {policy.mode}", "magenta"
        case ApprovalAsked() as asked:
            return "approval", f"may {asked.name} run?{f' {asked.reason}' if asked.reason else ''}", "magenta"
        case ApprovalDecided() as decided:
            who = " by a person" if decided.person else ""
            return "approval", f"{decided.decision}{who}{f': {decided.text}' if decided.text else ''}", "magenta"
        case TodoWrite() as written:
            return "todo", "\n".join(f"[{todo.status}] {todo.content}" for todo in written.todos) or "nothing", "blue"
        case TurnStart():
            return "turn", "begins", "dim"
        case TurnEnd() as end:
            error = f" ({end.error.code}: {end.error.message})" if end.error else ""
            return "turn", f"{end.reason}{f': {end.cause}' if end.cause else ''}{error}", "dim"
        case InboxSpliced() as spliced:
            if spliced.removed:  # what is read follows as a message
                return None if spliced.claimed else ("inbox", f"{len(spliced.removed)} discarded", "dim")
            return "inbox", "\n".join(f"{each.kind}: {each.text}" for each in spliced.inserted), "dim"
        case SubagentDescriptor() as asked:
            return "sub-agent", f"{asked.request.description} (built by {asked.provider})", "dim"
        case JobStarted() as job:
            return "job", f"{job.id} begins: {job.label}", "dim"
        case JobEnded() as job:
            return "job", f"{job.id} is over", "dim"
        case EndSeed():
            return "fork", "what is above was taken over", "dim"
        case _:
            return None if event.type in ("step/start", "step/end") else (event.type, compact(event.data), "dim")
