"""JSON-RPC messages: what is read of them, what is said of those that are none, and how what is sent is written."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.protocol.errors import (
    ActorError,
    FormError,
    GreenroomError,
    RpcError,
    TerminalDeadlock,
    TerminalError,
    ToolError,
    WorkflowError,
)
from greenroom.protocol.rpc import (
    AnswerForm,
    AskTerminal,
    Failure,
    Params,
    error_of,
    failure_of,
    frames,
)
from greenroom.protocol.rpc.results import read_answer, read_tool_result
from greenroom.protocol.terminals import AnswerFailure, AnswerSuccess
from greenroom.protocol.tools import ToolFailure, ToolSuccess

HEAD = '{"jsonrpc":"2.0","id":1,"method":"terminal/list"'


def only(text: str | bytes) -> frames.Request | frames.Malformed:
    frame = frames.read_frame(text)
    assert not frame.batch
    (entry,) = frame.entries
    return entry


def refused(text: str | bytes) -> tuple[str, Any, dict[str, Any]]:
    entry = only(text)
    assert isinstance(entry, frames.Malformed), entry
    return entry.error.code, entry.id, entry.error.context


# -------------------------------------------------------------------- reading requests


@pytest.mark.parametrize("id", [1, 0, -5, "", "a", "é" * 256, 2**53 - 1])
def test_a_request_is_read_with_its_id(id: object) -> None:
    entry = only(json.dumps({"jsonrpc": "2.0", "id": id, "method": "x", "params": {"a": 1}, "extra": True}))
    assert isinstance(entry, frames.Request)
    assert (entry.id, entry.method) == (id, "x")
    assert msgspec.json.decode(entry.params) == {"a": 1}


def test_a_request_without_an_id_is_a_notification_and_params_may_be_absent() -> None:
    entry = only('{"jsonrpc":"2.0","method":"x"}')
    assert isinstance(entry, frames.Request)
    assert entry.id is msgspec.UNSET
    assert bytes(entry.params) == b"{}"


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "{",
        "nonsense",
        "NaN",
        "\ufeff" + HEAD + "}",
        HEAD + "} trailing",
        HEAD + ',"params":{"a":NaN}}',
        HEAD + ',"params":{"a":01}}',
        HEAD + ',"params":{"a":"\\ud800"}}',
        HEAD + ',"params":{"a":"\x01"}}',
        '{"jsonrpc":2,"method":"x","params":[}',
        HEAD + ',"params":' + "[" * 100_000 + "]" * 100_000 + "}",
        HEAD + ',"params":' + '{"a":' * 100_000 + "1" + "}" * 100_000 + "}",
        "[" * 100_000,
        "[" * 100_000 + "]" * 100_000,
        "[1,",
        b"{}",
    ],
)
def test_what_is_no_json_is_a_parse_error_without_an_id(text: str | bytes) -> None:
    code, id, _ = refused(text)
    assert (code, id) == ("PARSE", None)


@pytest.mark.parametrize(
    ("text", "id", "field"),
    [
        ("1", None, ""),
        ('"x"', None, ""),
        ("null", None, ""),
        ("{}", None, "jsonrpc"),
        ('{"jsonrpc":"1.0","id":3,"method":"x"}', 3, "jsonrpc"),
        ('{"jsonrpc":2.0,"id":3,"method":"x"}', 3, "jsonrpc"),
        ('{"jsonrpc":"2.0","id":3}', 3, "method"),
        ('{"jsonrpc":"2.0","id":"a","method":5}', "a", "method"),
        ('{"jsonrpc":"2.0","id":3,"result":{}}', 3, "method"),
        ('{"jsonrpc":"2.0","id":null,"method":"x"}', None, "id"),
        ('{"jsonrpc":"2.0","id":1.5,"method":"x"}', None, "id"),
        ('{"jsonrpc":"2.0","id":1e400,"method":"x"}', None, "id"),
        ('{"jsonrpc":"2.0","id":true,"method":"x"}', None, "id"),
        ('{"jsonrpc":"2.0","id":{"a":1},"method":"x"}', None, "id"),
        ('{"jsonrpc":"2.0","id":9007199254740992,"method":"x"}', None, "id"),
        ('{"jsonrpc":"2.0","id":' + "9" * 5000 + ',"method":"x"}', None, "id"),
        ('{"jsonrpc":"2.0","id":"' + "a" * 257 + '","method":"x"}', None, "id"),
    ],
)
def test_json_that_is_no_request_is_refused_with_its_id_and_the_member_at_fault(
    text: str, id: object, field: str
) -> None:
    code, found, context = refused(text)
    assert (code, found, context.get("field", "")) == ("REQUEST", id, field)


def test_the_entries_of_a_batch_are_read_one_by_one() -> None:
    frame = frames.read_frame(' [{"jsonrpc":"2.0","method":"a"}, 1, {"jsonrpc":"2.0","id":2,"method":"b"}]')
    assert frame.batch
    first, second, third = frame.entries
    assert isinstance(first, frames.Request)
    assert isinstance(second, frames.Malformed)
    assert isinstance(third, frames.Request)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
members = st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "params", "x"]), st.just("2.0") | json_values)


@given(st.text() | (json_values | members | st.lists(members, max_size=40)).map(json.dumps) | st.binary())
def test_reading_never_raises_and_every_entry_is_a_request_or_has_an_error(text: str | bytes) -> None:
    frame = frames.read_frame(text)
    assert 1 <= len(frame.entries) <= frames.BATCH
    for entry in frame.entries:
        if isinstance(entry, frames.Malformed):
            assert entry.error.code in ("PARSE", "REQUEST")
            json.loads(frames.refusal(entry.id, failure_of(entry.error)))


# -------------------------------------------------------------------- reading params


def params_error(text: str, kind: type[Params] = AskTerminal) -> RpcError:
    with pytest.raises(RpcError) as raised:
        frames.read_params("terminal/ask", msgspec.Raw(text.encode()), kind)
    assert raised.value.code == "PARAMS"
    return raised.value


def test_params_are_refused_by_member_and_never_by_value() -> None:
    error = params_error('{"to":"a","schema":{},"hunter2_extra":"hunter2"}')
    assert error.context == {
        "method": "terminal/ask",
        "field": "hunter2_extra",
        "known": ["key", "again", "visit", "to", "schema", "from", "timeout", "durable"],
    }
    assert "hunter2_extra" in error.message
    assert '"hunter2"' not in error.message


@pytest.mark.parametrize(
    ("text", "field", "words"),
    [
        ("{}", "to", "is missing"),
        ('{"to":5,"schema":{}}', "to", "must be a string, not an integer"),
        ('{"to":null,"schema":{}}', "to", "must be a string, not null"),
        ('{"to":"a","schema":[]}', "schema", "must be an object, not an array"),
        ('{"to":"a","schema":{},"timeout":-1}', "timeout", "must be a number >= 0.0"),
        ('{"to":"a","schema":{},"timeout":"5"}', "timeout", "must be a number or null, not a string"),
        ('{"to":"a","schema":{},"timeout":1e999}', "timeout", "is a number out of range"),
        ('{"__proto__":1,"to":"a","schema":{}}', "__proto__", "is not known"),
    ],
)
def test_the_member_at_fault_is_named_with_what_is_wrong(text: str, field: str, words: str) -> None:
    error = params_error(text)
    assert error.context["field"] == field
    assert error.message == f'In the params of terminal/ask "{field}" {words}.'


@pytest.mark.parametrize("text", ["[]", "null", "5", '"x"'])
def test_params_that_are_no_object_are_refused(text: str) -> None:
    assert "must be an object" in params_error(text).message


@pytest.mark.parametrize("value", ['{"a":1}', "[1]", '[["a"]]', "1e999"])
def test_only_what_a_field_can_hold_is_a_value(value: str) -> None:
    error = params_error('{"terminal":"a","id":"b","values":{"x":' + value + "}}", AnswerForm)
    assert error.context["field"].startswith("values")


# -------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("error", "number"),
    [
        (RpcError("PARSE", "m"), -32700),
        (RpcError("REQUEST", "m"), -32600),
        (RpcError("METHOD", "m", {"nearest": None}), -32601),
        (RpcError("PARAMS", "m", {"field": "to"}), -32602),
        (RpcError("INTERNAL", "m"), -32603),
        (RpcError("CANCELLED", "m"), -32800),
        (RpcError("BUSY", "m"), -32002),
        (TerminalError("TARGET", "m", {"known": ["a"]}), -32001),
        (TerminalError("LIMIT", "m", {"cap": 1}), -32002),
        (TerminalDeadlock("DEADLOCK", "m", {"from": "a", "to": "b", "path": ["a", "b", "a"]}), -32002),
        (FormError("SCHEMA", "m", {"problems": []}), -32002),
        (FormError("ABANDONED", "m", {"reason": "timeout"}), -32002),
        (ActorError("STOPPED", "m", {"path": "/x"}), -32002),
        (ActorError("UNKNOWN", "m", {"path": "/x"}), -32002),
        (WorkflowError("UNKNOWN", "m", {"id": "release", "known": []}), -32001),
        (WorkflowError("TRANSITION", "m", {"id": "release"}), -32002),
        (WorkflowError("RESTORE", "m", {"reason": "r"}), -32002),
        (WorkflowError("MUTATION", "m", {"reason": "r"}), -32002),
        (WorkflowError("GAP", "m", {"first": 5}), -32002),
    ],
)
def test_an_error_crosses_with_its_number_and_comes_back_as_what_it_was(error: GreenroomError, number: int) -> None:
    failure = failure_of(error)
    assert failure.code == number
    data = json.loads(frames.refusal(1, failure))["error"]["data"]
    assert data == {"code": error.code, "message": error.message, "context": error.context}
    back = error_of(failure)
    assert (type(back), back.code, back.message, back.context) == (type(error), error.code, "m", error.context)


def test_an_error_of_no_known_class_comes_back_as_an_rpc_error() -> None:
    back = error_of(failure_of(ToolError("DATABASE", "m", {"a": 1})))
    assert (type(back), back.code, back.context) == (RpcError, "DATABASE", {"a": 1})
    assert error_of(Failure(-32601, "m")).code == "METHOD"
    assert error_of(Failure(5, "m")).context == {"number": 5}


# -------------------------------------------------------------------- what is sent


def test_what_is_sent_is_compact_and_complete() -> None:
    assert frames.response(1, {"n": 5.0}) == b'{"jsonrpc":"2.0","id":1,"result":{"n":5}}'
    assert frames.response("a", None) == b'{"jsonrpc":"2.0","id":"a","result":null}'
    assert frames.notification("m", {}) == b'{"jsonrpc":"2.0","method":"m","params":{}}'
    assert frames.request(1, "m", {}) == b'{"jsonrpc":"2.0","id":1,"method":"m","params":{}}'
    assert frames.request(None, "m", {}) == b'{"jsonrpc":"2.0","method":"m","params":{}}'
    assert frames.batch([b"1", b"2"]) == b"[1,2]"


def test_a_client_sends_nothing_that_is_not_what_it_means() -> None:
    with pytest.raises(UnicodeEncodeError):
        frames.request(1, "m", {"a": "\ud800"})
    with pytest.raises(TypeError):
        frames.request(1, "m", {"a": object()})


def test_a_server_shows_a_lone_surrogate_as_a_replacement_character() -> None:
    assert json.loads(frames.response(1, {"a\ud800": "\udc00b"})) == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"a\ufffd": "\ufffdb"},
    }


def test_results_of_two_shapes_are_read_by_their_success() -> None:
    assert read_answer(msgspec.Raw(b'{"success":true,"value":{"a":1}}')) == AnswerSuccess(value={"a": 1})
    failure = read_answer(msgspec.Raw(b'{"success":false,"error":{"reason":"unknown"}}'))
    assert isinstance(failure, AnswerFailure)
    assert failure.error.reason == "unknown"
    with pytest.raises(msgspec.ValidationError):
        read_answer(msgspec.Raw(b'{"success":false}'))
    success = read_tool_result(msgspec.Raw(b'{"id":"1","name":"n","success":true,"value":null}'))
    assert success == ToolSuccess(id="1", name="n", value=None)
    error = read_tool_result(msgspec.Raw(b'{"id":"1","name":"n","success":false,"error":"no"}'))
    assert error == ToolFailure(id="1", name="n", error="no")


@pytest.mark.parametrize("text", ["", "5", '{"id":{}}', '{"error":{"code":"x"}}'])
def test_a_client_is_told_when_the_other_side_is_no_gateway(text: str) -> None:
    with pytest.raises(RpcError, match="no JSON-RPC"):
        frames.read_messages(text)
