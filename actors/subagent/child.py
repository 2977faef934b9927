"""One sub-agent: whose it is, whether it is at work, and what its last run came to."""

from __future__ import annotations

from typing import Final, final
from uuid import uuid4

from greenroom.actors.agent import Agent
from greenroom.actors.subagent.builders import Plan
from greenroom.protocol.agents import AgentResult, ChildInfo, ChildResult, StopReason
from greenroom.protocol.agents.children import cut_diagnostic
from greenroom.protocol.errors import GreenroomError

__all__ = ["Child", "tell"]


@final
class Child:
    """One that lives. An *activation* of it begins with a message, and ends when nothing more is to be done for it."""

    def __init__(self, agent: Agent, plan: Plan, *, continuable: bool) -> None:
        self.agent: Final = agent
        self.label: Final = plan.request.description
        self.provider: Final = plan.provider
        self.parent: Final = plan.parent
        """Who is told of it. `None`: a program, which awaits it."""
        self.depth: Final = plan.depth
        self.continuable: Final = continuable
        """It can be given more once it has settled. Otherwise whoever gave it its task awaits it."""
        self.settled = True
        """Nothing is owed: its parent has been told of its end."""
        self.idle_since = 0
        """When it settled, as a number that grows."""
        self.begun = False
        """A run of this activation has started."""
        self.result: ChildResult
        """What the last run of its activation came to."""
        self.activate()
        self._stopped: str | None = None
        self._exhausted: int | None = None
        emitter = agent.emitter
        emitter.on("start", self._start)
        emitter.on("abort", self._abort)
        emitter.on("exhaust", self._exhaust)
        emitter.on("finish", self._finish)
        emitter.on("error", self.fail)

    @property
    def id(self) -> str:
        return self.agent.id

    def activate(self) -> None:
        """A new activation begins."""
        self.settled = self.begun = False
        self.result = ChildResult(
            run_id=uuid4().hex, stop_reason="aborted", diagnostic="it was stopped before it began"
        )

    def info(self, *, in_full: bool) -> ChildInfo:
        """How it is listed; `in_full` says where it is, too."""
        return ChildInfo(
            id=self.id,
            label=self.label,
            status="idle" if self.settled else "running",
            parent=self.parent.id if in_full and self.parent is not None else None,
            depth=self.depth if in_full else None,
        )

    def notice(self) -> str:
        """What its parent is told when it has settled."""
        who = f"The sub-agent {self.id} ({self.label})"
        said = "\n".join(self.result.output)
        if self.result.stop_reason == "completed":
            return f"{who} has finished:\n{said}" if said else f"{who} has finished, and said nothing."
        why = f"{who} ended before it was done ({self.result.stop_reason}): {self.result.diagnostic}"
        return f"{why}\nWhat there is of its answer:\n{said}" if said else why

    # ---------------------------------------------------------------- what its runs come to

    def fail(self, error: Exception) -> None:
        """It ended by `error`, of which only our own kind is known to hold no secrets."""
        message = error.message if isinstance(error, GreenroomError) else f"it failed with {type(error).__name__}"
        self._come_to("error", message)

    def _start(self, _id: str) -> None:
        self.begun = True
        self._stopped = self._exhausted = None

    def _abort(self, reason: str | None) -> None:
        self._stopped = "stopped" if reason is None else reason

    def _exhaust(self, limit: int) -> None:
        self._exhausted = limit

    def _finish(self, result: AgentResult) -> None:
        if self._stopped is not None:
            if self._stopped == "budget":
                self._come_to("max-tokens", "its budget was used up", result.content)
            else:
                self._come_to("aborted", f"it was stopped ({self._stopped})", result.content)
        elif self._exhausted is not None:
            self._come_to("error", f"its {self._exhausted} turns were used up", result.content)
        else:
            self._come_to("completed", None, result.content)

    def _come_to(self, reason: StopReason, diagnostic: str | None, streamed: str = "") -> None:
        """What was said is its latest message with anything in it, or else what had come of one."""
        written = (each.content for each in reversed(self.agent.conversation.messages()) if each.role == "assistant")
        said = next(filter(None, written), streamed)
        self.result = ChildResult(
            run_id=self.result.run_id,
            output=(said,) if said else (),
            stop_reason=reason,
            diagnostic=None if diagnostic is None else cut_diagnostic(diagnostic),
        )


def tell(parent: Agent, text: str) -> str:
    """Let the parent of a sub-agent hear of it: in a turn of its own if it is idle, at its next step if it is not, and
    without being woken if it is being stopped. The id of the message. Raises as its inbox does."""
    text = text.encode(errors="replace").decode()  # what a model says may hold half characters, which nobody reads
    if parent.draining:
        return parent.inbox.inject(text, source="subagent")
    if parent.status == "running":
        return parent.inbox.steer(text, source="subagent")
    return parent.inbox.followup(text, source="subagent")
