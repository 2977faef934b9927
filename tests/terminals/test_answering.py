"""Answering a parked form: it decides, and what is refused leaves it as open as before."""

from __future__ import annotations

from typing import Any

import pytest
import trio.testing

from greenroom.protocol.forms import FieldRule, Form, FormSchema, TextField
from greenroom.protocol.terminals import AnswerFailure, AnswerSuccess
from tests.terminals.conftest import NEED_X, Room

ABC = {
    "fields": [
        {"control": "text", "name": "a"},
        {"control": "number", "name": "b"},
        {"control": "text", "name": "c", "rule": {"required": True}},
    ]
}


def reason(result: Any) -> str:
    assert isinstance(result, AnswerFailure), result
    return result.error.reason


def errors(result: Any) -> list[tuple[str, Any]]:
    assert isinstance(result, AnswerFailure), result
    assert isinstance(result.error.errors, tuple)
    return [(error.field, error.rule if isinstance(error.rule, str) else None) for error in result.error.errors]


@pytest.mark.case("terminals", 1)
async def test_the_first_value_a_field_cannot_hold_stops_the_answer_and_keeps_what_came_before(room: Room) -> None:
    room.mount("x", "y")
    asked = await room.ask("x", "y", ABC)
    result = await room.answer("y", {"a": "1", "b": "old", "c": "z"})
    assert errors(result) == [("b", None)]
    assert asked.form.values == {"a": "1"}


@pytest.mark.case("terminals", 2)
async def test_a_field_that_the_form_lacks_is_named(room: Room) -> None:
    room.mount("x", "y")
    await room.ask("x", "y", ABC)
    assert errors(await room.answer("y", {"zzz": 1})) == [("zzz", None)]


@pytest.mark.case("terminals", 3)
async def test_a_retry_needs_only_what_was_missing_and_the_first_accepted_answer_is_the_last(room: Room) -> None:
    room.mount("x", "y")
    asked = await room.ask("x", "y", ABC)
    id = room.the_id("y")
    await room.answer("y", {"a": "1"})
    assert errors(await room.terminals.answer("y", id, {})) == [("c", "required")]
    assert await room.answer("y", {"c": "ok"}) == AnswerSuccess(value={"a": "1", "c": "ok"})
    assert asked.values == {"a": "1", "c": "ok"}
    assert reason(await room.terminals.answer("y", id, {"c": "ok"})) == "unknown"


async def test_a_whole_answer_writes_all_or_nothing(room: Room) -> None:
    room.mount("x", "y")
    asked = await room.ask("x", "y", ABC)
    assert errors(await room.answer("y", {"a": "1", "b": "old", "c": "z"}, whole=True)) == [("b", None)]
    assert errors(await room.answer("y", {"a": "1"}, whole=True)) == [("c", "required")]
    assert asked.form.values == {}
    assert await room.answer("y", {"c": "z"}, whole=True) == AnswerSuccess(value={"c": "z"})
    assert asked.values == {"c": "z"}


async def test_a_whole_answer_starts_from_the_values_at_parking_not_from_what_others_filled(room: Room) -> None:
    room.mount("x", "y")
    asked = await room.ask("x", "y", ABC)
    await room.answer("y", {"a": "somebody else's", "b": "old"})
    assert asked.form.values == {"a": "somebody else's"}
    assert await room.answer("y", {"c": "z"}, whole=True) == AnswerSuccess(value={"c": "z"})
    assert asked.values == {"c": "z"}


@pytest.mark.case("terminals", 4)
async def test_while_listeners_run_the_ticket_is_still_listed_with_its_last_status(room: Room) -> None:
    room.mount("y")
    terminal = room.terminals.terminal("y")
    assert terminal is not None
    seen: list[Any] = []

    def look(id: str, *_: Any) -> None:
        record = terminal.pending(id)
        seen.append((record and record.status, terminal.count))

    terminal.emitter.on("answer", look)
    terminal.emitter.on("expire", look)
    await room.ask("x", "y")
    await room.answer("y", {"x": "v"})
    await room.ask("x", "y")
    await terminal.stop(room.the_id("y"))
    assert seen == [("answered", 1), ("expired", 1)]
    assert terminal.count == 0


@pytest.mark.case("terminals", 5)
async def test_a_raising_rule_refuses_without_telling_what_it_raised(room: Room) -> None:
    def check(value: Any, values: Any) -> None:
        if value is not None:
            raise RuntimeError("the secret of the host")

    room.mount("y")
    form = Form(FormSchema(fields=(TextField(name="a", rule=FieldRule(custom=check)), TextField(name="b"))))
    asked = await room.ask("x", "y", form)
    result = await room.answer("y", {"a": "v"})
    assert errors(result) == [("a", None)]
    assert "secret" not in repr(result)
    assert asked.form.values == {"a": "v"}
    assert room.terminals.pending("y")[0].status == "pending"
    assert not asked.ended


