"""Answers from lines: where the input is no terminal, every field takes a line, and an editor's several."""

from __future__ import annotations

import os
from typing import Final, TextIO, final

import trio

from greenroom.actors.console import wording
from greenroom.actors.console.choosing import chosen, picked, picks, ticked
from greenroom.actors.console.prompts import Prompts, Tone
from greenroom.protocol.forms import (
    CheckboxField,
    ConfirmField,
    EditorField,
    FileField,
    FormField,
    SelectField,
    Value,
    matches_answer,
)
from greenroom.protocol.forms.values import declared_default
from greenroom.protocol.text import trim

__all__ = ["LinePrompts", "LineReader"]

_CHUNK: Final = 65_536
_END_OF_TEXT: Final = "."
_CONFIRMED: Final = {"y": True, "yes": True, "n": False, "no": False}


@final
class LineReader:
    """Reads a file descriptor by lines, ended by LF or CRLF. It neither closes it nor changes its mode.

    What is no UTF-8 is kept as lone surrogates, which no field takes: better refused than silently replaced.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._unread = bytearray()
        self._at_end = False

    @property
    def ended(self) -> bool:
        """The end was seen, and nothing before it is left."""
        return self._at_end and not self._unread

    async def line(self) -> str | None:
        """The next line, None at the end. Waits without a deadline; cancelled, nothing is lost."""
        searched = 0
        while (end := self._unread.find(b"\n", searched)) < 0:
            searched = len(self._unread)
            if not await self._read():
                return self._take(len(self._unread)) if self._unread else None
        return self._take(end + 1)

    async def rest(self) -> str | None:
        """Everything up to the end, with line ends as they are; None if nothing is left. As `line` otherwise."""
        while await self._read():
            pass
        if not self._unread:
            return None
        text, self._unread = bytes(self._unread), bytearray()
        return text.decode("utf-8", "surrogateescape")

    async def lines_left(self) -> int:
        """How many lines have come that nobody has read, as soon as there is one; 0 at the end.

        A line that has only begun counts. Waits without a deadline; cancelled, nothing is lost.
        """
        while not self._unread:
            if not await self._read():
                return 0
        return self._unread.count(b"\n") + (not self._unread.endswith(b"\n"))

    def _take(self, size: int) -> str:
        line = bytes(self._unread[:size])
        del self._unread[:size]
        if line.endswith(b"\n"):
            line = line[:-1].removesuffix(b"\r")
        return line.decode("utf-8", "surrogateescape")

    async def _read(self) -> bool:
        if self._at_end:
            await trio.lowlevel.checkpoint()
            return False
        try:
            await trio.lowlevel.wait_readable(self._fd)
        except PermissionError:  # of epoll: a regular file is always readable
            await trio.lowlevel.checkpoint()
        data = os.read(self._fd, _CHUNK)
        self._unread += data
        self._at_end = not data
        return not self._at_end


@final
class LinePrompts(Prompts):
    """Prints each prompt as a line, and takes the next line of the input for its answer.

    An editor takes lines up to one that is a single `.`, and a choice of several files up to an empty one; the end of
    the input ends both, too, but is an answer to nothing by itself.

    With `strict`, as at the command line, a choice is named by its number, its value or its label, an empty line is its
    default, and any other line is refused. Without it a line is read leniently: a choice is the number that the line
    begins with, and any other line is none. `notes`, if given, is told of lines that are left between two forms.
    """

    def __init__(self, reader: LineReader, out: TextIO, *, strict: bool = False, notes: TextIO | None = None) -> None:
        self._reader = reader
        self._out = out
        self._strict = strict
        self._notes = notes
        self._left = 0
        """How many lines were left when that was last told."""

    @property
    def ended(self) -> bool:
        return self._reader.ended

    def begin(self) -> None:
        """Nothing: lines that are there already are for the forms that come."""

    def say(self, text: str, tone: Tone = "plain") -> None:
        print(text, file=self._out, flush=True)

    async def wait_left(self) -> None:
        left = await self._reader.lines_left()
        if left:
            self._tell_left(left)
            await trio.sleep_forever()

    async def ask(self, field: FormField, held: Value | None) -> Value | None:
        """An answer as its control reads it from lines. Raises EOFError if there is no line for it."""
        self._show(field)
        match field:
            case EditorField():
                return _or_default(field, "\n".join(await self._lines(_END_OF_TEXT)))
            case FileField() if field.multiple is True:
                return await self._lines("") or None
            case FileField():
                path = await self._line()
                return [path] if matches_answer(path) else None
            case ConfirmField():
                return _confirmed(field, await self._line())
            case SelectField() if field.open is not True:
                return (chosen if self._strict else picked)(field, await self._line())
            case CheckboxField():
                return (ticked if self._strict else picks)(field, await self._line())
            case _:
                return _or_default(field, await self._line())

    def _show(self, field: FormField) -> None:
        prompt = wording.prompt_text(field)
        match field:
            case ConfirmField():
                self.say(f"{prompt} (y/n) [{wording.value_text(field.default is True)}]")
            case EditorField():
                self._show_typed(field, f"{prompt} (lines, then one with a single .)")
            case FileField() if field.multiple is True:
                self.say(f"{prompt} (lines, then an empty one)")
            case SelectField() if field.open is True:
                self._show_typed(field, prompt)
                for choice in wording.offered(field):
                    self.say(f"  {wording.offer_text(choice)}")
            case SelectField() | CheckboxField():
                if self._strict:
                    self._show_typed(field, prompt)
                else:
                    self.say(prompt)  # an empty line is not the default here
                for number, choice in enumerate(wording.offered(field), 1):
                    help = wording.help_text(choice)
                    self.say(f"  {number}. {wording.choice_text(choice)}" + (f": {help}" if help else ""))
            case _:
                self._show_typed(field, prompt)

    def _show_typed(self, field: FormField, prompt: str) -> None:
        default = wording.default_text(field)
        self.say(f"{prompt} [{default}]" if default else prompt)

    def _tell_left(self, left: int) -> None:
        if self._notes is not None and left != self._left:
            told = "1 line of the input is" if left == 1 else f"{left} lines of the input are"
            print(f"{told} left; waiting for the next form.", file=self._notes, flush=True)
        self._left = left

    async def _line(self) -> str:
        line = await self._reader.line()
        if line is None:
            raise EOFError
        return line

    async def _lines(self, last: str) -> list[str]:
        """Lines up to one that says that it was the last, or up to the end of the input; of these at least one."""
        lines: list[str] = []
        line: str | None = await self._line()
        while line is not None and trim(line) != last:
            lines.append(line)
            line = await self._reader.line()
        return lines


def _or_default(field: FormField, text: str) -> Value | None:
    return text if matches_answer(text) else declared_default(field)


def _confirmed(field: ConfirmField, text: str) -> bool | str:
    word = trim(text).lower()
    return _CONFIRMED.get(word, text) if word else field.default is True
