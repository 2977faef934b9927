"""Tokens: nobody comes in without one, and nobody reaches what it does not grant."""

from __future__ import annotations

import base64
import hashlib
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme

from greenroom.actors.client import Client, connect
from greenroom.actors.gateway import Access, AccessToken, GatewayLimits, SocketLimits, read_tokens
from greenroom.actors.gateway.access import FORGET_AFTER, presented_token
from greenroom.actors.system import open_runtime
from greenroom.protocol.access import EVERYTHING, Grants
from greenroom.protocol.errors import ConfigError, GreenroomError, RpcError, TerminalError
from tests.gateway.conftest import ONE_FIELD, Site, site_with, until
from tests.gateway.raw import UPGRADE, head, raw

__all__ = ["ADA", "OPS", "ROOT", "guarded", "refused", "tokens"]

ADA, OPS, ROOT = "ada's own long token", "the token of the operators", "the token of the administrator"


def tokens(*, ada_expires: float | None = None) -> list[AccessToken]:
    return [
        AccessToken.of("ada", ADA, Grants(attach=("ops",), ask=("ops",), ask_as=("ada-*",)), ada_expires),
        AccessToken.of("ops", OPS, Grants(attach=("ops",), answer=("ops",), tools=("describe",))),
        AccessToken.of("root", ROOT, EVERYTHING),
    ]


@asynccontextmanager
async def guarded(**options: Any) -> AsyncGenerator[Site, None]:
    access = options.pop("access", None) or Access(tokens())
    async with site_with(access=access, **options) as site:
        site.terminals.add("secret")
        yield site


async def refused(client: Client, method: str, **params: Any) -> str:
    with pytest.raises(GreenroomError) as error:
        await client.call(method, params, dict[str, Any])
    return error.value.code


async def test_without_a_valid_token_nobody_comes_in_and_every_refusal_is_alike() -> None:
    async with guarded() as site:
        answers: set[tuple[int, str]] = set()
        for extra in (
            {},
            {"Authorization": "Bearer wrong"},
            {"Authorization": f"Bearer {ADA}x"},
            {"Authorization": "Basic x"},
        ):
            async with raw(site.gateway.port) as connection:
                host = {"Host": f"127.0.0.1:{site.gateway.port}"}
                await connection.stream.send_all(head("GET", "/rpc", {**host, **UPGRADE, **extra}))
                response = await connection.response()
                answers.add((response.status, response.text))
        assert len(answers) == 1
        assert answers.pop()[0] == 401
        with pytest.raises(RpcError, match="wants a token"):
            async with connect(site.url):
                raise AssertionError("it was let in")


async def test_the_fence_comes_before_the_token_tells_anything() -> None:
    async with guarded() as site, raw(site.gateway.port) as connection:
        foreign = {"Host": "evil.example", "Authorization": f"Bearer {ROOT}"}
        await connection.stream.send_all(head("GET", "/rpc", {**foreign, **UPGRADE}))
        assert (await connection.response()).status == 403


async def test_a_token_reaches_what_it_grants_and_does_not_see_the_rest() -> None:
    async with guarded() as site, connect(site.url, token=ADA) as ada, connect(site.url, token=OPS) as ops:
        assert [terminal.name for terminal in await ada.terminals()] == ["ops"]
        with pytest.raises(TerminalError) as unknown:
            async with ada.attach("secret"):
                raise AssertionError("it was attached")
        assert unknown.value.context["known"] == ["ops"]
        assert "secret" not in unknown.value.message.replace("terminal secret", "")
        assert await refused(ada, "terminal/ask", to="secret", schema=ONE_FIELD) == "TARGET"
        assert await refused(ada, "terminal/pending", terminal="secret") == "TARGET"
        assert await refused(ada, "terminal/ask", to="ops", schema=ONE_FIELD, **{"from": "root"}) == "DENIED"
        assert await refused(ada, "system/tree") == "DENIED"
        assert await ada.tools() == ()
        assert (await ada.call_tool("describe", {"name": "x"})).success is False

        values: list[Any] = []

        async def ask() -> None:
            values.append(await ada.ask("ops", ONE_FIELD, from_="ada-1"))

        site.nursery.start_soon(ask)
        await site.until(lambda: site.ops.count)
        (record,) = site.ops.pending()
        assert await refused(ada, "terminal/answer", terminal="ops", id=record.id, values={"x": "mine"}) == "DENIED"
        assert not (await ada.answer("secret", record.id, {"x": "mine"})).success
        assert not await ops.withdraw("ops", record.id)
        assert (await ops.answer("ops", record.id, {"x": "ok"})).success
        await until(lambda: values)
        assert values == [{"x": "ok"}]


