"""Whatever a peer sends, it gets a typed error; its connection, where frames allow it, and all others go on."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from greenroom.protocol.rpc import METHODS
from tests.gateway.conftest import ONE_FIELD, Peer, Site, peer, site_with
from tests.gateway.raw import UPGRADE, Raw, frame, raw


async def still_serves(site: Site, other: Peer) -> None:
    """A bystander's ask is parked, answered and told."""
    await other.send(ask(ONE_FIELD))
    await site.terminals.answer("ops", await site.the_form(), {"x": "y"})
    assert (await other.receive())["result"] == {"values": {"x": "y"}}


def ask(schema: Any, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "terminal/ask", "params": {"to": "ops", "schema": schema, **more}}


@pytest.mark.parametrize(
    ("message", "number", "code"),
    [
        ("", -32700, "PARSE"),
        ("{", -32700, "PARSE"),
        ("NaN", -32700, "PARSE"),
        (b"\xff\x00binary", -32700, "PARSE"),
        (b'{"jsonrpc":"2.0","id":1,"method":"terminal/list"}', -32700, "PARSE"),
        ("[" * 100_000 + "]" * 100_000, -32700, "PARSE"),
        (
            '{"jsonrpc":"2.0","id":1,"method":"m","params":' + '{"a":' * 100_000 + "1" + "}" * 100_000 + "}",
            -32700,
            "PARSE",
        ),
        ('{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":"\\udc00"}}', -32700, "PARSE"),
        ('{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":Infinity}}', -32700, "PARSE"),
        ("1", -32600, "REQUEST"),
        ("{}", -32600, "REQUEST"),
        ("[]", -32600, "REQUEST"),
        ({"jsonrpc": "2.0", "id": 1, "method": "m" * 100_000}, -32601, "METHOD"),
        ({"jsonrpc": "2.0", "id": 1, "method": "terminal/lsit"}, -32601, "METHOD"),
        ({"jsonrpc": "2.0", "id": 1, "method": "__proto__"}, -32601, "METHOD"),
        ({"jsonrpc": "2.0", "id": 1, "method": "terminal/list", "params": []}, -32602, "PARAMS"),
        ({"jsonrpc": "2.0", "id": 1, "method": "terminal/list", "params": {"__proto__": 1}}, -32602, "PARAMS"),
        (ask(ONE_FIELD, timeout=-1), -32602, "PARAMS"),
        (ask(ONE_FIELD, timeout=True), -32602, "PARAMS"),
        (json.dumps(ask(ONE_FIELD))[:-2] + ',"timeout":1e999}}', -32602, "PARAMS"),
        (ask([]), -32602, "PARAMS"),
        (ask({}), -32002, "SCHEMA"),
        (ask({"__proto__": 1}), -32002, "SCHEMA"),
        (ask({"fields": [{"control": "text", "name": "__proto__"}]}), -32002, "SCHEMA"),
        (ask({"fields": [{"control": "text", "name": f"f{n}"} for n in range(513)]}), -32002, "SCHEMA"),
        (ask({"fields": [{"control": "wizard", "name": "a"}]}), -32002, "SCHEMA"),
        (ask({"fields": [{"control": "number", "name": "a", "default": 10**400}]}), -32002, "SCHEMA"),
        (ask({"fields": [{"control": "text", "name": "a", "rule": {"pattern": "(a+)+$(?=x)"}}]}), -32002, "SCHEMA"),
        (ask(ONE_FIELD, to="x" * 100_000), -32001, "TARGET"),
        (ask(ONE_FIELD, to="__proto__"), -32001, "TARGET"),
    ],
)
async def test_each_kind_of_nonsense_has_its_error_and_nothing_else_happens(
    site: Site, caller: Peer, message: Any, number: int, code: str
) -> None:
    async with peer(site.url) as other:
        await caller.send(message)
        answer = await caller.receive()
        assert (answer["error"]["code"], answer["error"]["data"]["code"]) == (number, code)
        assert len(answer["error"]["message"]) < 1000 or number == -32001
        assert "terminals" in await caller.result("terminal/list")
        await still_serves(site, other)


