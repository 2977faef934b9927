"""The event stream of a terminal: its bytes, what is told to whom, and that it leaves nothing behind."""

from __future__ import annotations

import logging
from typing import Literal

import msgspec
import pytest
import trio
import trio.testing

from greenroom.actors.bridge import connection as bridge_connection
from greenroom.actors.bridge import terminal_routes
from greenroom.actors.system import open_runtime
from greenroom.protocol import wire
from greenroom.protocol.forms import Form
from tests.bridge.conftest import ONE_FIELD, Bridge, Reader

wait = trio.testing.wait_all_tasks_blocked


def pending_bytes(id: str, time: int, members: str = ',"from":"a","to":"ops"', schema: str | None = None) -> bytes:
    shown = schema or '{"fields":[{"control":"text","name":"x","rule":{"required":true}}]}'
    data = f'{{"id":"{id}","schema":{shown},"status":"pending","time":{time}{members}}}'
    return f"event: pending\nid: {id}\ndata: {data}\n\n".encode()


def expire_bytes(id: str) -> bytes:
    return f'event: expire\ndata: {{"id":"{id}"}}\n\n'.encode()


# -------------------------------------------------------------------- exact bytes


@pytest.mark.case("terminals", 22)
async def test_the_frames_are_exactly_these_bytes(bridge: Bridge, autojump_clock: trio.testing.MockClock) -> None:
    reader = await bridge.connect()
    await bridge.ask(timeout=20)
    id, time = bridge.the_id(), bridge.terminals.pending()[0].time
    assert reader.new() == pending_bytes(id, time)
    await trio.sleep(15.5)
    assert reader.new() == b": \n\n"
    await trio.sleep(6)
    assert reader.new() == expire_bytes(id)
    await trio.sleep(10)
    assert reader.new() == b": \n\n"
    assert not reader.ended


@pytest.mark.case("terminals", 22)
async def test_a_record_is_written_as_ecmascript_writes_it() -> None:
    schema = {
        "label": 'é😀\u2028</script>"\\\x7f\x0b\n',
        "fields": [
            {"control": "number", "name": "n", "meta": {"a": [5.0, 1e21, 1e-7, -0.0], "b": None}, "default": 5.0}
        ],
    }
    async with open_runtime(wall_clock=lambda: 1_000_000_000.5) as runtime, trio.open_nursery() as nursery:
        bridge = Bridge(runtime, nursery)
        reader = await bridge.connect()
        await bridge.ask(schema, from_=None)
        shown = (
            '{"label":"é😀\u2028</script>\\"\\\\\x7f\\u000b\\n","fields":[{"control":"number","name":"n",'
            '"meta":{"a":[5,1e+21,1e-7,0],"b":null},"default":5}]}'
        )
        assert reader.new() == pending_bytes(bridge.the_id(), 1_000_000_000_500, ',"to":"ops"', shown)
        nursery.cancel_scope.cancel()


async def test_the_response_says_that_it_is_a_stream(bridge: Bridge) -> None:
    response = await bridge.get()
    assert response.status == 200
    assert dict(response.headers) == {
        "Content-Type": "text/event-stream; charset=utf-8",
        "Cache-Control": "no-cache",
        "Connection": "keep-alive",
        "X-Accel-Buffering": "no",
    }


# -------------------------------------------------------------------- who is told what


@pytest.mark.case("terminals", 23)
async def test_what_was_asked_before_is_replayed_and_what_comes_after_is_told_once(bridge: Bridge) -> None:
    await bridge.ask()
    await bridge.ask(from_="b")
    reader = await bridge.connect()
    await bridge.ask(from_="c")
    ids = [record.id for record in bridge.terminals.pending()]
    assert [(event.event, event.id) for event in reader.events] == [("pending", id) for id in ids]
    assert [msgspec.json.decode(event.data)["from"] for event in reader.events] == ["a", "b", "c"]


async def test_an_answer_is_told_to_nobody(bridge: Bridge) -> None:
    readers = [await bridge.connect() for _ in range(2)]
    await bridge.ask()
    for reader in readers:
        assert len(reader.new()) > 0
    await bridge.post({"id": bridge.the_id(), "values": {"x": "v"}})
    assert [reader.new() for reader in readers] == [b"", b""]


async def test_a_stream_is_told_of_its_own_terminal_only(bridge: Bridge) -> None:
    bridge.terminals.add("other")
    reader = await bridge.connect("other")
    await bridge.ask()
    await bridge.terminals.remove("ops")
    assert reader.bytes == b""


async def test_a_withdrawal_is_told_as_an_expiry(bridge: Bridge) -> None:
    reader = await bridge.connect()
    asked = await bridge.ask()
    id = bridge.the_id()
    reader.new()
    asked.scope.cancel()
    await wait()
    assert reader.new() == expire_bytes(id)