async def test_pending_of_all_terminals_is_of_those_that_may_be_seen() -> None:
    async with guarded() as site, connect(site.url, token=OPS) as ops, connect(site.url, token=ROOT) as root:
        for name in ("ops", "secret"):
            site.nursery.start_soon(site.runtime.ask, name, ONE_FIELD)
        await site.until(lambda: len(site.terminals.pending()) == 2)
        assert [record.to for record in await ops.pending()] == ["ops"]
        assert [record.to for record in await root.pending()] == ["ops", "secret"]
        assert (await root.tree()).root.path == "/"


async def test_the_bridge_asks_for_the_token_and_its_grants() -> None:
    async with guarded() as site:
        host = {"Host": f"127.0.0.1:{site.gateway.port}"}
        for path, token, status in (
            ("/terminals/ops", None, 401),
            ("/terminals/nothing", "wrong", 401),
            ("/terminals/secret", OPS, 404),
            ("/terminals/nothing", OPS, 404),
            ("/questions/secret", OPS, 404),
        ):
            for method in ("GET", "POST"):
                async with raw(site.gateway.port) as connection:
                    headers = {**host, **({} if token is None else {"x-orkestrel-token": token})}
                    await connection.stream.send_all(head(method, path, {**headers, "Content-Length": "0"}))
                    assert (await connection.response(method)).status == status
        async with raw(site.gateway.port) as connection:  # as a bearer, too
            headers = {**host, "Authorization": f"Bearer {OPS}", "Content-Length": "1"}
            await connection.stream.send_all(head("POST", "/terminals/ops", headers) + b"x")
            assert (await connection.response("POST")).status == 400


async def test_a_browser_presents_it_among_the_subprotocols_and_is_answered_with_the_plain_one() -> None:
    async with guarded() as site, raw(site.gateway.port) as connection:
        carried = base64.urlsafe_b64encode(ADA.encode()).decode().rstrip("=")
        offered = {"Sec-WebSocket-Protocol": f"greenroom, greenroom.token.{carried}"}
        host = {"Host": f"127.0.0.1:{site.gateway.port}"}
        await connection.stream.send_all(head("GET", "/rpc", {**host, **UPGRADE, **offered}))
        response = await connection.response()
        assert response.status == 101
        assert response.headers["sec-websocket-protocol"] == "greenroom"


async def test_what_a_revoked_token_asked_leaves_every_screen_with_its_connection() -> None:
    access = Access(tokens())
    limits = GatewayLimits(socket=SocketLimits(ping_interval=0.05))
    async with guarded(access=access, limits=limits) as site, connect(site.url, token=ADA) as ada:

        async def ask() -> None:
            with pytest.raises(RpcError):
                await ada.ask("ops", ONE_FIELD, from_="ada-1")

        site.nursery.start_soon(ask)
        await site.the_form()
        access.replace(tokens()[1:])
        await site.until(lambda: not site.ops.count)  # not after the grace of 30 s