@pytest.mark.case("terminals", 6)
async def test_a_form_without_fields_is_answered_by_nothing(room: Room) -> None:
    room.mount("y")
    asked = await room.ask("x", "y", {"fields": []})
    assert await room.answer("y", {}) == AnswerSuccess(value={})
    assert asked.values == {}


@pytest.mark.case("terminals", 7)
@pytest.mark.parametrize(
    ("schema", "field"), [(ABC, "a"), ({"name": "empty", "fields": []}, "empty"), ({"fields": []}, "form")]
)
async def test_a_form_that_was_settled_elsewhere_stays_listed_and_refuses(room: Room, schema: Any, field: str) -> None:
    room.mount("y")
    asked = await room.ask("x", "y", schema)
    if schema is ABC:
        asked.form.fill("c", "by its owner")
    assert asked.form.submit().success
    assert errors(await room.answer("y", {})) == [(field, None)]
    assert asked.values is not None
    assert len(room.terminals.pending("y")) == 1
    assert room.edges() == 0


async def test_an_unknown_terminal_is_a_reason_of_its_own(room: Room) -> None:
    assert reason(await room.terminals.answer("nobody", "id", {})) == "target"


@pytest.mark.case("reports/asking", 4)
async def test_two_asks_of_the_same_form_are_two_tickets_with_their_own_answers(room: Room) -> None:
    room.mount("b")
    schema = {"fields": [{"control": "text", "name": "v", "rule": {"required": True}}]}
    one, two = await room.ask("a", "b", schema), await room.ask("a", "b", schema)
    first, second = room.terminals.pending("b")
    assert first.id != second.id
    await room.terminals.answer("b", second.id, {"v": "two"})
    await room.terminals.answer("b", first.id, {"v": "one"})
    await room.runtime.terminals.remove()
    assert one.values == {"v": "one"}
    assert two.values == {"v": "two"}


async def test_a_password_is_seen_by_the_asker_and_by_the_answerer_alone(room: Room) -> None:
    schema = {"fields": [{"control": "password", "name": "p"}, {"control": "text", "name": "t"}]}
    room.mount("y")
    terminal = room.terminals.terminal("y")
    assert terminal is not None
    own: list[Any] = []
    terminal.emitter.on("answer", lambda id, values: own.append(values))
    asked = await room.ask("x", "y", schema)
    result = await room.answer("y", {"p": "hunter2", "t": "ok"})
    assert result == AnswerSuccess(value={"p": "hunter2", "t": "ok"})
    assert asked.values == {"p": "hunter2", "t": "ok"}
    assert "hunter2" not in repr((own, room.events))
    assert own[0]["t"] == "ok"


async def test_what_was_withdrawn_is_unknown(room: Room) -> None:
    room.mount("y")
    asked = await room.ask("x", "y", NEED_X)
    id = room.the_id("y")
    asked.scope.cancel()
    assert reason(await room.terminals.answer("y", id, {"x": "late"})) == "unknown"


@pytest.mark.parametrize("values", [None, 5, "x", ["x"], [("x", "v")]])
@pytest.mark.parametrize("whole", [False, True])
async def test_values_that_are_no_mapping_are_refused_and_change_nothing(room: Room, values: Any, whole: bool) -> None:
    room.mount("y")
    asked = await room.ask("x", "y")
    result = await room.terminals.answer("y", room.the_id("y"), values, whole=whole)
    assert isinstance(result, AnswerFailure)
    assert result.error.reason == "rejected"
    assert isinstance(result.error.errors, tuple)
    assert [error.field for error in result.error.errors] == ["x"]
    assert not asked.ended
    await room.answer("y", {"x": "v"})
    assert asked.values == {"x": "v"}


@pytest.mark.parametrize("name", [None, 5, ["y"]])
async def test_a_name_or_an_id_of_another_type_is_unknown(room: Room, name: Any) -> None:
    room.mount("y")
    await room.ask("x", "y")
    reasons = [
        result.error.reason
        for result in (await room.terminals.answer(name, "id", {}), await room.terminals.answer("y", name, {}))
        if isinstance(result, AnswerFailure)
    ]
    assert reasons == ["target", "unknown"]


async def test_a_form_that_somebody_else_settled_keeps_its_place_until_it_is_answered_or_expires(room: Room) -> None:
    room.mount("y", cap=1)
    asked = await room.ask("x", "y")
    asked.form.fill("x", "v")
    asked.form.submit()
    await trio.testing.wait_all_tasks_blocked()
    assert asked.values == {"x": "v"}
    assert len(room.terminals.pending("y")) == 1
    late = await room.ask("x", "y")
    assert late.error is not None
    assert late.error.code == "LIMIT"
    terminal = room.terminals.terminal("y")
    assert terminal is not None
    await terminal.stop(room.the_id("y"))
    assert not (await room.ask("x", "y")).ended
