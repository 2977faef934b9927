"""Prompts at a terminal, drawn by questionary (the extra `console`)."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, ParamSpec, TextIO, TypeVar, final

from prompt_toolkit.application import Application, create_app_session
from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.output.vt100 import Vt100_Output
from rich.console import Console as Screen
from rich.text import Text

from greenroom.actors.console import questions, wording
from greenroom.actors.console.interruptible import InputEnded, Interrupted, run_application
from greenroom.actors.console.keyboard import Keyboard, cancelled
from greenroom.actors.console.prompts import Prompts, Tone
from greenroom.protocol.forms import (
    CheckboxField,
    ConfirmField,
    EditorField,
    FileField,
    FormField,
    PasswordField,
    SelectField,
    Value,
    matches_answer,
)
from greenroom.protocol.forms.values import declared_default

__all__ = ["TtyPrompts"]

P = ParamSpec("P")
T = TypeVar("T")

_STYLES: Final[dict[Tone, str]] = {"plain": "", "heading": "bold", "help": "dim", "failure": "red"}


@final
class TtyPrompts(Prompts):
    """Asks at the terminal that `stdin` and `stdout` are.

    Texts are typed on a line that can be edited, an editor's on several; the other controls are chosen from with the
    arrows, or j and k. Between prompts the terminal is in the mode in which it was found.
    """

    def __init__(self, stdin: TextIO, stdout: TextIO) -> None:
        self._input = Vt100Input(stdin)
        self._output = Vt100_Output.from_pty(stdout, term=os.environ.get("TERM"))
        # Asked where its cursor is, a terminal might answer after the prompt has gone, and to whoever reads next.
        self._output.enable_cpr = False
        self._screen = Screen(file=stdout, highlight=False, soft_wrap=True)
        self._keyboard = Keyboard(stdin.fileno())

    @property
    def ended(self) -> bool:
        return False  # a terminal that hangs up is one that somebody has left

    def begin(self) -> None:
        clear_typeahead(self._input)
        self._keyboard.discard()

    def say(self, text: str, tone: Tone = "plain") -> None:
        self._screen.print(Text(text, _STYLES[tone]))

    async def wait_left(self) -> None:
        await self._keyboard.wait_left()

    async def ask(self, field: FormField, held: Value | None) -> Value | None:
        self._say_what_is_cut(field)
        match field:
            case ConfirmField():
                return await self._run(questions.confirm, field)
            case SelectField() if field.open is not True:
                return await self._select(field)
            case CheckboxField():
                return await self._checkbox(field)
            case FileField():
                return await self._files(field)
            case EditorField():
                typed = await self._run(questions.editor, field, held)
                return _or_default(field, typed.removesuffix("\n"))
            case PasswordField():
                return _or_default(field, await self._run(questions.password, field))
            case SelectField():
                for choice in wording.offered(field):
                    self.say(f"  {wording.offer_text(choice)}")
                return _or_default(field, await self._run(questions.text, field, held))
            case _:
                return _or_default(field, await self._run(questions.text, field, held))

    async def _select(self, field: SelectField) -> str | None:
        choices = wording.offered(field)
        if not choices:
            self._say_empty(field)
            return None
        place: int = await self._run(questions.select, field)
        return choices[place].value

    async def _checkbox(self, field: CheckboxField) -> list[str]:
        choices = wording.offered(field)
        if not choices:
            self._say_empty(field)
            return []
        return [choices[place].value for place in await self._run(questions.checkbox, field)]

    async def _files(self, field: FileField) -> list[str] | None:
        paths: list[str] = []
        while matches_answer(path := await self._run(questions.path, field, len(paths))):
            paths.append(path)
            if field.multiple is not True:
                break
        return paths or None

    def _say_what_is_cut(self, field: FormField) -> None:
        """Print in full what the prompt has no room for."""
        texts = [wording.prompt_text(field)]
        if isinstance(field, SelectField | CheckboxField):
            for choice in wording.offered(field):
                texts += [wording.choice_text(choice), wording.help_text(choice)]
        for text in texts:
            if wording.shortened(text) != text:
                self.say(text)

    def _say_empty(self, field: FormField) -> None:
        self.say(f"{wording.title(field)}: there is nothing to choose from")

    async def _run(self, question: Callable[P, Application[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        def build() -> Application[T]:
            with create_app_session(input=self._input, output=self._output):
                return question(*args, **kwargs)

        try:
            return await run_application(build)
        except Interrupted:
            raise cancelled("Left with Ctrl-C") from None
        except InputEnded:
            raise cancelled("The terminal has hung up") from None


def _or_default(field: FormField, typed: str) -> Value | None:
    return typed if matches_answer(typed) else declared_default(field)
