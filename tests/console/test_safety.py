"""Nothing that a form says can steer the terminal, and nothing of it is changed on its way to the asker."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.actors.console import wording
from greenroom.protocol.forms import (
    CheckboxField,
    FieldChoice,
    FieldError,
    FileField,
    Form,
    FormGroup,
    FormSchema,
    SelectField,
    TextField,
)
from tests.console.person import Person
from tests.console.piping import form_of, walk
from tests.console.test_prompts import fill_in

MARKUP = "<b>&lt;</b> [bold red]x[/] {0} %s \\n ${HOME} :smile: "
ESCAPES = "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x1b[2J\x1b[?1049h\x9b1mbold \x00\x07\x08\x7f\x85\r\n\t"
BIDI = "\u202egnp.exe\u202c \u2066x\u2069 \u2028 \u2029"
NASTY = f"{MARKUP}{ESCAPES}{BIDI}"
SEEN = f"{MARKUP}red  bold \\n\\n        gnp.exe x"
"""What of it can be seen: text."""

STEERING = frozenset(map(chr, (*range(32), *range(127, 160), *range(0x2028, 0x202F), *range(0x2066, 0x206A))))


def everywhere() -> dict[str, Any]:
    """A form that says it wherever a form can say anything."""

    def said(control: str, name: str, **members: Any) -> dict[str, Any]:
        said = {"label": f"{name} {NASTY}", "help": NASTY, "group": NASTY[:100], "meta": {NASTY: NASTY}}
        return {"control": control, "name": f"{name} {NASTY[:100]}", **said, **members}

    choices = [{"value": NASTY, "label": NASTY, "help": NASTY}, {"value": "plain", "label": "Plain"}]
    return {
        "name": NASTY[:100],
        "label": NASTY,
        "help": NASTY,
        "groups": [{"name": NASTY[:100], "label": NASTY, "help": NASTY}],
        "fields": [
            said("text", "Text", default=NASTY, placeholder=NASTY),
            said("editor", "Editor", default=NASTY, placeholder=NASTY),
            said("password", "Password", mask=NASTY),
            said("select", "Select", choices=choices, default=NASTY),
            said("select", "Open", choices=choices, default=NASTY, open=True),
            said("checkbox", "Checkbox", choices=choices, default=[NASTY]),
            said("file", "File", accept=[NASTY]),
            said("text", "Locked", default=NASTY, locked=True),
        ],
    }


def nasty_form() -> Form:
    form = Form(everywhere())
    form.invalidate(form.schema.fields[2].name, NASTY)
    return form


EXPECTED = {
    "Text": NASTY,
    "Editor": NASTY,
    "Password": "p",
    "Select": NASTY,
    "Open": NASTY,
    "Checkbox": [NASTY],
    "Locked": NASTY,
}


def by_first_word(values: dict[str, Any]) -> dict[str, Any]:
    return {name.partition(" ")[0]: value for name, value in values.items()}


async def test_at_a_terminal_it_is_text_and_reaches_the_answer_unchanged(person: Person) -> None:
    script = [("? Text", "\r"), ("? Editor", "\x04"), ("? Password", "p\r"), ("? Select", "\r"), ("? Open", "\r"),
              ("? Checkbox", "\r"), ("? File", "\r")]  # fmt: skip
    values = await fill_in(person, nasty_form(), *script)
    assert by_first_word(values) == EXPECTED
    person.rest()
    drawn = {"\n", "\b"}  # so the prompt itself moves its cursor by one
    assert not (set(person.text) - drawn) & STEERING
    for sequence in ("\x1b]0", "\x1b[2J", "\x1b[?1049h", "title", "\x9b"):
        assert sequence not in person.raw
    assert person.text.count("[bold red]x[/] {0} %s") > 20
    assert SEEN in person.text


async def test_in_lines_it_is_text_and_reaches_the_answer_unchanged() -> None:
    form = nasty_form()
    form.disable(form.schema.fields[1].name)
    done = await walk(form, "\np\n1\n\n1\n\n")
    assert by_first_word(done.values) == {name: value for name, value in EXPECTED.items() if name != "Editor"}
    assert not set("".join(done.lines)) & STEERING
    assert f"Password {SEEN}" in done.lines
    assert SEEN in done.lines


async def test_what_is_typed_in_a_pipe_is_sent_as_it_is() -> None:
    typed = f"{MARKUP}\x1b[31mred\x1b[0m \x9b1m \x00\x07\x08\x7f\x85\t{BIDI}"
    assert (await walk(form_of({}), f"{typed}\n")).values == {"x": typed}


@pytest.mark.parametrize("label", ["\u202e \x1b[0m", "", "\x07"])
async def test_a_label_that_holds_nothing_to_see_does_not_leave_a_field_without_a_name(label: str) -> None:
    done = await walk(form_of({"name": "real name", "label": label}), "\n")
    assert done.lines == ["real name"]
    assert wording.title(TextField(name="\x07", label=label)) == "Unnamed field"
    assert wording.choice_text(FieldChoice("\x07", label)) == "(empty)"


@given(
    st.text(st.sampled_from("\x1b[]0;31mJx\x07\x9b\x9d\u202e\r\n\t \x00") | st.characters(exclude_categories=["Cs"]))
)
def test_no_text_of_a_form_can_steer_a_terminal(text: str) -> None:
    choice = FieldChoice(text, text, help=text)
    select = SelectField(name=text, label=text, help=text, choices=(choice,), default=text, open=True)
    said = [
        wording.seen(text),
        wording.form_title(FormSchema(name=text, label=text, fields=())),
        wording.group_title(FormGroup(text, text)),
        wording.title(select),
        wording.prompt_text(FileField(name=text, accept=(text, text))),
        wording.help_text(choice),
        *wording.help_text(select).split("\n"),
        wording.placeholder_text(TextField(name="x", placeholder=text)),
        wording.choice_text(choice),
        wording.offer_text(choice),
        wording.default_text(select),
        wording.default_text(CheckboxField(name="x", choices=(choice,), default=(text, text))),
        wording.value_text([text, text]),
        wording.failure_text([select], FieldError(text, text)),
        wording.failure_text([], FieldError(text, text)),
    ]
    assert not set("".join(said)) & STEERING
