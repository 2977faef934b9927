"""What workflow and phase have in common: a status that follows from their parts, or is pinned."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping
from typing import Final

from msgspec import UNSET, UnsetType

from greenroom.protocol.emitter import ErrorHandler, Listener
from greenroom.protocol.workflows.node import Node
from greenroom.protocol.workflows.shared import Shared
from greenroom.protocol.workflows.snapshot import TaskResult
from greenroom.protocol.workflows.status import Override, Status, is_terminal

__all__ = ["GROUP_EVENTS", "Group"]

GROUP_EVENTS: Final = frozenset(
    {
        "start",
        "complete",
        "fail",
        "skip",
        "stop",
        "suspend",
        "pause",
        "resume",
        "add",
        "remove",
        "move",
        "update",
    }
)


class Group(Node):
    """A node with parts. `skip` and `stop` pin its status for good; its parts go on until somebody ends them too."""

    __slots__ = ("_override", "_status")

    def __init__(
        self,
        shared: Shared,
        events: Collection[str],
        *,
        override: Override | UnsetType = UNSET,
        on: Mapping[str, Listener] | None = None,
        error: ErrorHandler | None = None,
    ) -> None:
        super().__init__(shared, events, on=on, error=error)
        self._override: Override | UnsetType = override
        self._status: Status = "pending"

    @property
    def status(self) -> Status:
        """What its parts make it, or what it was pinned to."""
        return self._status

    @property
    def override(self) -> Override | UnsetType:
        """What it was pinned to, if it was."""
        return self._override

    def skip(self) -> None:
        """Pin it to skipped. Nothing happens if it is done for good."""
        self._pin("skipped")

    def stop(self) -> None:
        """Pin it to stopped. Nothing happens if it is done for good."""
        self._pin("stopped")

    @abstractmethod
    def first_failure(self) -> TaskResult | None:
        """The result of the first task in it, by position, that failed, as a copy."""

    def _pin(self, override: Override) -> None:
        if self.terminal or not self.attached or self.shared.suspended:
            return
        self._override = override
        self.shared.touch()
        self._refresh()
        self.shared.happen()

    @abstractmethod
    def _derive(self) -> Status:
        """What its parts make it."""

    @abstractmethod
    def _changed(self) -> None:
        """Tell what it is part of that its status is another."""

    def _refresh(self) -> None:
        """Make the status what it has to be now, and line up what follows if it is another than before."""
        status: Status = self._derive() if self._override is UNSET else self._override
        if status == self._status:
            return
        self._status = status
        if is_terminal(status):
            self.shared.line_up(self.gate.open)
        self._announce_status()
        self._changed()

    def _announce_status(self) -> None:
        match self._status:
            case "running":
                self.shared.announce(self, "start", self.id)
            case "completed":
                self.shared.announce(self, "complete")
            case "failed":
                failure = self.first_failure()
                assert failure is not None, "a failed group has a task that failed"
                self.shared.announce(self, "fail", failure)
            case "skipped":
                self.shared.announce(self, "skip")
            case "stopped":
                self.shared.announce(self, "stop")
            case "pending":
                self.shared.announce(self, "suspend")
