"""What may be posted to a terminal, and what is answered."""

from __future__ import annotations

import codecs
import json
import math
from typing import Any

import pytest
import trio

from greenroom.actors.bridge import RouteRequest, terminal_routes
from greenroom.protocol.forms import Form
from greenroom.protocol.sse import SSEParser
from greenroom.protocol.terminals import AnswerFailure
from tests.bridge.conftest import ONE_FIELD, Bridge, Pieces

NUMBER_AND_TEXT = {"fields": [{"control": "number", "name": "n"}, {"control": "text", "name": "t"}]}


@pytest.mark.case("terminals", 26)
@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        (b"", 400, None),
        (b" \n", 400, None),
        (b"{}", 422, None),
        (b"null", 422, None),
        (b"[]", 422, None),
        (b"1", 422, None),
        (b'{"id":"x"}', 422, None),
        (b'{"values":{}}', 422, None),
        (b'{"id":"","values":{}}', 422, None),
        (b'{"id":1,"values":{}}', 422, None),
        (b'{"id":null,"values":{}}', 422, None),
        (b'{"id":"x","values":[]}', 422, None),
        (b'{"id":"x","values":null}', 422, None),
        (b'{"id":"x","values":{"a":null}}', 422, None),
        (b'{"id":"x","values":{"a":{}}}', 422, None),
        (b'{"id":"x","values":{"a":[1]}}', 422, None),
        (b'{"id":"x","values":{"a":1e999}}', 422, None),
        (b'{"id":"x","values":{"a":-1e999}}', 422, None),
        (b'{"id":"x","values":{"a":%b}}' % (b"9" * 5000), 422, None),
        (b'{"id":"x","values":{"a":1%b}}' % (b"0" * 309), 422, None),
        (b'{"id":"x","values":{}}', 422, "unknown"),
        (b'{"id":"x","values":{"a":1%b}}' % (b"0" * 308), 422, "unknown"),
        (b'{"id":"x","values":{"a":1e-999}}', 422, "unknown"),
        (b'\xef\xbb\xbf{"id":"x","values":{}}', 422, "unknown"),
        (b'\xef\xbb\xbf\xef\xbb\xbf{"id":"x","values":{}}', 400, None),
        (b'{"id":"x","values":{},"more":null}', 422, "unknown"),
        (b'{"values":null,"id":"x","values":{}}', 422, "unknown"),
        (b'{"id":"x","values":{}}}', 400, None),
        (b"{'id':'x'}", 400, None),
        (b'{"id":"x","values":{},}', 400, None),
        (b'{"id":"a\nb","values":{}}', 400, None),
        (b"NaN", 400, None),
        (b'{"id":"x","values":{"a":NaN}}', 400, None),
        (b'{"id":"x","values":{"a":-Infinity}}', 400, None),
        (b"\xa0{}", 400, None),
        (b"[" * 400_000, 400, None),
        (b"[" * 200_000 + b"]" * 200_000, 400, None),
        (b'{"id":"x","values":{"a":%b%b}}' % (b"[" * 200_000, b"]" * 200_000), 400, None),
        (b'{"id":"x","values":{"a":%b%b}}' % (b"[" * 500, b"]" * 500), 422, None),
    ],
)
async def test_a_body_is_refused_for_what_is_wrong_with_it(bridge: Bridge, body: bytes, status: int, told: Any) -> None:
    assert await bridge.post(body) == (status, told and {"success": False, "error": {"reason": told}})


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"\xff", 400),
        (b'{"id":"%b","values":{"x":"\xff"}}', 400),
        (b'{"id":"%b","values":{"x":"\xed\xa0\x80"}}', 400),
        (b'{"id":"%b","values":{"x":"v"},"more":"\xc3"}', 400),
        (b'{"id":"%b","values":{"x":"\\ud800"}}', 422),
        (b'{"id":"%b","values":{"x":"v","\\ud800":"v"}}', 422),
        (b'{"id":"%b","values":{"x":["\\udfff"]}}', 422),
        (b'{"id":"%b\\ud800","values":{"x":"v"}}', 422),
    ],
)
async def test_text_without_utf8_is_refused_and_the_form_stays(bridge: Bridge, body: bytes, status: int) -> None:
    await bridge.ask()
    id = bridge.the_id()
    assert await bridge.post(body.replace(b"%b", id.encode())) == (status, None)
    assert await bridge.post(b'{"id":"%b","values":{"x":"\\ud83d\\ude00"},"more":"\\ud800"}' % id.encode()) == (
        200,
        {"success": True, "value": {"x": "😀"}},
    )


