"""The client of a bridge, against a server that answers whatever a test likes."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from greenroom.actors.client.prompt import client as client_module
from greenroom.actors.client.prompt import exchange as exchange_module
from greenroom.actors.client.prompt import open_prompt_client
from greenroom.protocol.errors import ConfigError, TerminalError
from greenroom.protocol.forms import Abandoned, Form
from tests.bridge.conftest import ONE_FIELD
from tests.bridge.people import ACCEPTED, Person, Scripted, Watch, frame, http, stream

TWO_FIELDS = {
    "fields": [{"control": "number", "name": "n", "rule": {"maximum": 9}}, {"control": "text", "name": "x"}],
}


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def person(watch: Watch) -> Person:
    return Person(watch)


@pytest.fixture
async def server(watch: Watch, nursery: trio.Nursery) -> Scripted:
    """On a real port."""
    scripted = Scripted(watch)
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    nursery.start_soon(trio.serve_listeners, scripted.serve, listeners)
    scripted.url = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}"
    return scripted


@pytest.fixture
async def near(watch: Watch, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch) -> Scripted:
    """Without a port, for tests that move the clock."""
    scripted = Scripted(watch)
    scripted.url = "http://localhost"

    async def open_stream(*_: object) -> trio.abc.Stream:
        ours, theirs = trio.testing.memory_stream_pair()
        nursery.start_soon(scripted.serve, theirs)
        await trio.lowlevel.checkpoint()
        return ours

    monkeypatch.setattr(exchange_module, "open_stream", open_stream)
    return scripted


def rejected(*errors: dict[str, Any]) -> bytes:
    return http(422, json.dumps({"success": False, "error": {"reason": "rejected", "errors": list(errors)}}))


UNKNOWN = http(422, '{"success":false,"error":{"reason":"unknown"}}')


# -------------------------------------------------------------------- answering


async def test_a_form_is_shown_and_its_answer_posted(server: Scripted, person: Person) -> None:
    server.replies.append(ACCEPTED)
    async with person.client(server.url, "a b", token="s\xe9") as client:
        await person.until(lambda: server.open and client.connected)
        await server.say(frame("1", ONE_FIELD))
        person.answer({"x": "é\u2028"})
        await person.until(lambda: server.posted)
        await server.say(b"event: of a later version\ndata: x\n\n")
        assert server.posted == [{"id": "1", "values": {"x": "é\u2028"}}]
        get, post = server.requests
        assert (get.target, post.target) == (b"/terminals/a%20b?events=all", b"/terminals/a%20b")
        for request in (get, post):
            headers = dict(request.headers)
            assert headers[b"x-orkestrel-token"] == b"s\xe9"
            assert headers[b"host"] == server.url.removeprefix("http://").encode()
        assert dict(get.headers)[b"accept"] == b"text/event-stream"
        assert dict(post.headers)[b"content-type"] == b"application/json"
        assert person.errors == []
    assert [event for event, *_ in person.events] == ["connect", "disconnect"]


async def test_forms_wait_for_their_turn(server: Scripted, person: Person) -> None:
    server.streams.append([stream(*[frame(id, ONE_FIELD) for id in "012"])])
    server.replies.extend([ACCEPTED] * 3)
    async with person.client(server.url):
        await person.until(lambda: server.open and person.shown)
        await trio.testing.wait_all_tasks_blocked()
        assert len(person.shown) == 1
        person.answer({"x": "first"})
        await person.until(lambda: len(person.shown) == 2)
        assert len(server.posted) == 1
        person.answer({"x": "second"})
        person.answer({"x": "third"})
        await person.until(lambda: len(server.posted) == 3)
    assert [(posted["id"], posted["values"]["x"]) for posted in server.posted] == [
        ("0", "first"),
        ("1", "second"),
        ("2", "third"),
    ]


@pytest.mark.case("terminals", 29)
async def test_a_rejected_answer_is_shown_again_with_what_is_wrong(server: Scripted, person: Person) -> None:
    server.streams.append([stream(frame("1", TWO_FIELDS))])
    server.replies.extend([rejected({"field": "x", "message": "\x1b[31mtoo \u202eshort", "rule": "minimum"}), ACCEPTED])
    async with person.client(server.url):
        person.answer({"n": 5, "x": "v"})
        await person.until(lambda: len(person.shown) == 2)
        again = person.shown[1]
        assert again.values == {"n": 5, "x": "v"}
        assert [(error.field, error.message) for error in again.errors] == [("x", "too short")]
        person.answer({"x": "longer"})
        await person.until(lambda: len(server.posted) == 2)
        await server.say(b": \n\n")
    assert server.posted[1] == {"id": "1", "values": {"n": 5, "x": "longer"}}
    assert person.errors == ["STATUS"]
    assert person.heard("error")[0].context["status"] == 422


async def test_what_the_form_itself_refuses_is_not_posted(server: Scripted, person: Person) -> None:
    server.streams.append([stream(frame("1", TWO_FIELDS), frame("2", TWO_FIELDS))])
    async with person.client(server.url):
        person.answer({"n": 10})
        await person.until(lambda: len(person.shown) == 2)
    assert server.posted == []
    assert isinstance(person.shown[0].outcome, Abandoned)


@pytest.mark.parametrize(
    ("reply", "errors"),
    [
        (ACCEPTED, []),
        (UNKNOWN, ["STATUS"]),
        (http(200, '{"success":false,"error":{"reason":"unknown"}}'), []),
        (http(422), ["STATUS", "ANSWER"]),
        (http(401), ["STATUS", "ANSWER"]),
        (http(500, '{"success":true,"value":{}}'), ["STATUS"]),
        (b"HTTP/1.1 204 No Content\r\n\r\n", ["ANSWER"]),
        (http(200, "[]"), ["ANSWER"]),
        (http(200, b" " * ((16 << 20) + 65_537)), ["ANSWER"]),
        (http(200, "{}"), ["ANSWER"]),
        (http(200, '{"success":true}'), ["ANSWER"]),
        (http(200, '{"success":1,"value":{}}'), ["ANSWER"]),
        (http(200, "\xff".encode("latin-1")), ["ANSWER"]),
        (http(200, "[" * 100_000), ["ANSWER"]),
        (http(404, '{"success":false,"error":{"reason":"target"}}'), ["STATUS", "ANSWER"]),
        (http(404, '{"success":false,"error":{"reason":"terminal"}}'), ["STATUS", "ANSWER"]),
        (http(422, '{"success":false,"error":{"reason":"later"}}'), ["STATUS", "ANSWER"]),
        (http(422, '{"success":false,"error":null}'), ["STATUS", "ANSWER"]),
        (http(422, '{"success":false,"error":{"reason":"rejected"}}'), ["STATUS", "ANSWER"]),
        (rejected({"field": "nope", "message": "m"}), ["STATUS", "ANSWER"]),
        (rejected({"field": "x", "message": "m", "more": 1}), ["STATUS", "ANSWER"]),
        (rejected({"field": "x", "message": "m", "rule": "odd"}), ["STATUS", "ANSWER"]),
        (rejected({"field": "x"}), ["STATUS", "ANSWER"]),
        (rejected({"field": "x", "message": "m"}, {"field": "x"}), ["STATUS", "ANSWER"]),
    ],
)
async def test_an_attempt_ends_with_anything_but_a_refusal_that_can_be_mended(
    server: Scripted, person: Person, reply: bytes, errors: list[str]
) -> None:
    server.replies.extend([reply, ACCEPTED])
    async with person.client(server.url):
        await person.until(lambda: server.open)
        await server.say(frame("1", ONE_FIELD), frame("2", ONE_FIELD))
        person.answer({"x": "v"})
        await person.until(lambda: len(person.shown) == 2)  # the next one's turn has come
        assert person.errors == errors
        await server.say(frame("1", ONE_FIELD))  # it may come again
        person.answer({"x": "w"})
        await person.until(lambda: len(person.shown) == 3)
    assert [posted["id"] for posted in server.posted] == ["1", "2"]


async def test_a_post_that_does_not_get_through_is_sent_again(server: Scripted, person: Person) -> None:
    server.streams.append([stream(frame("1", ONE_FIELD))])
    server.replies.extend([None, b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", UNKNOWN])
    async with person.client(server.url):
        person.answer({"x": "v"})
        await person.until(lambda: len(server.posted) == 3)
        await person.until(lambda: len(person.errors) == 3)
    assert server.posted == [{"id": "1", "values": {"x": "v"}}] * 3
    assert person.errors == ["CONNECT", "CONNECT", "STATUS"]
    assert len(person.shown) == 1


async def test_a_post_that_never_gets_through_is_given_up(
    near: Scripted, autojump_clock: MockClock, person: Person
) -> None:
    near.streams.append([stream(frame("1", ONE_FIELD))])
    near.replies.extend([None, b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", ACCEPTED])
    async with person.client(near.url, delay=2, keepalive=None):
        person.answer({"x": "v"})
        await person.until(lambda: len(person.errors) == 3, 100)
        assert trio.current_time() == pytest.approx(4)
        await trio.testing.wait_all_tasks_blocked()
        await near.say(frame("1", ONE_FIELD))
        await person.until(lambda: len(person.shown) == 2, 100)
    assert person.errors == ["CONNECT"] * 3


# -------------------------------------------------------------------- forms that go, and forms that cannot be shown


@pytest.mark.case("terminals", 30)
async def test_a_form_that_expires_is_taken_away(server: Scripted, person: Person) -> None:
    async with person.client(server.url):
        await person.until(lambda: server.open)
        await server.say(frame("1", ONE_FIELD), frame("2", ONE_FIELD), frame("3", ONE_FIELD))
        await person.until(lambda: person.shown)
        await server.say(b'event: expire\ndata: {"id":"2"}\n\nevent: expire\ndata: {"id":"1"}\n\n')
        await person.until(lambda: len(person.shown) == 2)
        assert isinstance(person.shown[0].outcome, Abandoned)
        await server.say(b'event: expire\ndata: {"id":"never seen"}\n\nevent: expire\ndata: {}\n\n')
        await person.until(lambda: len(person.heard("expire")) == 3)
        server.replies.append(ACCEPTED)
        person.answer({"x": "v"})
        await person.until(lambda: server.posted)
    assert server.posted[0]["id"] == "3"
    assert person.heard("expire") == ["2", "1", "never seen"]
    assert person.errors == []


async def test_a_form_that_somebody_else_answered_is_taken_away(server: Scripted, person: Person) -> None:
    server.streams.append([stream(frame("1", ONE_FIELD))])
    async with person.client(server.url):
        await person.until(lambda: server.open and person.shown)
        await server.say(b'event: answer\ndata: {"id":"1"}\n\n')
        await person.until(lambda: person.shown[0].outcome)
        assert person.heard("answer") == ["1"]
        assert person.errors == []


async def test_a_form_that_expires_while_its_answer_is_posted_is_not_shown_again(
    server: Scripted, person: Person
) -> None:
    server.streams.append([stream(frame("1", ONE_FIELD))])
    server.replies.extend([None, rejected({"field": "x", "message": "m"})])
    async with person.client(server.url, delay=0) as client:
        client.emitter.on("error", lambda _: None)
        person.answer({"x": "v"})
        await person.until(lambda: len(server.posted) == 1)
        await server.say(b'event: expire\ndata: {"id":"1"}\n\n', frame("2", ONE_FIELD))
        await person.until(lambda: len(person.shown) == 2)
        await server.say(b'event: expire\ndata: {"id":"2"}\n\n')
        await person.until(lambda: person.shown[1].outcome)
    assert len(person.shown) == 2


@pytest.mark.case("terminals", 33)
async def test_an_id_is_shown_once_while_it_is_on_its_way(server: Scripted, person: Person) -> None:
    server.replies.extend([ACCEPTED] * 2)
    async with person.client(server.url):
        await person.until(lambda: server.open)
        await server.say(*[frame("1", ONE_FIELD)] * 3, *[frame("2", ONE_FIELD)] * 3)
        person.answer({"x": "v"})
        await person.until(lambda: len(person.shown) == 2)
        person.answer({"x": "v"})
        await person.until(lambda: len(server.posted) == 2)
        await server.say(b'event: expire\ndata: {"id":"0"}\n\n')
        await person.until(lambda: person.heard("expire"))
    assert [posted["id"] for posted in server.posted] == ["1", "2"]
    assert len(person.shown) == 2


@pytest.mark.case("terminals", 32)
@pytest.mark.parametrize(
    "odd",
    [
        frame("1", ONE_FIELD, more=1),
        frame("1", ONE_FIELD, **{"from": None}),
        frame("", ONE_FIELD),
        frame("1", ONE_FIELD, status="answered"),
        frame("1", ONE_FIELD, time="now"),
        frame("1", ONE_FIELD, id=1),
        b"event: pending\ndata: {\n\n",
        b"event: pending\ndata: null\n\n",
        b"event: pending\ndata: " + b"[" * 100_000 + b"\n\n",
        b'event: pending\ndata: {"id":"1"}\n\n',
        b"event: \xff\ndata: x\n\n",
        b"data: no name\n\n",
    ],
)
async def test_an_envelope_that_is_not_exact_is_passed_over(server: Scripted, person: Person, odd: bytes) -> None:
    async with person.client(server.url):
        await person.until(lambda: server.open)
        await server.say(odd, frame("2", {"fields": [], "name": "next"}))
        await person.until(lambda: person.shown)
        assert person.shown[0].schema.name == "next"
        assert person.errors == []


@pytest.mark.case("terminals", 32)
@pytest.mark.parametrize(
    "schema",
    [
        {**ONE_FIELD, "more": 1},
        {"fields": [{"control": "wizard", "name": "x"}]},
        {"fields": [{"control": "text", "name": "x", "rule": {"pattern": "("}}]},
        None,
        [],
    ],
)
async def test_a_schema_that_cannot_be_shown_is_told(server: Scripted, person: Person, schema: object) -> None:
    async with person.client(server.url):
        await person.until(lambda: server.open)
        await server.say(frame("1", schema), frame("2", {"fields": [], "name": "next"}))
        await person.until(lambda: person.shown)
        assert person.shown[0].schema.name == "next"
        assert person.errors == ["SCHEMA"]
        assert person.heard("error")[0].context == {"id": "1"}


async def test_the_form_that_is_shown_is_safe_to_print_and_means_the_same(server: Scripted, person: Person) -> None:
    odd = "\x1b[31ma\x07\u202e\tb"
    schema = {
        "name": "n",
        "label": odd,
        "help": f"{odd}\nc",
        "groups": [{"name": "g", "label": odd, "help": odd}],
        "fields": [
            {
                "control": "text",
                "name": "t",
                "label": odd,
                "help": odd,
                "group": "g",
                "meta": {"a": 1},
                "placeholder": odd,
                "default": "\x1b[31m",
                "rule": {"pattern": "^z$", "maximum": 99},
            },
            {"control": "password", "name": "p", "mask": odd, "rule": {"pattern": "^z$"}},
            {"control": "file", "name": "f", "accept": [odd]},
            {"control": "select", "name": "s", "choices": [{"value": odd, "label": odd, "help": odd}]},
        ],
    }
    server.streams.append([stream(frame("1", schema))])
    server.replies.append(ACCEPTED)
    async with person.client(server.url):
        await person.until(lambda: person.shown)
        shown = person.shown[0].schema
        person.answer({"s": odd})
        await person.until(lambda: server.posted)
    expected = json.loads(json.dumps(schema).replace(json.dumps(odd)[1:-1], "a       b"))
    expected["fields"][0].pop("meta")
    expected["fields"][0]["rule"].pop("pattern")
    expected["fields"][1].pop("rule")
    expected["fields"][3]["choices"][0]["value"] = odd
    assert shown == Form(expected).schema
    assert server.posted[0]["values"] == {"t": "\x1b[31m", "s": odd}


async def test_whoever_turns_away_leaves_the_form_to_others(server: Scripted, person: Person) -> None:
    async with person.client(server.url):
        await person.until(lambda: server.open)
        await server.say(*[frame(id, ONE_FIELD) for id in "1234"])
        person.answer(None)
        person.answer(TerminalError("CANCEL", "no more"))
        person.answer(RuntimeError("a bug in a driver"))
        await person.until(lambda: len(person.shown) == 4)
        assert person.errors == ["CANCEL", "RuntimeError: a bug in a driver"]
        assert all(isinstance(form.outcome, Abandoned) for form in person.shown[:3])
    assert server.posted == []


# -------------------------------------------------------------------- the stream


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (http(500), "STATUS"),
        (http(301), "STATUS"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "STATUS"),
        (b"nonsense\r\n\r\n", "CONNECT"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 X\r\n\r\n", "STATUS"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n: \n\n\r\n", "CONNECT"),
    ],
)
async def test_it_connects_again_after_whatever_happened(
    near: Scripted, autojump_clock: MockClock, person: Person, response: bytes, error: str
) -> None:
    near.streams.extend([[response, None], [response, None], [stream(frame("1", ONE_FIELD))]])
    async with person.client(near.url, delay=2):
        await person.until(lambda: person.shown, 100)
        assert trio.current_time() == pytest.approx(4)
    assert person.errors == [error] * 2


async def test_it_connects_again_when_a_stream_ends(near: Scripted, autojump_clock: MockClock, person: Person) -> None:
    near.streams.extend(
        [[stream(frame("1", ONE_FIELD), b"event: expire\ndata: {"), None], [stream(frame("1", ONE_FIELD))]]
    )
    near.replies.append(ACCEPTED)
    async with person.client(near.url) as client:
        await person.until(lambda: near.gets == 2 and client.connected, 100)
        person.answer({"x": "v"})
        await person.until(lambda: near.posted, 100)
    assert [event for event, *_ in person.events] == ["connect", "disconnect", "connect", "disconnect"]
    assert len(person.shown) == 1


async def test_nobody_there_is_told_again_and_again(person: Person) -> None:
    listener = (await trio.open_tcp_listeners(0, host="127.0.0.1"))[0]
    port = listener.socket.getsockname()[1]
    await listener.aclose()
    async with person.client(f"http://127.0.0.1:{port}"):
        await person.until(lambda: len(person.errors) == 3)
    assert set(person.errors) == {"CONNECT"}


@pytest.mark.parametrize("status", [401, 404])
async def test_a_refusal_that_stays_is_not_asked_for_again(server: Scripted, person: Person, status: int) -> None:
    server.streams.append([http(status), None])
    async with person.client(server.url) as client:
        await person.until(lambda: person.errors)
        await trio.testing.wait_all_tasks_blocked()
        assert server.gets == 1
        assert person.heard("error")[0].context["status"] == status
        client.connect()
        await person.until(lambda: client.connected)


@pytest.mark.parametrize("first", [[stream(), None], [http(500), None]])
async def test_without_reconnecting_one_stream_is_enough_until_the_next_connect(
    server: Scripted, person: Person, first: list[bytes | None]
) -> None:
    server.streams.append(first)
    async with person.client(server.url, reconnect=False) as client:
        await person.until(lambda: person.heard("disconnect") or person.errors)
        await trio.testing.wait_all_tasks_blocked()
        assert server.gets == 1
        client.connect()
        await person.until(lambda: client.connected)


async def test_more_than_can_be_held_is_told_and_another_stream_opened(
    near: Scripted, autojump_clock: MockClock, person: Person
) -> None:
    near.streams.extend([[stream(b"data: ", b"y" * 60_000)], [stream(frame("1", ONE_FIELD))]])
    async with person.client(near.url, limit=50_000, delay=2):
        await person.until(lambda: person.shown, 100)
        assert trio.current_time() == pytest.approx(2)
    assert person.errors == ["OVERFLOW"]


@pytest.mark.case("terminals", 31)
async def test_a_shutdown_ends_everything_until_the_next_connect(server: Scripted, person: Person) -> None:
    server.streams.append([stream(frame("1", ONE_FIELD), frame("2", ONE_FIELD))])
    async with person.client(server.url) as client:
        await person.until(lambda: server.open and person.shown)
        await server.say(b'event: shutdown\n\nevent: expire\ndata: {"id":"0"}\n\n')
        await person.until(lambda: person.heard("expire"))
        assert client.connected
        await server.say(b'event: shutdown\ndata: \n\nevent: expire\ndata: {"id":"9"}\n\n')
        await person.until(lambda: not client.connected)
        await trio.testing.wait_all_tasks_blocked()
        assert isinstance(person.shown[0].outcome, Abandoned)
        assert len(person.shown) == 1
        assert (server.gets, person.errors, person.heard("expire")) == (1, [], ["0"])
        client.connect()
        await person.until(lambda: client.connected)


async def test_a_disconnect_leaves_the_form_that_is_shown(server: Scripted, person: Person) -> None:
    server.streams.append([stream(frame("1", ONE_FIELD), frame("2", ONE_FIELD))])
    server.replies.extend([ACCEPTED] * 2)
    async with person.client(server.url) as client:
        await person.until(lambda: server.open and person.shown)
        client.disconnect()
        client.disconnect()
        assert not client.connected
        await person.until(lambda: not server.open)
        person.answer({"x": "v"})
        person.answer({"x": "w"})
        await person.until(lambda: len(server.posted) == 2)
        assert server.gets == 1
        client.connect()
        await person.until(lambda: client.connected)
    assert [event for event, *_ in person.events] == ["connect", "disconnect", "connect", "disconnect"]


async def test_destroying_it_ends_everything_for_good(server: Scripted, person: Person) -> None:
    server.streams.append([stream(frame("1", ONE_FIELD), frame("2", ONE_FIELD))])
    async with person.client(server.url) as client:
        await person.until(lambda: server.open and person.shown)
        client.destroy()
        client.destroy()
        await person.until(lambda: not server.open)
        assert isinstance(person.shown[0].outcome, Abandoned)
        with pytest.raises(TerminalError) as raised:
            client.connect()
        assert raised.value.code == "DESTROYED"
    assert len(person.shown) == 1


async def test_a_listener_may_connect_again_at_once(server: Scripted, person: Person) -> None:
    server.streams.append([http(404), None])
    async with person.client(server.url) as client:
        client.emitter.on("error", lambda _: client.connect())
        await person.until(lambda: client.connected)
        client.emitter.on("disconnect", client.connect)
        client.disconnect()
        await person.until(lambda: server.gets == 3 and client.connected)
        client.emitter.close()


# -------------------------------------------------------------------- silence


@pytest.mark.case("reports/clients", 2)
async def test_a_stream_that_says_nothing_is_given_up_within_two_keepalive_periods(
    near: Scripted, autojump_clock: MockClock, person: Person
) -> None:
    """As when a proxy on the way keeps both its connections and forwards nothing any more."""
    near.streams.append([stream(frame("1", ONE_FIELD), b": \n\n")])
    async with person.client(near.url, delay=2) as client:
        await person.until(lambda: client.connected)
        await person.until(lambda: person.heard("disconnect"), 100)
        assert trio.current_time() == pytest.approx(30)
        assert person.errors == ["CONNECT"]
        await person.until(lambda: client.connected, 100)
        assert trio.current_time() == pytest.approx(32)


async def test_signs_of_life_keep_a_stream_open(near: Scripted, autojump_clock: MockClock, person: Person) -> None:
    async with person.client(near.url, keepalive=10) as client:
        await person.until(lambda: near.open and client.connected)
        for _ in range(10):
            await trio.sleep(19)
            await near.say(b": \n\n")
        assert near.gets == 1


async def test_a_stream_that_may_be_silent_is_waited_for(
    near: Scripted, autojump_clock: MockClock, person: Person
) -> None:
    async with person.client(near.url, keepalive=None) as client:
        await person.until(lambda: client.connected)
        await trio.sleep(80_000)
        assert (near.gets, client.connected) == (1, True)


async def test_a_server_that_does_not_answer_is_given_up(
    near: Scripted, autojump_clock: MockClock, person: Person
) -> None:
    near.streams.append([b"HTTP/1.1 2"])
    near.replies.append(b"HTTP/1.1 2")
    async with person.client(near.url, delay=1):
        await person.until(lambda: person.errors, 100)
        assert trio.current_time() == pytest.approx(client_module.CONNECT_TIMEOUT)


# -------------------------------------------------------------------- what is refused before anything is sent


@pytest.mark.case("reports/clients", 7)
@pytest.mark.parametrize("name", ["", "\ud800", "a\udfff"])
async def test_a_name_that_no_url_can_hold_is_refused_before_anything_is_sent(
    server: Scripted, person: Person, name: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        async with person.client(server.url, name):
            pass
    assert raised.value.code == "NAME"
    assert server.requests == []


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("a/b", "/terminals/a%2Fb"),
        ("..", "/terminals/%2E%2E"),
        (".", "/terminals/%2E"),
        ("...", "/terminals/..."),
        ("50%", "/terminals/50%25"),
        ("a?x=1", "/terminals/a%3Fx%3D1"),
        (":name", "/terminals/%3Aname"),
        ("ü😀", "/terminals/%C3%BC%F0%9F%98%80"),
    ],
)
async def test_a_name_is_one_segment_of_the_path(server: Scripted, person: Person, name: str, target: str) -> None:
    async with person.client(server.url, name):
        await person.until(lambda: server.gets)
    async with person.client(f"{server.url}/beneath/", name, path="/at/:name/here"):
        await person.until(lambda: server.gets == 2)
    first, second = [request.target.decode().partition("?")[0] for request in server.requests]
    assert first == target
    assert second == target.replace("/terminals/", "/beneath/at/") + "/here"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "ops",
        "ws://localhost",
        "ftp://localhost",
        "http://",
        "http://u:p@h",
        "http://h?x",
        "http://h#x",
        "http://h:x",
    ],
)
async def test_what_is_no_address_of_a_bridge_is_refused_without_being_repeated(person: Person, url: str) -> None:
    with pytest.raises(ConfigError) as raised:
        async with person.client(url):
            pass
    assert raised.value.code == "URL"
    assert "u:p" not in raised.value.message


@pytest.mark.parametrize("token", ["a\nb", " s3cret", "€", "a\0"])
async def test_a_token_that_no_header_can_hold_is_refused(person: Person, token: str) -> None:
    with pytest.raises(ConfigError) as raised:
        async with person.client("http://localhost:1", token=token):
            pass
    assert raised.value.code == "TOKEN"
    assert token not in raised.value.message


@pytest.mark.parametrize(
    ("url", "warned"),
    [
        ("http://example.org", 1),
        ("https://example.org", 0),
        ("http://localhost:1", 0),
        ("http://127.0.0.1:1", 0),
        ("http://[::1]:1", 0),
    ],
)
async def test_a_token_in_the_clear_is_warned_of_once(
    person: Person, caplog: pytest.LogCaptureFixture, url: str, warned: int
) -> None:
    caplog.set_level(logging.WARNING)
    async with open_prompt_client(url, "ops", person.ask, token="s3cret"):
        pass
    assert sum("plain HTTP" in message for message in caplog.messages) == warned
    assert "s3cret" not in caplog.text


async def test_what_the_block_raises_comes_out_as_it_is(server: Scripted, person: Person) -> None:
    with pytest.raises(KeyError):
        async with person.client(server.url):
            raise KeyError
