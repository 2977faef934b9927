"""The walk through a form: what is asked, in which order, what is asked again, and how it ends."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, cast

import pytest
import trio
import trio.testing

from greenroom.actors.console import Console, LinePrompts, Tone
from greenroom.protocol.errors import FormError, TerminalError
from greenroom.protocol.forms import Form, FormField, Value
from tests.console.piping import form_of, piped, walk

REQUIRED = {"required": True}


class Script:
    """Gives prepared answers, by the field's name, one after another.

    An exception is raised; a callable is called, and the answer is "late".
    """

    def __init__(self, **answers: list[Any]) -> None:
        self._answers = answers
        self.asked: list[str] = []
        self.said: list[tuple[str, Tone]] = []
        self.ended = False
        self.heard = True

    def begin(self) -> None:
        self.asked.clear()
        self.said.clear()

    def say(self, text: str, tone: Tone = "plain") -> None:
        self.said.append((text, tone))

    async def ask(self, field: FormField, held: Value | None) -> Value | None:
        self.asked.append(field.name)
        await trio.lowlevel.checkpoint()
        answer: Any = self._answers[field.name].pop(0)
        if isinstance(answer, Exception):
            raise answer
        if callable(answer):
            answer()
            return "late"
        return cast("Value | None", answer)

    async def wait_left(self) -> None:
        await trio.sleep_forever()


async def test_fields_are_asked_in_the_order_of_the_schema_and_their_values_come_back() -> None:
    done = await walk(form_of({"name": "b", "label": "Second"}, {"name": "a"}), "one\ntwo\nthree\n")
    assert done.values == {"b": "one", "a": "two"}
    assert done.lines == ["Second", "a"]
    assert done.left == "three\n"


async def test_nobody_is_told_that_an_answer_is_missing_before_they_were_asked_for_it() -> None:
    done = await walk(form_of({"label": "Name", "rule": REQUIRED}), "Ada\n")
    assert done.lines == ["Name"]


async def test_what_was_refused_before_is_said_first() -> None:
    form = Form(form_of({"label": "Name", "rule": {"minimum": 3}}, {"name": "y", "label": "Day"}), values={"x": "Al"})
    form.touch("x")
    form.invalidate("y", "Not on this day.")
    done = await walk(form, "Ada\nanother\n")
    assert done.lines[:2] == ["Name: Write at least 3 characters.", "Day: Not on this day."]


@pytest.mark.case("forms", 38)
async def test_a_blank_at_a_required_field_is_no_answer_and_is_asked_again() -> None:
    for blank in ("", "  ", "\t\u00a0"):
        done = await walk(form_of({"rule": REQUIRED}), f"{blank}\nAda\n")
        assert done.values == {"x": "Ada"}
        assert done.lines == ["x", "x: Answer this question.", "x"]


@pytest.mark.case("forms", 38)
async def test_what_a_control_cannot_hold_is_said_and_asked_again() -> None:
    done = await walk(form_of({"control": "number", "default": 7}), "old\n42\n")
    assert done.values == {"x": 42}
    assert done.lines == ["x (number) [7]", "x: Enter a number, such as 12 or 0.5.", "x (number) [7]"]


async def test_only_what_was_refused_is_asked_again_each_field_once() -> None:
    script = Script(a=["1"], b=["!", "22"], c=["x"], d=[None, "3"])
    form = Form(
        form_of(
            {"name": "a"},
            {"name": "b", "rule": {"minimum": 2, "alphanumeric": True}},
            {"name": "c"},
            {"name": "d", "rule": REQUIRED},
        )
    )
    assert await Console(script).ask(form) == {"a": "1", "b": "22", "c": "x", "d": "3"}
    assert script.asked == ["a", "b", "c", "d", "b", "d"]


async def test_failures_told_from_outside_are_asked_in_the_order_of_the_errors() -> None:
    script = Script(a=["x", 1], b=[None, "y"], n=["0"])
    form = Form(
        form_of({"control": "number", "name": "a"}, {"name": "n"}, {"name": "b", "rule": REQUIRED}),
    )
    assert await Console(script).ask(form) == {"a": 1, "n": "0", "b": "y"}
    assert script.asked == ["a", "n", "b", "b", "a"]


async def test_hidden_and_disabled_fields_are_not_asked_and_locked_ones_are_only_shown() -> None:
    form = Form(
        form_of(
            {"name": "h", "hidden": True, "default": "kept"},
            {"name": "d", "disabled": True, "default": "not sent"},
            {"name": "l", "label": "Version", "locked": True, "default": "4.2"},
            {
                "control": "checkbox",
                "name": "m",
                "locked": True,
                "default": ["a", "b"],
                "choices": [{"value": "a", "label": "A"}, {"value": "b", "label": "B"}],
            },
            {"control": "confirm", "name": "n", "locked": True},
            {"control": "number", "name": "o", "locked": True, "default": 5.0},
        )
    )
    done = await walk(form, "")
    assert done.values == {"h": "kept", "l": "4.2", "m": ["a", "b"], "o": 5}
    assert done.lines == ["Version (locked) 4.2", "m (locked) a, b", "n (locked) ", "o (locked) 5"]


async def test_a_field_that_is_disabled_meanwhile_is_not_asked() -> None:
    form = Form(form_of({"name": "a"}, {"name": "b"}))
    script = Script(a=[lambda: form.disable("b")])
    assert await Console(script).ask(form) == {"a": "late"}


async def test_a_group_is_announced_on_entering_it() -> None:
    done = await walk(
        form_of(
            {"name": "a", "group": "one"},
            {"name": "b", "group": "one"},
            {"name": "c"},
            {"name": "d", "group": "two", "help": "Of the field."},
            groups=[{"name": "one", "label": "First"}, {"name": "two", "label": "Second", "help": "Of the group."}],
        ),
        "\n\n\n\n",
    )
    assert done.lines == ["First", "a", "b", "c", "Second", "Of the group.", "Of the field.", "d"]


@pytest.mark.case("forms", 39)
@pytest.mark.parametrize("flag", ["hidden", "locked"])
async def test_a_form_that_only_others_could_repair_is_abandoned(flag: str) -> None:
    form = Form(form_of({"name": "a"}, {"name": "b", "label": "B", flag: True, "rule": REQUIRED}))
    out = io.StringIO()
    with piped("1\nmore\n") as reader, pytest.raises(FormError) as caught:
        await Console(LinePrompts(reader, out)).ask(form)
    assert caught.value.code == "ABANDONED"
    assert form.status == "abandoned"
    assert out.getvalue().splitlines()[-1] == "B: Answer this question."


@pytest.mark.case("forms", 40)
async def test_one_line_answers_one_field() -> None:
    choices = [{"value": "first", "label": "First"}, {"value": "second", "label": "Second"}]
    done = await walk(
        form_of(
            {"name": "name"},
            {"control": "select", "name": "one", "choices": choices},
            {"control": "checkbox", "name": "many", "choices": choices},
            {"control": "file", "name": "files", "multiple": True},
        ),
        "Ada\n2\n1,2\none.txt\n\n",
    )
    assert done.values == {"name": "Ada", "one": "second", "many": ["first", "second"], "files": ["one.txt"]}


@pytest.mark.parametrize("control", ["text", "confirm", "editor", "file", "checkbox"])
async def test_the_end_of_the_input_is_no_answer_to_a_field_that_would_take_a_blank(control: str) -> None:
    field = {"control": control, "name": "b", "label": "B", **({"choices": []} if control == "checkbox" else {})}
    form = Form(form_of({"name": "a"}, field))
    with pytest.raises(FormError, match="taken away"):
        await walk(form, "1\n")
    assert form.status == "abandoned"
    assert (await walk(form_of({"name": "a"}, field), "1\n\n")).values["a"] == "1"


async def test_a_form_is_abandoned_when_the_input_has_ended_and_something_is_refused() -> None:
    form = Form(form_of({"rule": REQUIRED}))
    with pytest.raises(FormError, match="taken away"):
        await walk(form, "")
    assert form.status == "abandoned"


async def test_lines_that_were_read_ahead_are_used_before_it_is_given_up() -> None:
    done = await walk(form_of({"rule": {"minimum": 3}}), "a\nab\nabc")
    assert done.values == {"x": "abc"}


async def test_some_fields_alone_can_be_asked() -> None:
    form = Form(form_of({"name": "a"}, {"name": "b"}), values={"a": "kept"})
    form.invalidate("b", "Say more.")
    script = Script(b=["more"])
    assert await Console(script).ask(form, only={"b"}) == {"a": "kept", "b": "more"}
    assert script.said == [("b: Say more.", "failure")]


# -------------------------------------------------------------------- how it ends early


async def test_a_form_that_is_destroyed_ends_the_walk_at_once() -> None:
    form = Form(form_of({}))
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:

            async def destroy() -> None:
                await trio.testing.wait_all_tasks_blocked()
                form.destroy()

            nursery.start_soon(destroy)
            with pytest.raises(FormError) as caught:
                await Console(Waiting()).ask(form)
    assert caught.value.code == "ABANDONED"


class Waiting(Script):
    """Never answers."""

    async def ask(self, field: FormField, held: Value | None) -> Value | None:
        await trio.sleep_forever()


async def test_a_form_that_somebody_else_settles_ends_the_walk_with_those_values() -> None:
    form = Form(form_of({}))

    async def settle() -> None:
        await trio.testing.wait_all_tasks_blocked()
        form.fill("x", "from elsewhere")
        form.submit()

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(settle)
            assert await Console(Waiting()).ask(form) == {"x": "from elsewhere"}


@pytest.mark.parametrize("end", [Form.destroy, Form.submit], ids=["destroyed", "settled"])
async def test_an_answer_that_comes_together_with_the_end_is_not_written(end: Callable[[Form], object]) -> None:
    form = Form(form_of({}), values={"x": "before"})
    script = Script(x=[lambda: end(form)])
    if end is Form.submit:
        assert await Console(script).ask(form) == {"x": "before"}
    else:
        with pytest.raises(FormError):
            await Console(script).ask(form)
    assert form.values == {"x": "before"}


async def test_a_form_that_has_ended_before_is_not_asked() -> None:
    form = Form(form_of({}))
    form.destroy()
    with pytest.raises(FormError):
        await Console(Script()).ask(form)


async def test_ctrl_c_leaves_the_form_as_far_as_it_was_filled_in() -> None:
    form = Form(form_of({"name": "a"}, {"name": "b"}))
    script = Script(a=["1"], b=[TerminalError("CANCEL", "left")])
    with pytest.raises(TerminalError):
        await Console(script).ask(form)
    assert form.status == "editing"
    assert form.values == {"a": "1"}


async def test_a_cancelled_walk_leaves_the_form_as_far_as_it_was_filled_in(autojump_clock: object) -> None:
    form = Form(form_of({}))
    with trio.move_on_after(1) as scope:
        await Console(Waiting()).ask(form)
    assert scope.cancelled_caught
    assert form.status == "editing"
    assert form.outcome is None


async def test_what_a_custom_rule_raises_is_raised() -> None:
    def broken(value: object, values: object) -> str:
        if value == "boom":
            raise ZeroDivisionError
        return "no"

    with pytest.raises(ZeroDivisionError):
        await walk(Form({"fields": [{"control": "text", "name": "x", "rule": {"custom": broken}}]}), "boom\n")