@pytest.mark.case("terminals", 27)
@pytest.mark.parametrize("length", [None, "5", "100000"])
async def test_more_than_the_limit_is_refused_whatever_the_length_is_said_to_be(
    bridge: Bridge, length: str | None
) -> None:
    bridge.routes(terminal_routes(bridge.terminals, limit=200))
    headers = () if length is None else (("content-length", length),)
    for pieces, status in [
        ([b"x" * 200], 400),
        ([b"x" * 201], 413),
        ([b"x"] * 200, 400),
        ([b"x"] * 201, 413),
        ([b"x" * 200, b""], 400),
    ]:
        request = RouteRequest(params={"name": "ops"}, headers=headers, body=Pieces(pieces))
        response = await bridge.post_route.handler(request)
        assert (response.status, response.body) == (status, b"")


async def test_nothing_is_read_beyond_the_limit(bridge: Bridge) -> None:
    bridge.routes(terminal_routes(bridge.terminals, limit=10))
    read: list[int] = []
    request = RouteRequest(params={"name": "ops"}, body=Pieces([b"x" * 4] * 1000, lambda: read.append(1)))
    assert (await bridge.post_route.handler(request)).status == 413
    assert len(read) == 3


@pytest.mark.parametrize(
    ("limit", "most"),
    [(10.7, 10), (0, 0), (-5, 0), (math.inf, 1_048_576), (math.nan, 1_048_576), (-math.inf, 1_048_576)],
)
async def test_a_limit_is_rounded_down_and_one_that_is_no_number_is_the_usual_one(
    bridge: Bridge, limit: float, most: int
) -> None:
    bridge.routes(terminal_routes(bridge.terminals, limit=limit))
    assert (await bridge.post(b" " * most))[0] == 400
    assert (await bridge.post(b" " * (most + 1)))[0] == 413


@pytest.mark.case("terminals", 28)
async def test_an_accepted_answer_is_told_as_ecmascript_writes_it(bridge: Bridge) -> None:
    asked = await bridge.ask(NUMBER_AND_TEXT)
    body = json.dumps({"id": bridge.the_id(), "values": {"n": 5.0, "t": "é/<"}}).encode()
    response = await bridge.post_route.handler(RouteRequest(params={"name": "ops"}, body=Pieces([body])))
    assert response.status == 200
    assert response.headers == (("Content-Type", "application/json"),)
    assert response.body == '{"success":true,"value":{"n":5,"t":"é/<"}}'.encode()
    await trio.testing.wait_all_tasks_blocked()
    assert asked.values == {"n": 5, "t": "é/<"}


@pytest.mark.case("reports/clients", 4)
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
async def test_separators_that_are_no_line_ends_come_through_unchanged(bridge: Bridge, end: str) -> None:
    text = "a\u2028b\u2029c\x85d\ve\ff\x1cg"
    reader = await bridge.connect()
    asked = await bridge.ask({"fields": [{"control": "text", "name": "x", "label": text}]})
    parser = SSEParser()
    decode = codecs.getincrementaldecoder("utf-8")().decode
    received = reader.bytes.replace(b"\n", end.encode())
    events = [event for byte in received for event in parser.parse(decode(bytes([byte])))]
    assert len(events) == 1
    assert json.loads(events[0].data)["schema"]["fields"][0]["label"] == text
    body = json.dumps({"id": bridge.the_id(), "values": {"x": text}}, ensure_ascii=False)
    # As a client sends it: U+2028 and U+0085 raw, the control characters escaped, as JSON wants them.
    assert await bridge.post(body.encode()) == (200, {"success": True, "value": {"x": text}})
    assert asked.values == {"x": text}


