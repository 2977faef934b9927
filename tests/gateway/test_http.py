"""The port as an HTTP server: heads under limits and deadlines, and an answer to whatever is asked."""

from __future__ import annotations

from urllib.parse import quote

import pytest
import trio

from greenroom.actors.gateway import GatewayLimits
from greenroom.actors.gateway.http import HttpRequest, HttpResponse, text_response
from greenroom.actors.gateway.routes import Routes
from greenroom.actors.system import open_runtime
from greenroom.protocol.errors import ActorError, ConfigError
from tests.gateway.conftest import Site, accept_stream, site_with
from tests.gateway.raw import UPGRADE, Raw, head, raw

HOST = {"Host": "localhost"}


async def answer_to(site: Site, request: bytes, method: str = "GET") -> tuple[int, dict[str, str], str]:
    """Send these bytes; what comes back, once the server has ended the connection."""
    async with raw(site.gateway.port) as connection:
        await connection.stream.send_all(request)
        response = await connection.response(method)
        assert await connection.ended() == b""
        return response.status, response.headers, response.text


async def test_a_path_that_leads_nowhere_is_404_and_the_connection_goes_on(site: Site) -> None:
    async with raw(site.gateway.port) as connection:
        for target in ("/nothing", "/rpc/", "//", "/nowhere/%F0%9F%98%80?x=1"):
            response = await connection.get(target, HOST)
            assert response.status == 404
            assert response.headers["content-type"] == "text/plain; charset=utf-8"
            assert response.headers["x-content-type-options"] == "nosniff"
            assert "date" in response.headers
            assert "connection" not in response.headers
        response = await connection.get("/nothing", HOST, "HEAD")
        assert (response.status, response.text) == (404, "")
        assert int(response.headers["content-length"]) > 0


async def test_requests_that_come_together_are_answered_in_turn(site: Site) -> None:
    async with raw(site.gateway.port) as connection:
        await connection.stream.send_all(head("GET", "/a", HOST) + head("GET", "/rpc", HOST) + head("GET", "/b", HOST))
        assert [(await connection.response()).status for _ in range(3)] == [404, 426, 404]


async def test_a_websocket_may_be_asked_for_after_other_requests(site: Site) -> None:
    async with raw(site.gateway.port) as connection:
        assert (await connection.get("/nothing", HOST)).status == 404
        assert (await connection.get("/rpc", {**HOST, **UPGRADE})).status == 101


async def test_the_socket_path_asks_for_an_upgrade(site: Site) -> None:
    async with raw(site.gateway.port) as connection:
        response = await connection.get("/rpc", HOST)
        assert response.status == 426
        assert response.headers["upgrade"] == "websocket"
        assert response.headers["sec-websocket-version"] == "13"


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, 101),
        ({"Connection": "keep-alive, Upgrade"}, 101),
        ({"Upgrade": "WebSocket"}, 101),
        ({"Upgrade": "h2c"}, 426),
        ({"Connection": "keep-alive"}, 426),
        ({"Sec-WebSocket-Version": "12"}, 426),
        ({"Sec-WebSocket-Version": ""}, 426),
        ({"Sec-WebSocket-Key": ""}, 400),
        ({"Sec-WebSocket-Key": "c2hvcnQ="}, 400),
        ({"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=!"}, 400),
        ({"Content-Length": "5"}, 400),
        ({"Transfer-Encoding": "chunked"}, 400),
    ],
)
async def test_only_a_right_handshake_opens_a_websocket(site: Site, change: dict[str, str], status: int) -> None:
    async with raw(site.gateway.port) as connection:
        assert (await connection.get("/rpc", {**HOST, **UPGRADE, **change})).status == status