@pytest.mark.parametrize("how", ["expired", "revoked"])
async def test_a_token_that_ends_ends_its_connections_within_a_heartbeat(how: str) -> None:
    now = [100.0]
    access = Access(tokens(ada_expires=200.0), wall_clock=lambda: now[0])
    limits = GatewayLimits(socket=SocketLimits(ping_interval=0.05))
    async with guarded(access=access, limits=limits) as site:
        async with (
            connect(site.url, reconnect=False, token=ADA) as ada,
            connect(site.url, reconnect=False, token=OPS) as ops,
        ):
            await ada.terminals()
            if how == "expired":
                now[0] = 200.0
            else:
                access.replace(tokens()[1:])
            with trio.fail_after(5), pytest.raises(RpcError) as ended:
                await _call_for_ever(ada)
            assert ended.value.code == "CLOSED"
            assert ended.value.context["code"] == 1008
            await ops.terminals()
        with pytest.raises(RpcError, match="the token was refused"):
            async with connect(site.url, reconnect=False, token=ADA):
                raise AssertionError("it was let in again")


async def test_a_token_has_so_many_connections() -> None:
    async with guarded(limits=GatewayLimits(connections=2)) as site:
        async with connect(site.url, reconnect=False, token=OPS), connect(site.url, reconnect=False, token=OPS):
            with pytest.raises(RpcError) as full:
                async with connect(site.url, reconnect=False, token=OPS):
                    raise AssertionError("it was let in")
            assert full.value.context["status"] == 429
            async with connect(site.url, reconnect=False, token=ADA) as other:
                await other.terminals()
        async with connect(site.url, reconnect=False, token=OPS) as again:
            await again.terminals()


async def test_a_token_has_so_many_requests_a_second() -> None:
    async with (
        guarded(limits=GatewayLimits(requests=1.0)) as site,
        connect(site.url, reconnect=False, token=OPS) as one,
    ):
        codes = [await _code(one) for _ in range(12)]
        assert codes[:5] == [None] * 5
        assert set(codes[6:]) == {"BUSY"}


async def test_a_token_has_so_many_subscriptions_over_all_its_connections() -> None:
    async with guarded(limits=GatewayLimits(subscriptions=1)) as site:
        async with (
            connect(site.url, reconnect=False, token=ROOT) as root,
            connect(site.url, reconnect=False, token=ROOT) as again,
        ):
            async with root.attach("ops"):
                with pytest.raises(RpcError) as more:
                    async with again.attach("secret"):
                        raise AssertionError("it was attached")
                assert more.value.code == "BUSY"
            await root.terminals()  # whatever was sent before is over
            async with again.attach("secret"):
                pass


async def _call_for_ever(client: Client) -> None:
    while True:
        await client.terminals()
        await trio.sleep(0.01)


async def _code(client: Client) -> str | None:
    try:
        await client.terminals()
    except RpcError as error:
        return error.code
    return None


def test_failed_attempts_wait_longer_each_time_and_are_forgotten() -> None:
    now = [0.0]
    access = Access(tokens(), clock=lambda: now[0])
    delays = [access.failed("10.0.0.1") for _ in range(12)]
    assert delays == sorted(delays)
    assert delays[0] < 0.1
    assert delays[-1] == 5.0
    assert access.failed("10.0.0.2") == delays[0]
    now[0] = FORGET_AFTER + 1
    assert access.failed("10.0.0.1") == delays[0]


def test_no_token_at_all_is_nobodys_token() -> None:
    token = AccessToken(name="odd", digest=hashlib.sha256(b"").digest(), grants=EVERYTHING)
    assert Access([token]).identify("") is None


def test_taking_every_token_away_opens_nothing() -> None:
    access = Access(tokens())
    access.replace([])
    assert not access.open
    assert access.identify(ROOT) is None
    assert access.identify(None) is None
    with pytest.raises(ConfigError):
        Access().replace(tokens())


