"""What counts as a call, and what of calls and results crosses a wire."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.protocol.tools import ToolCall, ToolDefinition, ToolFailure, ToolSuccess, is_tool_call


class Unreadable(dict[str, Any]):
    """A mapping that raises when one of its keys is looked up."""

    def __init__(self, key: str) -> None:
        super().__init__(id="1", name="s", arguments={}, caller="me")
        self.key = key

    def __getitem__(self, key: str) -> Any:
        if key == self.key:
            raise RuntimeError("not for you")
        return super().__getitem__(key)


class Chameleon:
    """An object that raises when it is asked for its class."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("not for you")


@pytest.mark.case("tools", 23)
def test_a_call_has_a_text_id_a_text_name_and_a_dict_of_arguments() -> None:
    assert is_tool_call({"id": "1", "name": "s", "arguments": {}})
    assert is_tool_call({"id": "", "name": "", "arguments": {}})
    values: list[object] = [None, "call", 42, []]
    assert not any(is_tool_call(value) for value in values)
    wrong: list[tuple[str, object]] = [("id", 1), ("name", 1)]
    wrong += [("arguments", arguments) for arguments in (None, "q", 42, True, ["x"])]
    for key, value in wrong:
        assert not is_tool_call({"id": "1", "name": "s", "arguments": {}, key: value})
    for missing in ("id", "name", "arguments"):
        assert not is_tool_call({key: value for key, value in Unreadable("").items() if key != missing})


@pytest.mark.case("tools", 24)
@pytest.mark.parametrize("key", ["id", "name", "arguments"])
def test_a_mapping_that_cannot_be_read_is_no_call(key: str) -> None:
    assert not is_tool_call(Unreadable(key))
    assert is_tool_call(Unreadable("caller"))


@given(
    st.one_of(st.none(), st.integers(), st.text(), st.lists(st.integers()), st.dictionaries(st.text(), st.integers()))
)
def test_asking_whether_something_is_a_call_never_raises(value: object) -> None:
    assert not is_tool_call(value)
    assert not is_tool_call(Chameleon())


def test_what_stays_in_the_process_is_neither_encoded_nor_compared_nor_printed() -> None:
    call = ToolCall("1", "t", {"x": 1}, caller="the-caller", invalid="the-reason")
    assert (call.caller, call.invalid) == ("the-caller", "the-reason")
    assert msgspec.json.encode(call) == b'{"id":"1","name":"t","arguments":{"x":1}}'
    assert call == ToolCall(id="1", name="t", arguments={"x": 1})
    assert "the-" not in repr(call)


def test_a_decoded_call_has_no_caller_even_if_the_sender_names_one() -> None:
    text = b'{"id":"1","name":"t","arguments":{},"caller":"root","invalid":"x"}'
    call = msgspec.json.decode(text, type=ToolCall)
    assert (call.caller, call.invalid) == (None, None)


def test_results_are_told_apart_by_success() -> None:
    success = ToolSuccess(id="1", name="t", value=None)
    failure = ToolFailure(id="1", name="t", error="no")
    assert msgspec.json.encode(success) == b'{"id":"1","name":"t","success":true,"value":null}'
    assert msgspec.json.encode(failure) == b'{"id":"1","name":"t","success":false,"error":"no"}'


def test_a_definition_leaves_out_what_the_tool_has_not() -> None:
    assert msgspec.json.encode(ToolDefinition("t")) == b'{"name":"t"}'
    assert msgspec.json.encode(ToolDefinition("t", "")) == b'{"name":"t","description":""}'