async def test_a_form_parked_directly_is_replayed_and_expires_but_is_not_announced(bridge: Bridge) -> None:
    before = await bridge.connect()
    id = await bridge.ops.park(Form(ONE_FIELD))
    after = await bridge.connect()
    assert before.bytes == b""
    assert after.new() == pending_bytes(id, bridge.terminals.pending()[0].time, "")
    await bridge.ops.stop()
    await wait()
    assert before.bytes == after.bytes == expire_bytes(id)


async def test_a_form_parked_directly_for_the_terminal_is_announced(bridge: Bridge) -> None:
    reader = await bridge.connect()
    id = await bridge.ops.park(Form(ONE_FIELD), to="ops")
    await wait()
    assert [event.id for event in reader.events] == [id]


async def test_a_stream_goes_on_for_the_next_terminal_of_its_name(bridge: Bridge) -> None:
    reader = await bridge.connect()
    await bridge.terminals.remove("ops")
    assert (await bridge.get()).status == 404
    bridge.terminals.add("ops")
    await bridge.ask()
    assert [event.id for event in reader.events] == [bridge.the_id()]
    assert not reader.ended


async def test_a_form_that_ended_before_it_could_be_replayed_is_not_shown(bridge: Bridge) -> None:
    asked = await bridge.ask()
    await bridge.ask(from_="b")
    response = await bridge.get()
    assert not isinstance(response.body, bytes)
    stream = response.body.__aiter__()
    first, _ = [record.id for record in bridge.terminals.pending()]
    await bridge.ask({"fields": [], "label": "y" * 60_000}, from_="c")  # of a size that is sent by itself
    asked.scope.cancel()
    await wait()
    assert first.encode() not in await stream.__anext__()
    response.body.close()


