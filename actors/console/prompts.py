"""The seam between a walk and the person: lines out, one answer at a time in."""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

from greenroom.protocol.forms import FormField, Value

__all__ = ["Prompts", "Tone"]

Tone: TypeAlias = Literal["plain", "heading", "help", "failure"]
"""What a line is, for those who can show it."""


class Prompts(Protocol):
    """Shows a form's lines and fields, and reads the answers.

    What it is given to show has been made safe to print by `wording`, except fields: those it words itself.
    """

    @property
    def ended(self) -> bool:
        """Nothing more can be read, ever."""
        ...

    def begin(self) -> None:
        """A form comes: what was typed before is no answer to it."""
        ...

    def say(self, text: str, tone: Tone = "plain") -> None:
        """Show one line, or what explains something in several."""
        ...

    async def ask(self, field: FormField, held: Value | None) -> Value | None:
        """Read the answer to a field, as it was typed or chosen; None for none. `held` is what the form holds now.

        Waits without a deadline. Raises EOFError if the input has ended before there was anything to read, and
        TerminalError CANCEL for Ctrl-C. Cancelled: the terminal is as it was before.
        """
        ...

    async def wait_left(self) -> None:
        """Between forms: wait, without a deadline, until nobody is there to answer any more.

        Raises TerminalError CANCEL for Ctrl-C. Cancelled: the terminal is as it was before.
        """
        ...
