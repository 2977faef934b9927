"""Single questions, for clients and tools that know nothing else: what they become, and what comes back."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from greenroom.actors.bridge import question_routes
from greenroom.actors.toolbox.answer_question import answer_question_tool
from greenroom.actors.toolbox.ask_question import DESCRIPTION as HOW_TO_ASK
from greenroom.actors.toolbox.ask_question import ask_question_tool
from greenroom.actors.toolbox.describe import describe_tool
from greenroom.protocol.errors import FormError, ToolDeadlock, ToolError
from greenroom.protocol.forms import Form, FormFailure, FormSuccess, parse_form, serialize_form
from greenroom.protocol.questions import (
    Kind,
    Question,
    QuestionChoice,
    QuestionOptions,
    QuestionRules,
    answer_values,
    coerce_answer,
    question_schema,
    read_question,
)
from greenroom.protocol.schemas import advertising_faults
from greenroom.protocol.terminals import PendingForm
from greenroom.runtime.tools import ToolManager
from tests.bridge.conftest import Bridge

wait = trio.testing.wait_all_tasks_blocked

CHOICES = [{"name": "A", "value": "a"}, {"name": "B", "value": "b", "description": "the second"}]
KINDS: list[Kind] = ["input", "password", "confirm", "select", "checkbox", "editor"]


# -------------------------------------------------------------------- reading an answer


@pytest.mark.case("terminals", 38)
@pytest.mark.parametrize(
    ("kind", "value", "answer"),
    [
        ("confirm", True, True),
        ("confirm", False, False),
        ("confirm", "False", False),
        ("confirm", " TRUE\n", True),
        ("confirm", "yes", True),
        ("confirm", "no", True),
        ("confirm", " ", True),
        ("confirm", "", False),
        ("confirm", 0, False),
        ("confirm", -0.0, False),
        ("confirm", math.nan, False),
        ("confirm", 2, True),
        ("confirm", None, False),
        ("confirm", [], True),
        ("confirm", {}, True),
        ("checkbox", "a, b , c", ["a", "b", "c"]),
        ("checkbox", "a,,", ["a", "", ""]),
        ("checkbox", ",", ["", ""]),
        ("checkbox", "solo", ["solo"]),
        ("checkbox", " solo ", [" solo "]),
        ("checkbox", "", [""]),
        ("checkbox", [1, True, None, "a,b", 2.5], ["1", "true", "null", "a,b", "2.5"]),
        ("checkbox", [], []),
        ("checkbox", 5, ["5"]),
        ("checkbox", False, ["false"]),
        ("input", "as, it is ", "as, it is "),
        ("input", 42, "42"),
        ("input", 42.0, "42"),
        ("input", 1e21, "1e+21"),
        ("input", math.inf, "Infinity"),
        ("input", -math.inf, "-Infinity"),
        ("input", math.nan, "NaN"),
        ("input", 10**400, "Infinity"),
        ("input", True, "true"),
        ("input", None, "null"),
        ("input", {}, ""),
        ("input", ["a"], ""),
        ("select", 1, "1"),
        ("password", False, "false"),
        ("editor", {"a": 1}, ""),
    ],
)
def test_an_answer_is_read_as_what_the_question_wants(kind: Kind, value: object, answer: object) -> None:
    read = coerce_answer(kind, value)
    assert (type(read), read) == (type(answer), answer)


@given(
    st.sampled_from(KINDS),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    ),
)
def test_anything_is_read_as_something(kind: Kind, value: object) -> None:
    read = coerce_answer(kind, value)
    kinds: dict[str, type[Any]] = {"confirm": bool, "checkbox": list}
    assert type(read) is kinds.get(kind, str)
    assert coerce_answer(kind, read) == read
    assert answer_values(read) is not None


# -------------------------------------------------------------------- questions as forms


def asked(kind: Kind, **options: Any) -> Form:
    given = msgspec.convert({"message": "m", **options}, QuestionOptions)
    return Form(question_schema(Question(kind, given)))


def field_of(form: Form) -> dict[str, Any]:
    field: dict[str, Any]
    (field,) = serialize_form(form.schema)["fields"]
    return field


def accepts(form: Form, value: object) -> bool:
    """Whether the form takes this as its answer."""
    values = answer_values(value)
    if values is None:
        return False
    try:
        form.fill(values)
    except FormError:
        return False
    return isinstance(form.submit(), FormSuccess)


@pytest.mark.parametrize(
    ("kind", "options", "field"),
    [
        ("input", {"default": "d"}, {"control": "text", "default": "d"}),
        ("editor", {"default": "d"}, {"control": "editor", "default": "d"}),
        ("password", {"mask": "#", "default": "d"}, {"control": "password", "mask": "#"}),
        ("confirm", {}, {"control": "confirm"}),
        ("confirm", {"default": "true"}, {"control": "confirm", "default": True}),
        ("confirm", {"default": "True"}, {"control": "confirm", "default": False}),
        ("confirm", {"default": "no"}, {"control": "confirm", "default": False}),
        ("select", {"choices": CHOICES, "default": "b"}, {"control": "select", "default": "b"}),
        ("select", {"choices": CHOICES, "default": "B"}, {"control": "select"}),
        ("checkbox", {"choices": CHOICES, "min": 1, "max": 2, "default": "a"}, {"control": "checkbox"}),
    ],
)
def test_a_question_is_a_form_of_one_field(kind: Kind, options: dict[str, Any], field: dict[str, Any]) -> None:
    found = field_of(asked(kind, **options))
    rule: dict[str, Any] = {"required": True}
    if kind == "checkbox":
        rule |= {"minimum": 1, "maximum": 2}
    choices = {}
    if "choices" in options:
        choices = {"choices": [{"value": "a", "label": "A"}, {"value": "b", "label": "B", "help": "the second"}]}
    assert found == {"name": "value", "label": "m", "rule": rule, **choices, **field}


@pytest.mark.parametrize(
    ("rules", "taken", "refused"),
    [
        ({}, ["", " ", "x"], []),
        ({"required": True}, ["x", " x "], ["", " ", "\t\u3000\ufeff"]),
        ({"required": False, "url": False}, [""], []),
        ({"minimum": 2, "maximum": 3}, ["ab", "abc", "😀😀", "😀😀😀"], ["a", "abcd", "😀"]),
        ({"minimum": 0}, [""], []),
        ({"pattern": "b$"}, ["ab"], ["ba"]),
        ({"email": True}, ["a@b.c"], ["a@b", ""]),
        (
            {"url": True},
            ["http://x", "https://x y", "http:// "],
            ["http://", "HTTP://x", "x http://y", "https://\n"],
        ),
        ({"numeric": True}, ["5", "-5", "5.25", "05"], ["+5", "5.", ".5", "1e3", "", " 5", "٥"]),
        ({"integer": True}, ["5", "-5", "05"], ["+5", "5.0", "", "٥", "5\n"]),
        ({"alphanumeric": True}, ["aZ09"], ["", "a b", "é"]),
    ],
)
@pytest.mark.parametrize("kind", ["input", "password", "editor"])
def test_rules_mean_what_they_always_meant(
    kind: Kind, rules: dict[str, Any], taken: list[str], refused: list[str]
) -> None:
    for text in taken:
        assert accepts(asked(kind, validate=rules), text), text
    for text in refused:
        assert not accepts(asked(kind, validate=rules), text), text


def test_one_failure_of_the_older_rules_is_told_at_a_time() -> None:
    form = asked("input", validate={"required": True, "minimum": 2, "url": True, "numeric": True, "integer": True})
    for text, message in (
        ("", "Answer"),
        (" ", "Answer"),
        ("x", "at least 2"),
        ("xx", "http"),
        ("http://x", "a number"),
    ):
        form.fill("value", text)
        result = form.submit()
        assert isinstance(result, FormFailure)
        assert len(result.error) == 1
        assert message in result.error[0].message


def test_rules_do_not_apply_to_what_is_no_text() -> None:
    assert accepts(asked("confirm", validate={"minimum": 9}), False)
    assert accepts(asked("select", choices=CHOICES, validate={"minimum": 9}), "a")


def test_a_choice_that_is_ticked_twice_counts_once() -> None:
    assert accepts(asked("checkbox", choices=CHOICES, max=1), ["a", "a"])
    assert not accepts(asked("checkbox", choices=CHOICES, max=1), ["a", "b"])
    assert not accepts(asked("checkbox", choices=CHOICES, min=2), ["a", "a"])
    assert not accepts(asked("checkbox", choices=CHOICES), ["c"])
    assert accepts(asked("checkbox", choices=CHOICES), [])


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("confirm", "true"),
        ("confirm", 1),
        ("select", "c"),
        ("select", ["a"]),
        ("input", 5),
        ("input", None),
        ("input", {}),
    ],
)
def test_nothing_is_read_as_something_else_over_the_wire(kind: Kind, value: object) -> None:
    assert not accepts(asked(kind, choices=CHOICES), value)


# -------------------------------------------------------------------- forms as questions


def record(schema: Any, **members: Any) -> PendingForm:
    parsed = parse_form(schema)
    assert parsed is not None
    return PendingForm(id="i", schema=parsed, status="pending", time=5, **members)


OPTIONS: list[tuple[Kind, dict[str, Any]]] = [
    ("input", {"default": "d", "validate": {"required": True, "minimum": 2, "pattern": "x", "url": True}}),
    ("input", {}),
    ("password", {"mask": "*", "validate": {"numeric": True}}),
    ("editor", {"validate": {"email": True, "integer": True}}),
    ("confirm", {"default": True}),
    ("select", {"default": "a", "choices": CHOICES}),
    ("checkbox", {"choices": CHOICES, "min": 0, "max": 1}),
    ("checkbox", {"choices": CHOICES}),
]


@pytest.mark.parametrize(("kind", "options"), OPTIONS)
def test_a_question_is_shown_as_it_was_put(kind: Kind, options: dict[str, Any]) -> None:
    shown = read_question(record(serialize_form(asked(kind, **options).schema), from_="a", to="ops"))
    assert msgspec.json.encode(shown).decode() == json.dumps(
        {
            "id": "i",
            "form": kind,
            "message": "m",
            "options": {"message": "m", **options},
            "status": "pending",
            "time": 5,
            "from": "a",
            "to": "ops",
        },
        separators=(",", ":"),
    )


@pytest.mark.parametrize(
    "schema",
    [
        {"fields": []},
        {"fields": [{"control": "text", "name": "x"}]},
        {"fields": [{"control": "number", "name": "value"}]},
        {"fields": [{"control": "text", "name": "value", "hidden": True}]},
        {"fields": [{"control": "text", "name": "value", "disabled": True}]},
        {"fields": [{"control": "text", "name": "value", "locked": True}]},
        {"fields": [{"control": "text", "name": "value"}, {"control": "text", "name": "x"}]},
    ],
)
def test_a_form_that_a_bare_value_cannot_answer_is_no_question(schema: dict[str, Any]) -> None:
    assert read_question(record(schema)) is None


def test_a_form_that_was_asked_as_such_is_a_question_if_it_can_be_one() -> None:
    field: dict[str, Any] = {
        "control": "text",
        "name": "value",
        "rule": {"required": True, "minimum": 2, "email": True},
    }
    shown = read_question(record({"fields": [field]}))
    assert shown is not None
    assert shown.message == "value"
    assert shown.options.validate == QuestionRules(minimum=2, email=True)
    field = {
        "control": "select",
        "name": "value",
        "choices": [{"value": "a", "label": "A", "disabled": True}],
        "open": True,
    }
    shown = read_question(record({"fields": [field]}))
    assert shown is not None
    assert shown.options.choices == ()


@pytest.mark.parametrize("meta", [{}, {"validate": 5}, {"validate": {"minimum": -1}}, {"validate": {"required": "x"}}])
def test_a_meta_of_somebody_elses_is_not_taken_for_rules(meta: dict[str, Any]) -> None:
    field = {"control": "text", "name": "value", "meta": meta, "rule": {"pattern": "p"}}
    shown = read_question(record({"fields": [field]}))
    assert shown is not None
    assert shown.options.validate == QuestionRules(pattern="p")


def test_a_meta_cannot_make_a_question_look_like_another() -> None:
    options = {"message": "Really delete?", "choices": [{"name": "No", "value": "a"}]}
    field = {"control": "confirm", "name": "value", "label": "Keep it?", "meta": {"validate": {}, "question": options}}
    shown = read_question(record({"fields": [field]}))
    assert shown is not None
    assert shown.options == QuestionOptions(message="Keep it?")


# -------------------------------------------------------------------- the older wire


@pytest.fixture
async def older(bridge: Bridge) -> Bridge:
    bridge.routes(question_routes(bridge.terminals))
    return bridge


def question(kind: Kind = "input", **options: Any) -> Form:
    return asked(kind, **options)


async def test_a_stream_tells_of_questions_and_of_nothing_else(older: Bridge) -> None:
    reader = await older.connect()
    await older.ask(question(validate={"required": True}))
    (shown,) = older.terminals.pending()
    expected = (
        f'event: pending\nid: {shown.id}\ndata: {{"id":"{shown.id}","form":"input","message":"m","options":'
        f'{{"message":"m","validate":{{"required":true}}}},"status":"pending","time":{shown.time},"from":"a","to":"ops"}}'
        "\n\n"
    ).encode()
    assert reader.new() == expected
    assert (await older.connect()).new() == expected
    await older.ask({"fields": []}, from_="b")
    await older.ops.stop()
    await wait()
    assert reader.new() == f'event: expire\ndata: {{"id":"{shown.id}"}}\n\n'.encode()


async def test_an_answer_is_a_bare_value(older: Bridge) -> None:
    for kind, options, refused, value in (
        ("input", {"validate": {"integer": True}}, "+5", "-5"),
        ("confirm", {}, "true", False),
        ("select", {"choices": CHOICES}, "c", "b"),
        ("checkbox", {"choices": CHOICES, "max": 1}, ["a", "b"], ["a", "a"]),
    ):
        waiting = await older.ask(question(kind, **options))  # type: ignore[arg-type]
        id = older.the_id()
        assert await older.post({"id": id, "value": refused}) == (422, "rejected")
        assert await older.post({"id": id, "value": {"no": "value"}}) == (422, "rejected")
        assert await older.post({"id": id, "value": value}) == (204, None)
        assert await older.post({"id": id, "value": value}) == (422, "unknown")
        assert waiting.values == {"value": ["a"] if isinstance(value, list) else value}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"\xff", 400),
        (b"NaN", 400),
        (b"[]", 422),
        (b"{}", 422),
        (b'{"id":"x"}', 422),
        (b'{"id":"","value":1}', 422),
        (b'{"id":1,"value":1}', 422),
        (b" " * 1_048_577, 413),
    ],
)
async def test_a_body_of_another_shape_is_refused_without_words(older: Bridge, body: bytes, status: int) -> None:
    assert await older.post(body) == (status, None)


async def test_what_is_no_question_cannot_be_answered_here(older: Bridge) -> None:
    asked = await older.ask()
    assert await older.post({"id": older.the_id(), "value": "v"}) == (422, "unknown")
    assert await older.post({"id": "never", "value": "v"}) == (422, "unknown")
    assert (await older.post({"id": "x", "value": 1}, "nobody")) == (404, None)
    assert asked.values is None


async def test_text_without_utf8_is_no_answer(older: Bridge) -> None:
    await older.ask(question())
    body = b'{"id":"%b","value":"\\ud800"}' % older.the_id().encode()
    assert await older.post(body) == (422, None)
    assert len(older.terminals.pending()) == 1


async def test_a_terminal_that_vanishes_is_told_of_in_the_older_word(older: Bridge) -> None:
    await older.ask(question())
    id = older.the_id()

    def remove() -> None:
        older.nursery.start_soon(older.terminals.remove, "ops")

    body = json.dumps({"id": id, "value": "v"}).encode()
    pieces = [body[:3], b"", b"", b"", body[3:]]
    assert await older.post(pieces, between=remove) == (404, "terminal")


async def test_a_form_client_can_answer_a_question_and_is_told_the_rule(bridge: Bridge) -> None:
    waiting = await bridge.ask(question(validate={"required": True, "numeric": True}))
    id = bridge.the_id()
    status, told = await bridge.post({"id": id, "values": {"value": "x"}})
    assert (status, told["error"]["errors"]) == (422, [{"field": "value", "message": "Enter a number."}])
    assert (await bridge.post({"id": id, "values": {}}))[0] == 422
    assert (await bridge.post({"id": id, "values": {"value": "1.5"}}))[0] == 200
    assert waiting.values == {"value": "1.5"}


# -------------------------------------------------------------------- the older tools


class Answering:
    """Both tools, and a call of the first beside the test."""

    def __init__(self, bridge: Bridge) -> None:
        self.bridge = bridge
        self.returned: list[Any] = []
        self.ask_tool = ask_question_tool(bridge.terminals, "a")
        self.answer_tool = answer_question_tool(bridge.terminals, "ops")

    async def ask(self, form: str = "input", **arguments: Any) -> None:
        async def run() -> None:
            try:
                self.returned.append(
                    await self.ask_tool.execute({"to": "ops", "form": form, "message": "m", **arguments})
                )
            except ToolError as error:
                self.returned.append(error)

        self.bridge.nursery.start_soon(run)
        await wait()

    async def pending(self) -> Any:
        return await self.answer_tool.execute({"operation": "pending"})

    async def answer(self, value: Any, id: str | None = None) -> Any:
        told = id if id is not None else self.bridge.the_id()
        returned = await self.answer_tool.execute({"operation": "answer", "id": told, "value": value})
        await wait()
        return returned

    async def refused(self, value: Any, id: str | None = None) -> ToolError:
        with pytest.raises(ToolError) as raised:
            await self.answer(value, id)
        return raised.value


@pytest.fixture
async def tools(bridge: Bridge) -> Answering:
    return Answering(bridge)


@pytest.mark.parametrize(
    ("arguments", "value", "answer"),
    [
        ({"form": "input"}, "v", "v"),
        ({"form": "input"}, 42, "42"),
        ({"form": "password"}, "secret", "secret"),
        ({"form": "editor", "validate": {"minimum": 1}}, "a\nb", "a\nb"),
        ({"form": "confirm"}, "False", False),
        ({"form": "confirm"}, "no", True),
        ({"form": "confirm"}, True, True),
        ({"form": "select", "choices": CHOICES}, "b", "b"),
        ({"form": "checkbox", "choices": CHOICES}, "a, b", ["a", "b"]),
        ({"form": "checkbox", "choices": CHOICES}, ["b", "b"], ["b"]),
    ],
)
async def test_a_question_returns_its_bare_answer(
    tools: Answering, arguments: dict[str, Any], value: object, answer: object
) -> None:
    await tools.ask(**arguments, extra="dropped")
    id = tools.bridge.the_id()
    (listed,) = await tools.pending()
    offered = {"choices": ["a", "b"]} if "choices" in arguments else {}
    assert listed == {"id": id, "from": "a", "form": arguments["form"], "message": "m", **offered}
    assert await tools.answer(value) == {"answered": id}
    assert tools.returned == [answer]
    assert await tools.pending() == []


async def test_a_refused_answer_says_why_and_the_question_stays(tools: Answering) -> None:
    await tools.ask("select", choices=CHOICES)
    id = tools.bridge.the_id()
    error = await tools.refused("c")
    assert (error.code, error.context) == ("ANSWER", {"id": id, "reason": "rejected"})
    error = await tools.refused("a", "other")
    assert (error.code, error.context) == ("ANSWER", {"id": "other", "reason": "unknown"})
    assert await tools.answer("a") == {"answered": id}
    error = await tools.refused("a", id)
    assert error.context == {"id": id, "reason": "unknown"}


async def test_a_form_that_is_no_question_is_not_seen(tools: Answering) -> None:
    await tools.bridge.ask()
    assert await tools.pending() == []
    assert (await tools.refused("v")).context["reason"] == "unknown"


@pytest.mark.parametrize(
    "arguments",
    [
        {"form": "wizard"},
        {"form": "select"},
        {"form": "checkbox", "choices": []},
        {"form": "input", "message": ""},
        {"form": "input", "to": ""},
        {"form": "checkbox", "choices": CHOICES, "min": -1},
        {"form": "checkbox", "choices": CHOICES, "min": 2, "max": 1},
        {"form": "select", "choices": [*CHOICES, *CHOICES]},
        {"form": "input", "validate": {"pattern": "("}},
        {"form": "input", "validate": {"pattern": "(?=a)"}},
        {"form": "input", "validate": {"minimum": 1.5}},
        {"form": "input", "timeout": -1},
        {"form": "input", "to": "nobody"},
    ],
)
async def test_a_question_with_a_fault_is_not_asked(tools: Answering, arguments: dict[str, Any]) -> None:
    await tools.ask(**arguments)
    (error,) = tools.returned
    assert isinstance(error, ToolError)
    assert error.code == "TOOL"
    assert tools.bridge.terminals.pending() == []


async def test_a_question_expires_by_its_own_timeout(tools: Answering, autojump_clock: MockClock) -> None:
    await tools.ask(timeout=1500)
    await trio.sleep(2)
    (error,) = tools.returned
    assert (error.code, error.context) == ("EXPIRE", {"reason": "timeout", "to": "ops"})
    await tools.ask(timeout=0)
    await trio.sleep(299)
    assert len(tools.returned) == 1
    await trio.sleep(2)
    assert len(tools.returned) == 2


async def test_a_question_that_would_close_a_circle_is_refused(tools: Answering) -> None:
    await tools.ask()
    backwards = ask_question_tool(tools.bridge.terminals, "ops")
    tools.bridge.terminals.add("a")
    with pytest.raises(ToolDeadlock) as raised:
        await backwards.execute({"to": "a", "form": "input", "message": "m"})
    assert raised.value.path == ["ops", "a", "ops"]


async def test_a_question_whose_terminal_goes_is_unknown_and_expires(tools: Answering) -> None:
    await tools.ask()
    id = tools.bridge.the_id()
    await tools.bridge.terminals.remove("ops")
    assert (await tools.refused("v", id)).context == {"id": id, "reason": "unknown"}
    await wait()
    (error,) = tools.returned
    assert (error.code, error.context["reason"]) == ("EXPIRE", "removed")


async def test_the_tools_can_be_shown_to_any_model_and_point_at_their_descriptions(tools: Answering) -> None:
    registry = ToolManager()
    registry.add([describe_tool(registry), tools.ask_tool, tools.answer_tool])
    for definition in registry.definitions():
        assert advertising_faults(definition.parameters) == []
    for tool in (tools.ask_tool, tools.answer_tool):
        assert f"describe('{tool.name}')" in (tool.summary or "")


async def test_the_example_of_the_tool_can_be_asked(tools: Answering) -> None:
    example, returned = HOW_TO_ASK.partition("Example: ")[2].partition(" returns ")[::2]
    arguments = json.loads(example) | {"to": "ops"}
    await tools.ask(arguments.pop("form"), **arguments)
    await tools.answer(json.loads(returned.partition(".")[0]))
    assert tools.returned == [json.loads(returned.partition(".")[0])]


def test_a_choice_needs_no_description() -> None:
    assert msgspec.to_builtins(QuestionChoice("A", "a")) == {"name": "A", "value": "a"}