@pytest.mark.parametrize(
    ("authorization", "protocols", "header", "found"),
    [
        (["Bearer a"], [], [], "a"),
        (["bearer  a "], [], [], "a"),
        ([], ["greenroom", "greenroom.token.YQ"], [], "a"),
        ([], ["greenroom.token.!!"], [], None),
        ([], ["greenroom.token._w"], [], None),
        ([], [], ["a"], "a"),
        ([], [], ["a", "a"], None),
        (["Bearer a"], [], ["a"], None),
        (["Bearer "], [], [], None),
        ([], [], [], None),
    ],
)
def test_one_token_is_presented_in_one_place(
    authorization: list[str], protocols: list[str], header: list[str], found: str | None
) -> None:
    assert presented_token(authorization, protocols, header) == found


def test_tokens_are_read_by_reference_or_by_hash(tmp_path: Path) -> None:
    file = tmp_path / "tokens.toml"
    file.write_text(
        f"""
        [ada]
        token_env = "ADA"
        expires = 2027-01-01T00:00:00Z
        attach = ["ops-*"]

        [root]
        token_sha256 = "{hashlib.sha256(ROOT.encode()).hexdigest()}"
        admin = true
        """
    )
    access = Access(read_tokens(file, {"ADA": ADA}), wall_clock=lambda: 1.8e9 - 1e9)
    ada, root = access.identify(ADA), access.identify(ROOT)
    assert ada is not None
    assert root is not None
    assert (ada.grants.may_attach("ops-1"), ada.grants.may_attach("op"), ada.grants.may_answer("ops-1")) == (
        True,
        False,
        False,
    )
    assert root.grants.may_call("anything")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no token"),
        ("[a", "no TOML"),
        ("x = " + "[" * 100_000, "no TOML"),
        ("[a]\nattach = []", "token_env"),
        ('[a]\ntoken_env = "NONE"', "NONE"),
        ('[a]\ntoken_env = "SHORT"', "shorter than 16"),
        ('[a]\ntoken = "in the file"', "token"),
        ('[a]\ntoken_sha256 = "xyz"', "64 hexadecimal"),
        ('[a]\ntoken_env = "ADA"\nattach = "ops"', "attach"),
        ('[a]\ntoken_env = "ADA"\ntoken_sha256 = "x"', "one of them"),
    ],
)
def test_a_file_of_tokens_with_a_fault_is_refused_by_table_and_key(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "tokens.toml"
    file.write_text(text)
    with pytest.raises(ConfigError) as error:
        read_tokens(file, {"ADA": ADA, "SHORT": "hunter2"})
    assert says in error.value.message
    assert "hunter2" not in error.value.message
    assert ADA not in error.value.message


async def test_other_machines_are_served_only_with_tokens() -> None:
    async with open_runtime() as runtime:
        with pytest.raises(ConfigError) as error:
            await runtime.serve(host="0.0.0.0")
        assert error.value.code == "BIND"
    async with guarded(host="0.0.0.0") as site, connect(f"ws://127.0.0.1:{site.gateway.port}/rpc", token=ADA) as ada:
        assert await ada.terminals()


async def test_over_tls_everything_is_as_without() -> None:
    authority = trustme.CA()
    server, trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(server)
    authority.configure_trust(trusting)
    async with guarded(tls=server) as site:
        assert site.url.startswith("wss://127.0.0.1:")
        async with connect(site.url, token=OPS, tls=trusting) as ops, ops.attach("ops") as terminal:
            site.nursery.start_soon(site.runtime.ask, "ops", ONE_FIELD)
            await anext(terminal)
            (id,) = terminal.pending
            assert (await terminal.answer(id, {"x": "ok"})).success
        async with raw(site.gateway.port) as plain:  # speaks no TLS
            await plain.stream.send_all(head("GET", "/", {"Host": "localhost"}))
        with pytest.raises(RpcError):
            async with connect(site.url, token=OPS):  # does not trust it
                raise AssertionError("it was let in")