async def test_no_extension_is_agreed_on(site: Site) -> None:
    async with raw(site.gateway.port) as connection:
        offer = {"Sec-WebSocket-Extensions": "permessage-deflate; client_max_window_bits"}
        response = await connection.get("/rpc", {**HOST, **UPGRADE, **offer})
        assert response.status == 101
        assert "sec-websocket-extensions" not in response.headers


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"])
async def test_other_methods_are_405_on_the_socket_path(site: Site, method: str) -> None:
    async with raw(site.gateway.port) as connection:
        response = await connection.get("/rpc", {**HOST, "Content-Length": "0"}, method)
        assert (response.status, response.headers["allow"]) == (405, "GET")


async def test_a_request_with_a_body_is_answered_and_is_the_last(site: Site) -> None:
    request = head("POST", "/x", {**HOST, "Content-Length": "100000"}) + b"x" * 50_000
    status, headers, _ = await answer_to(site, request, "POST")
    assert (status, headers["connection"]) == (404, "close")


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"hello\r\n\r\n", 400),
        (head("GET", "/", {}), 400),
        (head("GET", "/", [("Host", "localhost"), ("Host", "localhost")]), 400),
        (head("GET", "/", {**HOST, "Content-Length": "many"}), 400),
        (head("POST", "/", {**HOST, "Content-Length": "4", "Transfer-Encoding": "chunked"}) + b"0\r\n\r\n", 400),
        (head("GET", "/", {**HOST, "Bad Name": "x"}), 400),
        (head("GET", "http://localhost/rpc", HOST), 400),
        (head("CONNECT", "localhost:80", HOST), 400),
        (head("OPTIONS", "*", HOST), 400),
        (head("GET", "/%ff", {**HOST, "Connection": "close"}), 400),
        (head("GET", "/", HOST, "2.0"), 505),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        (head("GET", "/", {**HOST, "X": "y" * 20_000}), 431),
        (head("GET", "/" + "y" * 20_000, HOST), 431),
        (head("GET", "/", [("Host", "localhost"), *[(f"X-{n}", "y" * 50) for n in range(400)]]), 431),
        (head("GET", "/", {}, "1.0"), 403),
    ],
)
async def test_what_is_no_request_is_told_so_and_the_connection_ended(site: Site, request_: bytes, status: int) -> None:
    found, headers, _ = await answer_to(site, request_)
    assert (found, headers["connection"]) == (status, "close")


async def test_a_head_of_the_largest_size_passes_and_one_byte_more_does_not(site: Site) -> None:
    room = 16_384 - len(head("GET", "/nothing", {**HOST, "X": ""}))
    async with raw(site.gateway.port) as connection:
        assert (await connection.get("/nothing", {**HOST, "X": "y" * room})).status == 404
        assert (await connection.get("/nothing", {**HOST, "X": "y" * (room + 1)})).status == 431


async def test_a_head_may_come_in_single_bytes(site: Site) -> None:
    async with raw(site.gateway.port) as connection:
        for byte in head("GET", "/nothing", HOST):
            await connection.stream.send_all(bytes([byte]))
        assert (await connection.response()).status == 404


async def test_a_slow_head_is_ended_with_408_and_an_idle_connection_without_a_word() -> None:
    async with site_with(GatewayLimits(head_timeout=0.05)) as site:
        status, headers, _ = await answer_to(site, b"GET / HT")
        assert (status, headers["connection"]) == (408, "close")
        async with raw(site.gateway.port) as connection:
            assert await connection.ended() == b""
        async with raw(site.gateway.port) as connection:
            assert (await connection.get("/nothing", HOST)).status == 404
            assert await connection.ended() == b""
        await site.until_nothing_is_left()


async def test_connections_that_vanish_leave_nothing(site: Site) -> None:
    for data in (b"", b"GET", head("GET", "/rpc", {**HOST, **UPGRADE})):
        for _ in range(20):
            async with raw(site.gateway.port) as connection:
                if data:
                    await connection.stream.send_all(data)
    await site.until_nothing_is_left()


# -------------------------------------------------------------------- routes


async def show(request: HttpRequest, names: dict[str, str]) -> HttpResponse:
    return text_response(200, f"{request.method} {names}")