async def test_an_unknown_method_is_told_its_nearest(caller: Peer) -> None:
    error = (await caller.call("terminal/lsit"))["error"]
    assert error["data"]["context"]["nearest"] == "terminal/list"
    assert "terminal/list" in error["message"]
    assert (await caller.call("qqqq"))["error"]["data"]["context"]["nearest"] is None


async def test_an_answer_may_hold_anything_and_only_what_fits_is_accepted(site: Site, caller: Peer) -> None:
    async with peer(site.url) as other:
        await other.send(ask(ONE_FIELD))
        id = await site.the_form()
        for values in (
            {f"f{n}": "x" for n in range(2_000)},
            {"__proto__": "x", "constructor": "y"},
            {"x": 9007199254740993},
            {"x": ["a"] * 5_000},
            {"x": "\u0000" * 70_000},
        ):
            result = await caller.result("terminal/answer", {"terminal": "ops", "id": id, "values": values})
            assert result["error"]["reason"] == "rejected", values
        answer = {"terminal": "ops", "id": id, "values": {"x": "fine \u2028"}}
        assert (await caller.result("terminal/answer", answer))["success"] is True
        assert (await other.receive())["result"]["values"] == {"x": "fine \u2028"}


async def test_a_meta_as_deep_as_a_form_allows_goes_through_and_a_deeper_one_is_refused(
    site: Site, caller: Peer
) -> None:
    def meta(depth: int) -> str:
        schema = json.dumps({"fields": [{"control": "text", "name": "a", "meta": "HERE"}]})
        return schema.replace('"HERE"', '{"m":' * depth + "1" + "}" * depth)

    message = json.dumps(ask("SCHEMA"))
    await caller.send(message.replace('"SCHEMA"', meta(513)))
    assert (await caller.receive())["error"]["data"]["code"] == "SCHEMA"
    await caller.send(message.replace('"SCHEMA"', meta(512)))
    await site.the_form()
    async with peer(site.url) as other:
        assert len((await other.result("terminal/attach", {"terminal": "ops"}))["pending"]) == 1


async def test_a_message_over_the_cap_closes_with_1009(site: Site) -> None:
    async with peer(site.url) as other:
        for message in ("x" * (1 << 20) + "x", "\u20ac" * 400_000, b"x" * (1 << 21), " " * (8 << 20)):
            async with peer(site.url) as caller:
                await caller.send(message)
                code, reason = await caller.closed()
                assert code == 1009
                assert reason
        await still_serves(site, other)
    await site.until_nothing_is_left()


async def test_a_message_at_the_cap_is_read(caller: Peer) -> None:
    text = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "terminal/list", "params": {}})
    await caller.send(text + " " * ((1 << 20) - len(text)))
    assert "result" in await caller.receive()


# -------------------------------------------------------------------- frames


async def opened(connection: Raw) -> None:
    response = await connection.get("/rpc", {"Host": "localhost", **UPGRADE})
    assert response.status == 101