async def test_a_frame_is_written_once_for_all_streams(bridge: Bridge, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    encode = wire.encode

    def counting(value: object, *, surrogates: Literal["refuse", "replace"] = "refuse") -> bytes:
        written.append(type(value).__name__)
        return encode(value, surrogates=surrogates)

    readers = [await bridge.connect(query=query) for query in ("", "", "events=all", "events=all")]
    monkeypatch.setattr(wire, "encode", counting)
    await bridge.ask()
    assert written == ["PendingForm"]
    assert len({reader.bytes for reader in readers}) == 1


# -------------------------------------------------------------------- ?events=all


async def test_a_reader_of_all_events_is_told_of_answers_and_withdrawals_too(bridge: Bridge) -> None:
    reader = await bridge.connect(query="events=all")
    await bridge.ask()
    answered = bridge.the_id()
    await bridge.post({"id": answered, "values": {"x": "v"}})
    asked = await bridge.ask()
    withdrawn = bridge.the_id()
    asked.scope.cancel()
    await wait()
    told = [(event.event, event.id or msgspec.json.decode(event.data)["id"]) for event in reader.events]
    assert told == [
        ("pending", answered),
        ("answer", answered),
        ("pending", withdrawn),
        ("withdraw", withdrawn),
        ("expire", withdrawn),
    ]
    assert f'event: answer\ndata: {{"id":"{answered}"}}\n\n'.encode() in reader.bytes


@pytest.mark.parametrize("query", ["", "events=some", "event=all", "all"])
async def test_any_other_query_changes_nothing(bridge: Bridge, query: str) -> None:
    reader = await bridge.connect(query=query)
    await bridge.ask()
    reader.new()
    await bridge.post({"id": bridge.the_id(), "values": {"x": "v"}})
    assert reader.bytes == b""


@pytest.mark.parametrize("all_of_them", [False, True])
async def test_a_reader_of_all_events_is_told_that_its_terminal_was_removed(bridge: Bridge, all_of_them: bool) -> None:
    reader, plain = await bridge.connect(query="x=1&events=all"), await bridge.connect()
    await bridge.ask()
    id = bridge.the_id()
    assert reader.new() == plain.new() != b""
    await (bridge.terminals.destroy() if all_of_them else bridge.terminals.remove("ops"))
    await wait()
    assert reader.new() == expire_bytes(id) + b"event: shutdown\ndata: \n\n"
    assert reader.ended
    assert plain.new() == expire_bytes(id)
    assert not plain.ended
    plain.body.close()
    assert bridge.terminals.subscriptions == 0


async def test_a_stream_of_a_terminal_that_was_removed_before_it_was_read_ends_at_once(bridge: Bridge) -> None:
    response = await bridge.get(query="events=all")
    assert not isinstance(response.body, bytes)
    await bridge.terminals.remove("ops")
    reader = Reader(response.body)
    await reader.run()
    assert (reader.ended, reader.bytes) == (True, b"event: shutdown\ndata: \n\n")


async def test_a_terminal_that_only_stops_is_not_said_to_be_removed(bridge: Bridge) -> None:
    reader = await bridge.connect(query="events=all")
    await bridge.ops.destroy()
    await wait()
    assert (reader.bytes, reader.ended) == (b"", False)


# -------------------------------------------------------------------- how it ends


@pytest.mark.case("terminals", 23)
@pytest.mark.parametrize("query", ["", "events=all"])
async def test_fifty_streams_that_come_and_go_leave_nothing(bridge: Bridge, query: str) -> None:
    for number in range(50):
        reader = await bridge.connect(query=query)
        assert bridge.terminals.subscriptions == 1
        if number % 2:
            reader.body.close()
        else:
            reader.scope.cancel()
            await wait()
            reader.body.close()
        await wait()
        assert bridge.terminals.subscriptions == 0
    reader = await bridge.connect(query=query)
    await bridge.ask()
    assert len(reader.events) == 1


async def test_a_stream_that_nobody_reads_is_not_subscribed(bridge: Bridge) -> None:
    response = await bridge.get()
    assert bridge.terminals.subscriptions == 0
    assert not isinstance(response.body, bytes)
    response.body.close()
    reader = Reader(response.body)
    await reader.run()
    assert (reader.ended, reader.bytes) == (True, b"")
    assert bridge.terminals.subscriptions == 0


async def test_waiting_for_the_next_piece_can_be_cancelled_and_loses_nothing(bridge: Bridge) -> None:
    response = await bridge.get()
    assert not isinstance(response.body, bytes)
    stream = response.body.__aiter__()
    with trio.CancelScope() as scope:
        scope.cancel()
        await stream.__anext__()
    await bridge.ask()
    assert bridge.the_id().encode() in await stream.__anext__()
    with trio.move_on_after(0):
        await stream.__anext__()
    await bridge.terminals.remove("ops")
    assert b"expire" in await stream.__anext__()
    response.body.close()


@pytest.mark.parametrize("bound", ["QUEUED_FRAMES", "QUEUED_BYTES"])
async def test_a_reader_that_does_not_keep_up_is_cut_off_and_finds_everything_again(
    bridge: Bridge, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    monkeypatch.setattr(bridge_connection, bound, {"QUEUED_FRAMES": 3, "QUEUED_BYTES": 600}[bound])
    response = await bridge.get()
    assert not isinstance(response.body, bytes)
    stream = response.body.__aiter__()
    with trio.move_on_after(0):
        await stream.__anext__()
    with trio.CancelScope() as scope:
        bridge.nursery.start_soon(stream.__anext__)
        await wait()
        await bridge.ask(from_="first")  # taken by the read under way
        for number in range(6):
            await bridge.ask(from_=str(number))
        assert bridge.terminals.subscriptions == 0
        with pytest.raises(StopAsyncIteration):
            await stream.__anext__()
        scope.cancel()
    again = await bridge.connect()
    assert len(again.events) == 7


async def test_a_large_first_frame_is_sent_whatever_its_size(bridge: Bridge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge_connection, "QUEUED_BYTES", 10)
    reader = await bridge.connect()
    await bridge.ask()
    assert len(reader.events) == 1


@pytest.mark.parametrize(
    ("letter", "size", "shown"), [("y", 980_000, True), ("é", 970_000, True), ("y", 984_000, False)]
)
async def test_a_form_that_no_client_can_take_in_is_not_sent(
    bridge: Bridge, caplog: pytest.LogCaptureFixture, letter: str, size: int, shown: bool
) -> None:
    """Sending it would make each client overflow, connect again and get it again, for ever."""
    caplog.set_level(logging.WARNING)
    part = 65_000
    texts = [letter * part] * (size // part) + [letter * (size % part)]
    fields = [{"control": "text", "name": f"f{number}", "label": text} for number, text in enumerate(texts)]
    live = await bridge.connect()
    await bridge.ask({"fields": fields})
    replayed = await bridge.connect()
    await bridge.ask(from_="b")
    assert len(live.events) == len(replayed.events) == 1 + shown
    assert any(bridge.terminals.pending()[0].id in message for message in caplog.messages) is not shown


@pytest.mark.parametrize("keepalive", [0, -1.0, float("nan")])
async def test_a_keepalive_of_nothing_is_refused(bridge: Bridge, keepalive: float) -> None:
    with pytest.raises(ValueError, match="more than 0 seconds"):
        terminal_routes(bridge.terminals, keepalive=keepalive)


@pytest.mark.parametrize("path", ["/terminals", "/terminals/:id", "terminals/:name", "/:name/:name"])
async def test_a_path_without_the_name_of_a_terminal_is_refused(bridge: Bridge, path: str) -> None:
    with pytest.raises(ValueError, match=":name"):
        terminal_routes(bridge.terminals, path)


async def test_the_routes_are_records_that_share_a_path(bridge: Bridge) -> None:
    routes = terminal_routes(bridge.terminals, "/at/:name")
    assert [(route.method, route.path) for route in routes] == [("GET", "/at/:name"), ("POST", "/at/:name")]
