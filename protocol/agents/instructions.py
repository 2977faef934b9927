"""Instructions: named pieces of the system prompt, by priority."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, final

from msgspec import Struct

from greenroom.protocol.emitter import Emitter, ErrorHandler, Listener

__all__ = ["Instruction", "InstructionManager", "PromptFormat"]

_HEADER: Final = "## Instructions"


@final
class Instruction(Struct, frozen=True):
    """One instruction. `format` says how this one is written; the higher its priority, the earlier it stands."""

    name: str
    content: str
    priority: float = 0
    format: Callable[[Instruction], str] | None = None


@final
class PromptFormat(Struct, frozen=True):
    """How the section of instructions is written. `None`: as whoever is asked next has it.

    An instruction's own format comes first, then the manager's, then the provider's.
    """

    header: str | None = None
    item: Callable[[Instruction], str] | None = None
    closing: str | None = None
    """A last line."""


@final
class InstructionManager:
    """Instructions by name. Events of its `emitter`, after the change: `add(instruction)`, `remove(name)`, `clear()`.

    What changes nothing is not announced.
    """

    def __init__(
        self,
        instructions: Iterable[Instruction] = (),
        *,
        format: PromptFormat | None = None,
        on: Mapping[str, Listener] | None = None,
        error: ErrorHandler | None = None,
    ) -> None:
        self.format = format or PromptFormat()
        self.emitter = Emitter(("add", "remove", "clear"), on=on, error=error)
        self._instructions = {instruction.name: instruction for instruction in instructions}

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._instructions)

    def instruction(self, name: str) -> Instruction | None:
        """The one of that name, if there is one."""
        return self._instructions.get(name)

    def instructions(self, names: Collection[str] | None = None) -> list[Instruction]:
        """All of them, or those of these names: the highest priority first, in the order of adding within one."""
        chosen = [each for each in self._instructions.values() if names is None or each.name in names]
        return sorted(chosen, key=lambda instruction: -instruction.priority)

    def add(self, instructions: Instruction | Iterable[Instruction]) -> None:
        """Add them. A known name is replaced in its place."""
        for instruction in (instructions,) if isinstance(instructions, Instruction) else tuple(instructions):
            self._instructions[instruction.name] = instruction
            self.emitter.emit("add", instruction)

    def remove(self, names: str | Iterable[str]) -> bool:
        """Remove them; whether one of them was there."""
        removed = False
        for name in (names,) if isinstance(names, str) else tuple(names):
            if self._instructions.pop(name, None) is not None:
                removed = True
                self.emitter.emit("remove", name)
        return removed

    def clear(self) -> None:
        """Remove all of them."""
        if self._instructions:
            self._instructions.clear()
            self.emitter.emit("clear")

    def section(self, names: Collection[str] | None = None, format: PromptFormat | None = None) -> str | None:
        """Those of these names as they stand in a prompt; `None` if there are none. `format` is the provider's."""
        chosen = self.instructions(names)
        if not chosen:
            return None
        formats = [self.format] if format is None else [self.format, format]
        header = next((each.header for each in formats if each.header is not None), _HEADER)
        item = next((each.item for each in formats if each.item is not None), None)
        closing = next((each.closing for each in formats if each.closing is not None), None)
        parts = [header, *(_written(instruction, item) for instruction in chosen)]
        return "\n\n".join(parts if closing is None else [*parts, closing])


def _written(instruction: Instruction, item: Callable[[Instruction], str] | None) -> str:
    written = instruction.format or item
    return instruction.content if written is None else written(instruction)
