"""A prompt that is taken away while somebody looks at it, and what is left of the terminal then."""

from __future__ import annotations

import os
import termios
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from prompt_toolkit.application import Application, create_app_session
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.output import DummyOutput

from greenroom.actors.console import Console
from greenroom.actors.console.interruptible import run_application
from greenroom.actors.console.keyboard import Keyboard
from greenroom.actors.console.tty import TtyPrompts
from greenroom.protocol.errors import FormError, GreenroomError, TerminalError
from greenroom.protocol.forms import Form
from tests.console.person import PATIENCE, Person, opened, seated
from tests.console.piping import form_of

CHOICES = [{"value": "a", "label": "Apple"}, {"value": "c", "label": "Plum"}]
KINDS: list[dict[str, Any]] = [
    {"control": "text"},
    {"control": "editor"},
    {"control": "password"},
    {"control": "confirm"},
    {"control": "select", "choices": CHOICES},
    {"control": "checkbox", "choices": CHOICES},
    {"control": "file"},
]
SHOWN, PASTED_AS_KEYS = "\x1b[?25h", "\x1b[?2004l"


@pytest.fixture(params=KINDS, ids=lambda field: field["control"])
def form(request: pytest.FixtureRequest) -> Form:
    """A form with one field, of each kind that is asked in another way."""
    return Form(form_of({"label": "Field", **request.param}))


async def ended(ask: Callable[[], Awaitable[object]], meanwhile: Callable[[], Awaitable[None]]) -> GreenroomError:
    """What the first raises while the second happens."""
    caught: list[GreenroomError] = []

    async def run() -> None:
        try:
            await ask()
        except GreenroomError as error:
            caught.append(error)

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            await meanwhile()
    (error,) = caught
    return error


def assert_is_as_before(person: Person, mode: list[Any]) -> None:
    assert person.mode == mode
    person.rest()
    assert person.raw.rfind(SHOWN) >= person.raw.rfind("\x1b[?25l")
    assert person.raw.rfind(PASTED_AS_KEYS) >= person.raw.rfind("\x1b[?2004h")
    assert person.raw.rfind("\x1b[?1049l") >= person.raw.rfind("\x1b[?1049h")


async def test_a_form_that_is_taken_away_interrupts_its_prompt(person: Person, form: Form) -> None:
    before = person.mode
    with opened(person.slave) as (stdin, stdout):

        async def take_away() -> None:
            await person.sees("Field")
            person.types("half an ans")
            form.destroy()

        error = await ended(lambda: Console(TtyPrompts(stdin, stdout)).ask(form), take_away)
    assert isinstance(error, FormError)
    assert error.code == "ABANDONED"
    assert_is_as_before(person, before)


async def test_ctrl_c_leaves_the_form_as_it_is(person: Person, form: Form) -> None:
    before = person.mode
    with opened(person.slave) as (stdin, stdout):
        error = await ended(
            lambda: Console(TtyPrompts(stdin, stdout)).ask(form), lambda: person.answers("Field", "\x03")
        )
    assert isinstance(error, TerminalError)
    assert error.code == "CANCEL"
    assert form.status == "editing"
    assert_is_as_before(person, before)


async def test_a_cancelled_walk_leaves_nothing_behind(person: Person, form: Form) -> None:
    before = person.mode
    descriptors = len(os.listdir("/proc/self/fd"))
    with opened(person.slave) as (stdin, stdout), trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Console(TtyPrompts(stdin, stdout)).ask, form)
            await person.sees("Field")
            scope.cancel()
    assert form.status == "editing"
    assert_is_as_before(person, before)
    assert len(os.listdir("/proc/self/fd")) == descriptors


@pytest.mark.parametrize("steps", range(6))
async def test_a_prompt_can_be_interrupted_before_it_is_there(person: Person, steps: int) -> None:
    form, before = Form(form_of({"label": "Field"})), person.mode
    with opened(person.slave) as (stdin, stdout), trio.fail_after(PATIENCE), trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Console(TtyPrompts(stdin, stdout)).ask, form)
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            scope.cancel()
    assert form.status == "editing"
    assert_is_as_before(person, before)


