"""The questions that questionary draws, one for each kind of control, and the keys that all of them know."""

from __future__ import annotations

from typing import Any, Final

import questionary
from msgspec import UNSET
from prompt_toolkit.application import Application, get_app
from prompt_toolkit.completion import PathCompleter
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPress, KeyPressEvent, merge_key_bindings
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout.processors import PasswordProcessor
from prompt_toolkit.shortcuts import CompleteStyle
from prompt_toolkit.utils import get_cwidth

from greenroom.actors.console import wording
from greenroom.actors.console.keys import parse_key, split_keys
from greenroom.protocol.forms import (
    CheckboxField,
    ConfirmField,
    EditorField,
    FieldChoice,
    FileField,
    FormField,
    PasswordField,
    SelectField,
    Value,
    sanitize_display_text,
)
from greenroom.protocol.forms.values import declared_default

__all__ = ["checkbox", "confirm", "editor", "password", "path", "select", "text"]

_MASK: Final = "*"


def text(field: FormField, held: Value | None, *hints: str, **options: Any) -> Application[str]:
    """One line, or several with `multiline`. `hints` stand beside what the field is called.

    What was typed before and refused comes back with the arrow up: nobody should have to type it all again.
    """
    told = [*hints, wording.default_text(field)]
    if isinstance(held, str) and held != declared_default(field):
        options["history"] = InMemoryHistory([held])
        told.append("arrow up: what you entered before")
    hint = ", ".join(filter(None, told))
    placeholder = wording.shortened(wording.placeholder_text(field))

    def show_placeholder() -> StyleAndTextTuples:
        return [] if get_app().is_done else [("class:placeholder", placeholder)]

    question = questionary.text(
        wording.shortened(wording.prompt_text(field)),
        instruction=f"[{hint}]" if hint else None,
        placeholder=show_placeholder if placeholder else None,
        **options,
    )
    return _with_keys(question, _EDITOR_KEYS if "multiline" in options else _LINE_KEYS)


def editor(field: EditorField, held: Value | None) -> Application[str]:
    """Several lines, ended with Ctrl-D."""
    # Indented by the length of the prompt, as is usual, nothing would be left of a line if the prompt is a long one.
    return text(field, held, "Ctrl-D ends", multiline=True, prompt_continuation="  ")


def password(field: PasswordField) -> Application[str]:
    """One line, of which only the length is shown."""
    mask = "" if field.mask is UNSET else sanitize_display_text(field.mask)[:1]
    return text(field, None, input_processors=[PasswordProcessor(mask if get_cwidth(mask) == 1 else _MASK)])


def path(field: FileField, count: int) -> Application[str]:
    """The path of a file, `count` having been entered before it; tab completes it."""
    return text(
        field,
        None,
        "return if that is all" if count else "",
        completer=PathCompleter(expanduser=True),
        complete_while_typing=False,
        complete_style=CompleteStyle.READLINE_LIKE,
    )


def confirm(field: ConfirmField) -> Application[bool]:
    """y or n; return takes the default, which is no where none is declared."""
    return _with_keys(questionary.confirm(_title(field), default=field.default is True), _CHOICE_KEYS)


def select(field: SelectField) -> Application[int]:
    """The place of one of the choices that are on offer, of which there must be one. Opens on the default."""
    offered = wording.offered(field)
    choices = [_choice(place, choice) for place, choice in enumerate(offered)]
    default = next((place for place, choice in enumerate(offered) if choice.value == field.default), 0)
    return _with_keys(questionary.select(_title(field), choices, default=choices[default]), _CHOICE_KEYS)


def checkbox(field: CheckboxField) -> Application[list[int]]:
    """The places of any of the choices that are on offer, of which there must be one. Opens with the default ticked."""
    default = () if field.default is UNSET else field.default
    choices = [
        _choice(place, choice, checked=choice.value in default) for place, choice in enumerate(wording.offered(field))
    ]
    return _with_keys(questionary.checkbox(_title(field), choices), _CHOICE_KEYS)


def _title(field: FormField) -> str:
    return wording.shortened(wording.title(field))


def _choice(place: int, choice: FieldChoice, *, checked: bool = False) -> questionary.Choice:
    label = wording.shortened(wording.choice_text(choice))
    help = wording.shortened(wording.help_text(choice))
    return questionary.Choice(label, place, checked=checked, description=help or None)


def _with_keys(question: questionary.Question, keys: KeyBindings) -> Application[Any]:
    application = question.application
    bound = application.key_bindings
    application.key_bindings = merge_key_bindings([keys] if bound is None else [bound, keys])
    return application


_LINE_KEYS: Final = KeyBindings()
_EDITOR_KEYS: Final = KeyBindings()
_CHOICE_KEYS: Final = KeyBindings()


@_EDITOR_KEYS.add(Keys.ControlD, eager=True)
def _end(event: KeyPressEvent) -> None:
    event.current_buffer.validate_and_handle()


@_LINE_KEYS.add(Keys.ControlD, eager=True)
@_CHOICE_KEYS.add(Keys.ControlD, eager=True)
@_CHOICE_KEYS.add(Keys.BracketedPaste, eager=True)
def _ignore(event: KeyPressEvent) -> None:
    """Do nothing.

    Ctrl-D, pressed once too often at the end of an editor, must not end the walk; and a pasted text is no choice.
    """


@_LINE_KEYS.add(Keys.BracketedPaste, eager=True)
def _paste(event: KeyPressEvent) -> None:
    """Take what is pasted as if it had been typed: a line break is a return, and what follows is for the next field."""
    keys = split_keys(event.data)
    names = [parse_key(key).name for key in keys]
    end = names.index("return") if "return" in names else len(keys)
    typed = (key for key, name in zip(keys[:end], names, strict=False) if name in (key, "space"))
    event.current_buffer.insert_text("".join(typed))
    if end < len(keys):
        rest = "".join(keys[end + 1 :])
        if rest:
            event.key_processor.feed(KeyPress(Keys.BracketedPaste, rest), first=True)
        event.key_processor.feed(KeyPress(Keys.ControlM, "\r"), first=True)