def request(method: str, target: str) -> HttpRequest:
    return HttpRequest(method=method, target=target, version="1.1", headers=())


@pytest.mark.parametrize("name", ["a/b", "a?x=1", "a#b", "..", "50%", "{other}", "ü😀", " "])
async def test_a_route_is_given_the_segment_as_it_was_meant(name: str) -> None:
    routes = Routes()
    routes.add("GET", "/terminals/:name", show)
    response = await routes.respond(request("GET", f"/terminals/{quote(name, safe='')}?query"))
    assert response.body == f"GET {{'name': {name!r}}}\n".encode()


async def test_a_route_is_taken_by_path_and_method() -> None:
    routes = Routes()
    routes.add("GET", "/", show)
    routes.add("GET", "/terminals/:name", show)
    routes.add("POST", "/terminals/:name", show)
    assert (await routes.respond(request("GET", "/"))).status == 200
    assert (await routes.respond(request("POST", "/terminals/a"))).body == b"POST {'name': 'a'}\n"
    refused = await routes.respond(request("PUT", "/terminals/a"))
    assert (refused.status, refused.headers) == (405, (("Allow", "GET, POST"),))
    for target in ("/terminals", "/terminals/", "/terminals/a/b", "//", ""):
        expected = 200 if target == "/terminals/" else 404
        assert (await routes.respond(request("GET", target))).status == expected


async def test_a_route_that_raises_is_500_with_a_number_for_the_log(
    nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(request: HttpRequest, names: dict[str, str]) -> HttpResponse:
        raise ValueError("secret detail")

    routes = Routes()
    routes.add("GET", "/broken", broken)
    async with open_runtime() as runtime:
        connection = Raw(accept_stream(runtime, routes=routes))
        response = await connection.get("/broken", HOST)
        assert response.status == 500
        assert "secret" not in response.text
        correlation = response.text.split()[-1].rstrip(".")
        assert any(correlation in record.getMessage() for record in caplog.records)
        assert (await connection.get("/nothing", HOST)).status == 404


# -------------------------------------------------------------------- where it listens


async def test_a_gateway_listens_where_it_says(site: Site) -> None:
    assert site.gateway.url == f"ws://127.0.0.1:{site.gateway.port}/rpc"
    async with site_with(host="localhost") as other, raw(other.gateway.port) as connection:
        assert (await connection.get("/nothing", HOST)).status == 404


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])
async def test_a_gateway_that_others_could_reach_is_refused(site: Site, host: str) -> None:
    with pytest.raises(ConfigError) as raised:
        await site.runtime.serve(host=host, name="other")
    assert (raised.value.code, raised.value.context) == ("BIND", {"host": host})


async def test_it_says_at_the_start_that_it_serves_everybody_here(caplog: pytest.LogCaptureFixture) -> None:
    async with site_with() as site:
        assert any(site.url in message and "no token" in message for message in caplog.messages)


async def test_a_taken_port_or_name_is_refused_and_leaves_nothing_open(site: Site) -> None:
    port = site.gateway.port
    with pytest.raises(ConfigError, match=f"at 127.0.0.1:{port}: .*in use.* port 0, which takes a free one") as taken:
        await site.runtime.serve(port=port, name="other")
    assert (taken.value.code, taken.value.context) == ("BIND", {"host": "127.0.0.1", "port": port})
    with pytest.raises(ActorError) as raised:
        await site.runtime.serve()
    assert raised.value.code == "EXISTS"
    async with raw(site.gateway.port) as connection:
        assert (await connection.get("/nothing", HOST)).status == 404


async def test_a_stopped_gateway_can_be_opened_again_at_the_same_port(site: Site) -> None:
    port = site.gateway.port
    await site.gateway.stop()
    with pytest.raises(OSError, match="connect"):
        await trio.open_tcp_stream("127.0.0.1", port)
    again = await site.runtime.serve(port=port)
    assert again.port == port
    async with raw(port) as connection:
        assert (await connection.get("/nothing", HOST)).status == 404
