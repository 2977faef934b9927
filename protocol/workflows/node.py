"""What workflow, phase and task have in common: who they are, who listens to them, and pausing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping

from msgspec import UnsetType

from greenroom.protocol.emitter import Emitter, ErrorHandler, Listener
from greenroom.protocol.workflows.gate import Gate
from greenroom.protocol.workflows.shared import Shared
from greenroom.protocol.workflows.status import Status, is_terminal

__all__ = ["Node"]


class Node(ABC):
    """A live part of a workflow.

    Its `emitter` announces changes after they were made, each once. Its `gate` is closed while it is paused; pausing is
    no status, is not stored, and means nothing once the node is done.
    """

    __slots__ = ("attached", "emitter", "gate", "shared")

    def __init__(
        self,
        shared: Shared,
        events: Collection[str],
        *,
        on: Mapping[str, Listener] | None = None,
        error: ErrorHandler | None = None,
    ) -> None:
        self.shared = shared
        self.emitter = Emitter(events, on=on, error=error)
        self.gate = Gate()
        self.attached = True
        """Whether it is still part of its workflow: removed parts and those of a destroyed workflow are not."""

    @property
    @abstractmethod
    def id(self) -> str: ...

    @property
    @abstractmethod
    def name(self) -> str: ...

    @property
    @abstractmethod
    def description(self) -> str | UnsetType: ...

    @property
    @abstractmethod
    def status(self) -> Status: ...

    @property
    def terminal(self) -> bool:
        """Whether it is done for good."""
        return is_terminal(self.status)

    @property
    def paused(self) -> bool:
        """Whether it is paused itself; what it is part of may be, all the same."""
        return not self.gate.is_open

    def pause(self) -> None:
        """Close the gate. Nothing happens if it is paused, or done for good."""
        if self.paused or self.terminal or not self.attached:
            return
        self.gate.close()
        self.shared.announce(self, "pause")
        self.shared.happen()

    def resume(self) -> None:
        """Open the gate again. Nothing happens if it is not paused, or done for good."""
        if not self.paused or self.terminal:
            return
        self.gate.open()
        self.shared.announce(self, "resume")
        self.shared.happen()

    def detach(self) -> None:
        """Make it no part of its workflow any more, and silent for good. For what it is part of."""
        self.attached = False
        self.shared.line_up(self.gate.open)
        self.shared.line_up(self.emitter.close)