def close_code(received: bytes) -> int | None:
    """The code of the close frame with which `received` ends."""
    return int.from_bytes(received[2:4], "big") if received[:1] == b"\x88" and len(received) >= 4 else None


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (frame(0x81, b"\xff\xfe"), 1007),
        (frame(0x81, b"\xed\xa0\x80"), 1007),
        (frame(0x83, b"x"), 1002),
        (frame(0xF1, b"x"), 1002),
        (frame(0x80, b"continued nothing"), 1002),
        (frame(0x81, b"unmasked", mask=None), 1002),
        (frame(0x89, b"x" * 126), 1002),
        (frame(0x09, b"fragmented ping"), 1002),
        (frame(0x88, b"x"), 1002),
        (frame(0x88, (1005).to_bytes(2, "big")), 1002),
        (frame(0x01, b"one") + frame(0x81, b"two"), 1002),
        (frame(0x81, b"", size=b"\xff" + b"\xff" * 8), 1002),
        (b"GET / HTTP/1.1\r\n\r\n", 1002),
    ],
)
async def test_frames_against_the_protocol_close_their_connection_with_a_code(
    site: Site, data: bytes, code: int
) -> None:
    async with peer(site.url) as other:
        async with raw(site.gateway.port) as connection:
            await opened(connection)
            await connection.stream.send_all(data)
            assert close_code(await connection.ended()) == code
        await still_serves(site, other)
    await site.until_nothing_is_left()


async def test_a_message_may_come_in_fragments_with_pings_between_them(site: Site) -> None:
    text = json.dumps({"jsonrpc": "2.0", "id": "é", "method": "terminal/list"}, ensure_ascii=False).encode()
    async with raw(site.gateway.port) as connection:
        await opened(connection)
        pieces = [frame(0x01, text[:25]), frame(0x89, b"ping"), *(frame(0x00, text[n : n + 1]) for n in range(25, 35))]
        for piece in (*pieces, frame(0x80, text[35:])):
            await connection.stream.send_all(piece)
        assert b"ping" in await connection.until(b"terminals")


async def test_an_orderly_close_is_answered(site: Site) -> None:
    async with raw(site.gateway.port) as connection:
        await opened(connection)
        await connection.stream.send_all(frame(0x88, (1000).to_bytes(2, "big") + b"bye"))
        assert close_code(await connection.ended()) == 1000
    await site.until_nothing_is_left()


# -------------------------------------------------------------------- fuzzing

words = st.sampled_from(
    ["jsonrpc", "2.0", "id", "method", "params", "to", "terminal", "schema", "values", "ops", "rpc/cancel", "__proto__"]
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words | st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)
methods = st.sampled_from([*METHODS, ""])
requests = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0"), "method": methods},
    optional={"id": st.integers(0, 5) | st.text(max_size=3) | json_values, "params": json_values},
)
messages = (
    st.text(max_size=50)
    | json_values.map(json.dumps)
    | requests.map(json.dumps)
    | st.lists(requests, max_size=6).map(json.dumps)
    | st.binary(max_size=50)
)
fuzzed = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


@fuzzed
@given(st.lists(messages, max_size=12))
async def test_no_messages_break_a_connection(batch: list[str | bytes]) -> None:
    async with site_with() as site:
        async with peer(site.url) as caller, peer(site.url) as other:
            for message in batch:
                await caller.send(message)
            await caller.send({"jsonrpc": "2.0", "id": "the last", "method": "terminal/list"})
            answer: Any = None
            while not isinstance(answer, dict) or answer["id"] != "the last":
                answer = await caller.receive()
            assert "result" in answer
            await site.ops.stop()
            await still_serves(site, other)
        await site.until_nothing_is_left()


payloads = st.binary(max_size=200) | requests.map(json.dumps).map(str.encode)
frames = st.builds(
    frame,
    st.integers(0, 255) | st.sampled_from([0x81, 0x01, 0x80, 0x88, 0x89, 0x8A, 0x82]),
    payloads,
    mask=st.none() | st.binary(min_size=4, max_size=4),
)


@fuzzed
@given(st.lists(frames | st.binary(max_size=30), max_size=8))
async def test_no_frames_break_a_gateway(sent: list[bytes]) -> None:
    async with site_with() as site:
        async with peer(site.url) as other:
            async with raw(site.gateway.port) as connection:
                await opened(connection)
                with trio.move_on_after(1):
                    with suppress(trio.BrokenResourceError):
                        await connection.stream.send_all(b"".join(sent))
            await site.ops.stop()
            await still_serves(site, other)
        await site.until_nothing_is_left()