async def test_a_terminal_that_hangs_up_leaves_the_form_as_it_is() -> None:
    with seated() as person, opened(person.slave) as (stdin, stdout):
        form = Form(form_of({"control": "confirm", "label": "Field"}))

        async def hang_up() -> None:
            await person.sees("Field")
            person.hangs_up()

        error = await ended(lambda: Console(TtyPrompts(stdin, stdout)).ask(form), hang_up)
    assert error.code == "CANCEL"
    assert form.status == "editing"


async def test_a_prompt_that_breaks_ends_instead_of_hanging(person: Person) -> None:
    keys, before = KeyBindings(), person.mode

    @keys.add("x")
    def _(event: KeyPressEvent) -> None:
        raise ZeroDivisionError

    with opened(person.slave) as (stdin, _stdout), trio.fail_after(PATIENCE):

        def build() -> Application[str]:
            with create_app_session(input=Vt100Input(stdin), output=DummyOutput()):
                return Application(key_bindings=keys)

        person.types("x")
        with pytest.raises(ZeroDivisionError):
            await run_application(build)
    assert person.mode == before


# -------------------------------------------------------------------- between forms


async def type_unseen(person: Person, keys: str) -> None:
    """Type as soon as nothing is echoed any more."""
    while person.mode[3] & termios.ECHO:
        await trio.lowlevel.checkpoint()
    person.types(keys)


@pytest.mark.parametrize("keys", ["q", "\x04", "xyz\r\n\x1b[A 1q"])
async def test_between_forms_only_some_keys_mean_anything(person: Person, keys: str) -> None:
    before = person.mode
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(Keyboard(person.slave).wait_left)
            await type_unseen(person, keys)
    assert person.mode == before
    assert person.rest() == ""


async def test_ctrl_c_between_forms_is_heard_without_a_controlling_terminal(person: Person) -> None:
    before = person.mode
    error = await ended(lambda: Keyboard(person.slave).wait_left(), lambda: type_unseen(person, "secret\x03"))
    assert error.code == "CANCEL"
    assert person.mode == before
    assert "secret" not in person.rest()


async def test_whoever_stops_waiting_between_forms_gets_the_terminal_back(
    person: Person, autojump_clock: object
) -> None:
    before = person.mode
    with trio.move_on_after(60):
        await Keyboard(person.slave).wait_left()
    assert person.mode == before


async def test_a_terminal_that_has_gone_is_one_that_nobody_is_at() -> None:
    with seated() as person:
        person.hangs_up()
        with trio.fail_after(PATIENCE):
            await Keyboard(person.slave).wait_left()


# -------------------------------------------------------------------- whatever is typed

EVERY_KIND = form_of(*({"name": str(number), **field} for number, field in enumerate(KINDS)))
CHUNKS = st.text(
    # Ctrl-S holds a terminal's output back while no prompt is shown, as it should.
    st.sampled_from("ab1 jky\r\n\t\x00\x01\x04\x05\x08\x0b\x11\x12\x15\x17\x18\x1a\x1b\x1c\x7f[O200~AB;mé😀\u202e")
    | st.characters(codec="utf-8", exclude_characters="\x03\x13"),
    max_size=30,
)


@settings(max_examples=40)
@given(st.lists(CHUNKS, max_size=5))
def test_no_keys_break_a_prompt_or_the_terminal(chunks: list[str]) -> None:
    async def type_all(person: Person) -> None:
        form = Form(EVERY_KIND)

        async def walk() -> None:
            with suppress(FormError), opened(person.slave) as (stdin, stdout):
                await Console(TtyPrompts(stdin, stdout)).ask(form)

        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(walk)
                await person.sees("?")
                for chunk in chunks:
                    person.types(chunk)
                    with trio.move_on_after(0.02):  # so that a part of the examples gets farther than the first field
                        await person.sees("?")
                form.destroy()

    with seated() as person:
        before = person.mode
        trio.run(type_all, person)
        assert_is_as_before(person, before)
