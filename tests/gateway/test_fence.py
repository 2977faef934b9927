"""Who gets through: by `Host`, `Origin` and `Sec-Fetch-Site`, before an upgrade and before anything is dispatched."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.actors.gateway.fence import Fence
from greenroom.protocol.errors import ConfigError
from greenroom.protocol.forms import Form
from tests.gateway.conftest import ONE_FIELD, Peer, Site, site_with
from tests.gateway.raw import UPGRADE, head, raw


def lets_through(fence: Fence, host: str, origin: str | None = None, site: str | None = None) -> bool:
    return fence.objection([host], [] if origin is None else [origin], [] if site is None else [site]) is None


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8080", "127.0.0.1", "127.0.0.1:9", "127.8.8.8:1", "[::1]", "[::1]:80"]
)
def test_this_machine_is_trusted_under_its_own_names(host: str) -> None:
    assert lets_through(Fence(), host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "127.0.0.1@evil.example",
        "evil.example:80#localhost",
        "localhost, evil.example",
        "localhost/",
        "localhost:80:80",
        "localhost:",
        "localhost.",
        "127.1",
        "2130706433",
        "0.0.0.0",
        "[::]",
        "[::1",
        "::1",
        "192.168.1.2",
        "[fe80::1]",
    ],
)
def test_any_other_name_is_refused(host: str) -> None:
    assert not lets_through(Fence(), host)


def test_none_or_several_hosts_or_origins_are_refused() -> None:
    assert Fence().objection([], [], []) is not None
    assert Fence().objection(["localhost", "localhost"], [], []) is not None
    assert Fence().objection(["localhost"], ["http://localhost", "http://localhost"], []) is not None


@pytest.mark.parametrize(
    ("host", "origin", "passes"),
    [
        ("localhost:8080", "http://localhost:8080", True),
        ("localhost:8080", "https://localhost:8080", True),
        ("localhost:8080", "HTTP://LOCALHOST:8080", True),
        ("localhost", "http://localhost", True),
        ("localhost", "https://localhost", True),
        ("localhost:80", "http://localhost", True),
        ("[::1]:8080", "http://[::1]:8080", True),
        ("localhost:8080", "http://localhost", False),
        ("localhost:8080", "http://localhost:8081", False),
        ("localhost:8080", "http://127.0.0.1:8080", False),
        ("127.0.0.1:8080", "http://evil.example", False),
        ("localhost:8080", "null", False),
        ("localhost:8080", "", False),
        ("localhost:8080", "file://", False),
        ("localhost:8080", "ws://localhost:8080", False),
        ("localhost:8080", "http://localhost:8080/", False),
        ("localhost:8080", "http://user@localhost:8080", False),
    ],
)
def test_a_page_passes_only_at_the_very_host_that_it_calls(host: str, origin: str, passes: bool) -> None:
    assert lets_through(Fence(), host, origin) is passes


@pytest.mark.parametrize("site", ["cross-site", "Cross-Site", " cross-site "])
def test_another_site_is_refused(site: str) -> None:
    assert not lets_through(Fence(), "localhost", site=site)
    assert all(lets_through(Fence(), "localhost", site=same) for same in ("same-origin", "same-site", "none"))


def test_a_trusted_host_passes_with_its_port_and_one_without_a_port_with_any() -> None:
    fence = Fence(["greenroom.example:8443", "desk.local", "[fd00::1]", "10.0.0.7:80"])
    assert lets_through(fence, "greenroom.example:8443", "https://greenroom.example:8443")
    assert lets_through(fence, "Greenroom.Example:8443")
    assert not lets_through(fence, "greenroom.example:8444")
    assert not lets_through(fence, "greenroom.example")
    assert lets_through(fence, "desk.local")
    assert lets_through(fence, "desk.local:5000")
    assert lets_through(fence, "[FD00::1]:5000")
    assert not lets_through(fence, "desk.local:5000", "https://evil.example:5000")


def test_a_trusted_origin_passes_at_any_trusted_host() -> None:
    fence = Fence(origins=["http://localhost:5173", "null"])
    assert lets_through(fence, "127.0.0.1:8080", "http://localhost:5173")
    assert lets_through(fence, "127.0.0.1:8080", "null")
    assert not lets_through(fence, "evil.example", "http://localhost:5173")
    assert not lets_through(fence, "127.0.0.1:8080", "http://localhost:5174")


@pytest.mark.parametrize(
    "entry",
    ["", "Greenroom.example", "a b", "http://a", "a/", "a:080", "a:", "[FD00::1]", "[fd00:0::1]", "*", "a:123456"],
)
def test_a_trusted_host_that_is_not_as_browsers_send_it_is_refused_at_the_start(entry: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Fence([entry])
    assert (raised.value.code, raised.value.context) == ("TRUST", {"entry": entry})


@pytest.mark.parametrize(
    "entry", ["", "localhost", "http://A", "http://a:80", "https://a:443", "http://a/", "ws://a", "*"]
)
def test_a_trusted_origin_that_is_not_as_browsers_send_it_is_refused_at_the_start(entry: str) -> None:
    with pytest.raises(ConfigError, match="trusted origin"):
        Fence(origins=[entry])


@given(st.text(), st.lists(st.text(), max_size=2), st.lists(st.text(), max_size=2))
def test_no_header_breaks_the_fence(host: str, origin: list[str], site: list[str]) -> None:
    Fence(["desk.local"], ["null"]).objection([host], origin, site)


# -------------------------------------------------------------------- on sockets


async def status(site: Site, headers: dict[str, str], target: str = "/rpc") -> int:
    async with raw(site.gateway.port) as connection:
        return (await connection.get(target, headers)).status


async def test_only_pages_of_this_machine_open_a_websocket(site: Site) -> None:
    port = site.gateway.port
    own = f"127.0.0.1:{port}"
    assert await status(site, {"Host": own, "Origin": "http://evil.example", **UPGRADE}) == 403
    evil = f"evil.example:{port}"
    assert await status(site, {"Host": evil, "Origin": f"http://{evil}", **UPGRADE}) == 403
    assert await status(site, {"Host": own, **UPGRADE}) == 101
    assert await status(site, {"Host": own, "Origin": "null", **UPGRADE}) == 403
    named = f"localhost:{port}"
    assert await status(site, {"Host": named, "Origin": f"http://{named}", **UPGRADE}) == 101
    assert await status(site, {"Host": own, "Sec-Fetch-Site": "cross-site", **UPGRADE}) == 403


async def test_a_page_without_an_origin_passes_where_that_is_configured() -> None:
    async with site_with(trusted_origins=["null"]) as site:
        assert await status(site, {"Host": f"127.0.0.1:{site.gateway.port}", "Origin": "null", **UPGRADE}) == 101


@pytest.mark.parametrize("target", ["/", "/rpc", "/nothing", "/terminals/ops", "/%ff"])
async def test_the_fence_comes_before_any_path(site: Site, target: str) -> None:
    assert await status(site, {"Host": "evil.test"}, target) == 403


@pytest.mark.case("pipeline", 38)
async def test_a_foreign_host_gets_403_and_an_extra_param_is_named_without_its_value(site: Site, caller: Peer) -> None:
    assert await status(site, {"Host": "evil.test"}, "/") == 403
    assert await status(site, {"Host": "evil.test", **UPGRADE}) == 403
    error = (await caller.call("terminal/attach", {"terminal": "ops", "speed": "hunter2"}))["error"]
    assert error["code"] == -32602
    assert error["data"]["context"]["field"] == "speed"
    assert "speed" in error["message"]
    assert "hunter2" not in str(error)


async def test_what_is_sent_over_a_refused_connection_changes_nothing(site: Site) -> None:
    id = await site.ops.park(Form(ONE_FIELD))
    async with raw(site.gateway.port) as connection:
        answer = {"terminal": "ops", "id": id, "values": {"x": "forged"}}
        message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "terminal/answer", "params": answer}).encode()
        frame = bytes([0x81, 0xFE]) + len(message).to_bytes(2, "big") + b"\0\0\0\0" + message
        request = head("GET", "/rpc", {"Host": "evil.example", **UPGRADE})
        await connection.stream.send_all(request + frame)
        assert (await connection.response()).status == 403
        await connection.ended()
    assert site.parked("ops") == [id]