async def test_a_rejected_answer_tells_each_field_and_keeps_what_was_filled_in(bridge: Bridge) -> None:
    asked = await bridge.ask(
        {"fields": [{"control": "number", "name": "n", "rule": {"maximum": 9}}, *ONE_FIELD["fields"]]}
    )
    id = bridge.the_id()
    status, told = await bridge.post({"id": id, "values": {"n": 12}})
    assert status == 422
    assert (told["success"], told["error"]["reason"]) == (False, "rejected")
    assert [set(error) for error in told["error"]["errors"]] == [{"field", "message", "rule"}] * 2
    assert [(error["field"], error["rule"]) for error in told["error"]["errors"]] == [
        ("n", "maximum"),
        ("x", "required"),
    ]
    status, told = await bridge.post({"id": id, "values": {"n": 5, "x": 7}})
    assert [set(error) for error in told["error"]["errors"]] == [{"field", "message"}]
    assert await bridge.post({"id": id, "values": {"x": "v"}}) == (200, {"success": True, "value": {"n": 5, "x": "v"}})
    assert asked.values == {"n": 5, "x": "v"}
    assert await bridge.post({"id": id, "values": {"x": "v"}}) == (
        422,
        {"success": False, "error": {"reason": "unknown"}},
    )


async def test_values_are_not_read_as_something_else(bridge: Bridge) -> None:
    await bridge.ask(NUMBER_AND_TEXT)
    status, told = await bridge.post({"id": bridge.the_id(), "values": {"n": "42"}})
    assert (status, told["error"]["reason"]) == (422, "rejected")


async def test_a_raising_rule_tells_nothing_of_itself(bridge: Bridge) -> None:
    def custom(value: object, _: object) -> object:
        if value is not None:
            raise ValueError("secret detail")
        return None

    form = Form({"fields": [{"control": "text", "name": "x", "rule": {"custom": custom}}]})
    await bridge.ask(form)
    _, told = await bridge.post({"id": bridge.the_id(), "values": {"x": "v"}})
    assert told["error"]["errors"][0]["field"] == "x"
    assert "secret" not in json.dumps(told)


async def test_a_form_without_fields_is_answered_with_nothing(bridge: Bridge) -> None:
    await bridge.ask({"fields": []})
    assert await bridge.post({"id": bridge.the_id(), "values": {}}) == (200, {"success": True, "value": {}})


async def test_a_terminal_that_vanishes_while_the_body_comes_in_is_told_of(bridge: Bridge) -> None:
    await bridge.ask()
    id = bridge.the_id()
    ref = bridge.ops.ref

    def remove() -> None:
        bridge.nursery.start_soon(bridge.terminals.remove, "ops")

    body = json.dumps({"id": id, "values": {"x": "v"}}).encode()
    request = RouteRequest(params={"name": "ops"}, body=Pieces([body[:5], b"", b"", b"", body[5:]], remove))
    response = await bridge.post_route.handler(request)
    assert (response.status, response.body) == (404, b'{"success":false,"error":{"reason":"target"}}')
    assert not ref.alive


async def test_an_answer_to_another_terminal_is_unknown(bridge: Bridge) -> None:
    bridge.terminals.add("other")
    asked = await bridge.ask()
    status, told = await bridge.post({"id": bridge.the_id(), "values": {"x": "v"}}, "other")
    assert (status, told) == (422, {"success": False, "error": {"reason": "unknown"}})
    assert asked.values is None


async def test_two_answers_at_once_have_one_winner(bridge: Bridge) -> None:
    asked = await bridge.ask()
    id = bridge.the_id()
    told: list[tuple[int, Any]] = []

    async def answer(value: str) -> None:
        told.append(await bridge.post({"id": id, "values": {"x": value}}))

    async with trio.open_nursery() as nursery:
        for value in "ab":
            nursery.start_soon(answer, value)
    assert sorted(status for status, _ in told) == [200, 422]
    (accepted,) = [said for status, said in told if status == 200]
    assert asked.values == accepted["value"]


async def test_a_rejected_answer_over_the_bridge_does_not_show_through_elsewhere(bridge: Bridge) -> None:
    await bridge.ask(NUMBER_AND_TEXT)
    id = bridge.the_id()
    assert (await bridge.post({"id": id, "values": {"t": "kept", "n": "no"}}))[0] == 422
    result = await bridge.terminals.answer("ops", id, {"n": 1}, whole=True)
    assert not isinstance(result, AnswerFailure)
    assert result.value == {"n": 1}
