"""Streams: items in order, an end that is told, and nothing left when anybody has enough."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

import msgspec
import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from greenroom.actors.client import connect
from greenroom.actors.gateway import Access, AccessToken, GatewayLimits, SocketLimits
from greenroom.actors.remote import remote_stream
from greenroom.actors.system import open_runtime
from greenroom.protocol.access import EVERYTHING, Grants
from greenroom.protocol.errors import RemoteError, RpcError
from tests.cancelling import Doomed, at_every_step
from tests.gateway.conftest import Peer, Site, accept_stream, peer, site_with, until
from tests.gateway.test_reconnecting import QUICK, cut
from tests.gateway.test_slow_peers import heard, say, shake
from tests.remote.conftest import Project, Releases

Clock: TypeAlias = trio.testing.MockClock


class Step(msgspec.Struct, frozen=True, rename="camel"):
    """A step of a release."""

    number: int
    whose_step: str = ""


class Secret(Step, frozen=True):
    secret: str = "hunter2"


class Feed:
    """Tells of steps."""

    def __init__(self) -> None:
        self.open = 0
        self.told = 0
        self.more = trio.Event()

    @remote_stream("steps")
    async def steps(self, count: int, project: Project | UnsetType = UNSET) -> AsyncIterator[Step]:
        """So many steps, one after the other."""
        self.open += 1
        try:
            for number in range(count):
                await trio.lowlevel.checkpoint()
                self.told += 1
                yield Secret(number, "" if isinstance(project, UnsetType) else project.name)
        finally:
            self.open -= 1

    @remote_stream("endless")
    async def endless(self, size: int) -> AsyncGenerator[str, None]:
        self.open += 1
        try:
            while True:
                await trio.lowlevel.checkpoint()
                self.told += 1
                yield "x" * size
        finally:
            self.open -= 1

    @remote_stream("waiting")
    async def waiting(self) -> AsyncIterator[int]:
        self.open += 1
        try:
            yield 1
            await self.more.wait()
            yield 2
        finally:
            self.open -= 1

    @remote_stream("failing")
    async def failing(self, how: str) -> AsyncIterator[Any]:
        yield 1
        if how == "refuse":
            raise RemoteError("feed/over", "The feed is over.", {"at": 1})
        if how == "fail":
            raise ValueError("hunter2")
        yield object()


@asynccontextmanager
async def feeding(**options: Any) -> AsyncGenerator[tuple[Site, Feed], None]:
    async with site_with(**options) as site:
        feed = Feed()
        site.runtime.remote.lookups.register(Project, Releases().find)
        site.runtime.remote.add("feed", feed)
        yield site, feed


async def receive_all(caller: Peer) -> list[Any]:
    """What comes of one stream, up to its end."""
    came: list[Any] = []
    while not came or came[-1]["method"] == "stream/item":
        came.append(await caller.receive())
    return came


async def test_a_stream_tells_its_items_in_order_and_that_it_has_ended() -> None:
    async with feeding() as (site, feed), peer(site.url) as caller:
        opened = await caller.call("stream/open", {"name": "feed/steps", "args": {"count": 2, "projectId": "a"}}, "s")
        assert opened == {"jsonrpc": "2.0", "id": "s", "result": {"stream": "s"}}
        assert [(message["method"], message["params"]) for message in await receive_all(caller)] == [
            ("stream/item", {"stream": "s", "value": {"number": 0, "whoseStep": "apple"}}),
            ("stream/item", {"stream": "s", "value": {"number": 1, "whoseStep": "apple"}}),
            ("stream/end", {"stream": "s"}),
        ]
        assert feed.open == 0
        assert await caller.result("stream/close", {"stream": "s"}) == {"closed": False}


async def test_a_stream_in_a_batch_is_known_by_its_id_before_it_is_answered() -> None:
    async with feeding() as (site, _), peer(site.url) as caller:
        await caller.send(
            [
                {
                    "jsonrpc": "2.0",
                    "id": 9,
                    "method": "stream/open",
                    "params": {"name": "feed/steps", "args": {"count": 0}},
                }
            ]
        )
        (answer,) = await caller.receive()
        assert answer["result"] == {"stream": 9}
        assert (await caller.receive())["params"] == {"stream": 9}


@pytest.mark.parametrize(
    ("how", "code", "context"),
    [
        ("refuse", "feed/over", {"at": 1}),
        ("fail", "gateway/internal", None),
        ("give", "gateway/result-invalid", None),
    ],
)
async def test_a_stream_that_fails_says_so_and_no_more_than_it_may(how: str, code: str, context: Any) -> None:
    async with feeding() as (site, _), peer(site.url) as caller:
        await caller.result("stream/open", {"name": "feed/failing", "args": {"how": how}})
        item, failed = await receive_all(caller)
        assert item["params"]["value"] == 1
        error = failed["params"]["error"]
        assert (failed["method"], error["code"], error["endpoint"]) == ("stream/error", code, "feed/failing")
        if context is not None:
            assert error["context"] == context
        assert "hunter2" not in json.dumps(failed)


@pytest.mark.parametrize(
    ("params", "code", "field"),
    [
        ({"name": "feed/steps", "args": {}}, "gateway/arguments-invalid", "count"),
        ({"name": "feed/steps", "args": {"count": 1, "hunter2": 1}}, "gateway/arguments-invalid", "hunter2"),
        ({"name": "feed/steps", "args": {"count": "hunter2"}}, "gateway/arguments-invalid", "count"),
        ({"name": "feed/steps", "args": {"count": 1, "key": "k"}}, "gateway/arguments-invalid", "key"),
        ({"name": "feed/steps", "args": {"count": 1, "projectId": "no"}}, "gateway/lookup-not-found", "projectId"),
        ({"name": "feed/stps", "args": {}}, "gateway/method-unavailable", None),
        ({"name": "fed/steps", "args": {}}, "gateway/service-unavailable", None),
        ({"name": "", "args": {}}, "PARAMS", None),
        ({"args": {}}, "PARAMS", None),
        ({"name": "feed/steps", "args": []}, "PARAMS", None),
    ],
)
async def test_what_opens_no_stream_is_refused(params: Any, code: str, field: str | None) -> None:
    async with feeding() as (site, feed), peer(site.url) as caller:
        data = (await caller.call("stream/open", params))["error"]["data"]
        assert (data["code"], data.get("field")) == (code, field)
        assert data.get("endpoint") == (None if code == "PARAMS" else params["name"])
        assert feed.told == feed.open == 0


async def test_a_stream_needs_an_id_of_its_own_and_a_method_is_none() -> None:
    async with feeding() as (site, feed), peer(site.url) as caller:
        params = {"name": "feed/waiting", "args": {}}
        await caller.send({"jsonrpc": "2.0", "method": "stream/open", "params": params})
        assert await caller.result("stream/open", params) == {"stream": 1}
        assert (await caller.receive())["params"]["value"] == 1
        assert feed.open == 1
        assert (await caller.call("stream/open", params))["error"]["data"]["code"] == "REQUEST"
        assert (await caller.call("feed/waiting", {}))["error"]["data"]["code"] == "METHOD"


async def test_a_closed_stream_tells_nothing_more_and_its_service_can_tidy_up() -> None:
    async with feeding() as (site, feed), peer(site.url) as caller:
        await caller.result("stream/open", {"name": "feed/waiting", "args": {}})
        assert (await caller.receive())["params"]["value"] == 1
        assert await caller.result("stream/close", {"stream": 1}) == {"closed": True}
        await until(lambda: feed.open == 0)
        feed.more.set()
        assert await caller.result("stream/close", {"stream": 1}) == {"closed": False}


async def test_the_end_of_a_connection_closes_its_streams() -> None:
    async with feeding() as (site, feed):
        async with peer(site.url) as caller:
            await caller.result("stream/open", {"name": "feed/waiting", "args": {}})
            await until(lambda: feed.open == 1)
        await until(lambda: feed.open == 0)
        await site.until_nothing_is_left()


ADA, BOB = "ada's own long token", "bob's own long token"


async def test_a_stream_needs_the_grant_and_ends_with_the_token() -> None:
    tokens = [AccessToken.of("ada", ADA, Grants(remote=("feed/w*",))), AccessToken.of("bob", BOB, Grants())]
    access = Access(tokens)
    limits = GatewayLimits(socket=SocketLimits(ping_interval=0.05))
    async with feeding(access=access, limits=limits) as (site, feed):
        async with connect(site.url, token=BOB) as bob:
            with pytest.raises(RemoteError) as hidden:
                async with bob.open_stream("feed/waiting", {}, int):
                    raise AssertionError("it was opened")
            assert (hidden.value.code, hidden.value.context["known"]) == ("gateway/service-unavailable", [])
        async with connect(site.url, token=ADA, reconnect=False) as ada:
            with pytest.raises(RemoteError) as refused:
                async with ada.open_stream("feed/steps", {"count": 1}, Step):
                    raise AssertionError("it was opened")
            assert (refused.value.code, refused.value.context["known"]) == (
                "gateway/method-unavailable",
                ["feed/waiting"],
            )
            async with ada.open_stream("feed/waiting", {}, int) as numbers:
                assert await numbers.__anext__() == 1
                access.replace([AccessToken.of("root", BOB, EVERYTHING)])
                with pytest.raises(RpcError) as ended:
                    await numbers.__anext__()
                assert ended.value.code == "CLOSED"
        await until(lambda: feed.open == 0)


async def test_the_streams_of_a_connection_and_of_a_token_are_limited() -> None:
    async with feeding(limits=GatewayLimits(streams=1)) as (site, _), peer(site.url) as caller:
        params = {"name": "feed/waiting", "args": {}}
        await caller.result("stream/open", params)
        await caller.receive()
        data = (await caller.call("stream/open", params, 2))["error"]["data"]
        assert (data["code"], data["context"]) == ("BUSY", {"most": 1})
        assert await caller.result("stream/close", {"stream": 1}) == {"closed": True}
    tokens = [AccessToken.of("ada", ADA, Grants(remote=("*",)))]
    async with feeding(access=Access(tokens), limits=GatewayLimits(subscriptions=1)) as (site, feed):
        async with connect(site.url, token=ADA) as one, connect(site.url, token=ADA) as other:
            async with one.open_stream("feed/waiting", {}, int):
                with pytest.raises(RpcError, match="as many as may be"):
                    async with other.open_stream("feed/waiting", {}, int):
                        raise AssertionError("it was opened")
            await until(lambda: feed.open == 0)
            async with other.open_stream("feed/waiting", {}, int) as numbers:
                assert await numbers.__anext__() == 1


moves = st.lists(
    st.tuples(st.sampled_from(["open", "open", "close", "refused", "cancel"]), st.integers(0, 4)), max_size=12
)


@given(moves)
@settings(max_examples=40)
def test_whatever_is_opened_and_closed_in_any_order_what_is_open_is_what_was_not_closed(
    moves: list[tuple[str, int]],
) -> None:
    async def main() -> None:
        async with feeding() as (site, feed):
            async with peer(site.url) as caller:
                opened: set[int] = set()

                async def answer(id: Any, method: str, params: Any) -> Any:
                    await caller.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
                    while (message := await caller.receive()).get("id") != id:
                        assert message["params"]["stream"] in opened
                    return message

                for move, id in moves:
                    if move == "open":
                        told = await answer(id, "stream/open", {"name": "feed/waiting", "args": {}})
                        assert ("result" in told) == (id not in opened)
                        opened.add(id)
                    elif move == "close":
                        told = await answer("c", "stream/close", {"stream": id})
                        assert told["result"] == {"closed": id in opened}
                        opened.discard(id)
                    elif move == "refused":
                        told = await answer(id, "stream/open", {"name": "feed/waiting", "args": {"x": 1}})
                        assert told["error"]["data"]["code"] == "gateway/arguments-invalid"
                    else:  # of a call that has ended
                        told = await answer("c", "rpc/cancel", {"id": id})
                        assert told["result"] == {"cancelled": False}
                await until(lambda: feed.open == len(opened))
            await until(lambda: feed.open == 0)
            await site.until_nothing_is_left()

    trio.run(main)


# -------------------------------------------------------------------- readers that do not keep up


async def test_a_reader_that_takes_nothing_loses_its_stream_and_is_told_when_it_reads_again(
    autojump_clock: Clock,
) -> None:
    async with open_runtime() as runtime:
        feed = Feed()
        runtime.remote.lookups.register(Project, Releases().find)
        runtime.remote.add("feed", feed)
        limits = GatewayLimits(socket=SocketLimits(send_timeout=60, ping_interval=600))
        stream = accept_stream(runtime, lockstep=True, limits=limits)
        await shake(stream)
        await say(stream, "stream/open", {"name": "feed/endless", "args": {"size": 10}})
        await trio.sleep(4.9)
        assert feed.open == 1
        told = feed.told
        assert told < 5, "items that nobody reads are not made"
        await trio.sleep(0.2)
        assert (feed.open, feed.told) == (0, told)
        came = await heard(stream, b"stream/error")
        assert b"stream/overflow" in came
        await say(stream, "terminal/list", {}, 2)
        await heard(stream, b'"terminals"')


async def test_a_reader_that_is_slow_but_reads_gets_every_item(autojump_clock: Clock) -> None:
    async with open_runtime() as runtime:
        runtime.remote.lookups.register(Project, Releases().find)
        runtime.remote.add("feed", Feed())
        stream = accept_stream(runtime, lockstep=True, limits=GatewayLimits(socket=SocketLimits(ping_interval=600)))
        await shake(stream)
        await say(stream, "stream/open", {"name": "feed/steps", "args": {"count": 5}})
        came = b""
        while b"stream/end" not in came:
            await trio.sleep(3)
            came += await stream.receive_some()
        assert came.count(b"stream/item") == 5


async def test_many_items_reach_a_reader_that_keeps_up() -> None:
    async with feeding() as (site, _), connect(site.url) as client:
        async with client.open_stream("feed/steps", {"count": 700}, Step) as steps:
            assert [step.number async for step in steps] == list(range(700))


# -------------------------------------------------------------------- the client


async def test_items_are_read_by_their_type_and_the_end_ends_the_loop() -> None:
    async with feeding() as (site, feed), connect(site.url) as client:
        async with client.open_stream("feed/steps", {"count": 2, "projectId": "a"}, Step) as steps:
            assert [step async for step in steps] == [Step(0, "apple"), Step(1, "apple")]
            assert steps.over
        async with client.open_stream("feed/failing", {"how": "refuse"}, int) as numbers:
            assert await numbers.__anext__() == 1
            with pytest.raises(RemoteError) as refused:
                await numbers.__anext__()
            assert refused.value.context == {"at": 1, "endpoint": "feed/failing"}
        async with client.open_stream("feed/waiting", {}, int) as numbers:
            async for number in numbers:
                assert number == 1
                break
        await until(lambda: feed.open == 0)


async def test_a_client_that_takes_too_few_items_is_told_and_the_stream_is_closed() -> None:
    async with feeding() as (site, feed), connect(site.url) as client:
        async with client.open_stream("feed/endless", {"size": 1}, str, buffer=3) as texts:
            await until(lambda: texts.over)
            await until(lambda: feed.open == 0)
            assert [await texts.__anext__() for _ in range(3)] == ["x"] * 3
            with pytest.raises(RemoteError) as slow:
                await texts.__anext__()
            assert slow.value.code == "stream/overflow"
        assert await client.terminals() != ()


async def test_an_item_of_another_type_ends_the_stream_with_result() -> None:
    async with feeding() as (site, feed), connect(site.url) as client:
        async with client.open_stream("feed/endless", {"size": 1}, int) as numbers:
            with pytest.raises(RpcError) as wrong:
                await numbers.__anext__()
            assert wrong.value.code == "RESULT"
            await until(lambda: feed.open == 0)


async def test_a_lost_connection_ends_a_stream_and_another_can_be_opened() -> None:
    async with feeding() as (site, feed), connect(site.url, reconnect=QUICK) as client:
        async with client.open_stream("feed/waiting", {}, int) as numbers:
            assert await numbers.__anext__() == 1
            await cut(site)
            with pytest.raises(RpcError, match="open it again") as lost:
                await numbers.__anext__()
            assert lost.value.code == "CLOSED"
        async with client.open_stream("feed/steps", {"count": 1}, Step) as steps:
            assert [step.number async for step in steps] == [0]
        await until(lambda: feed.open == 0)


async def test_a_stream_that_is_cancelled_at_any_moment_is_closed_and_its_connection_goes_on() -> None:
    async def act(client: Any) -> None:
        async with client.open_stream("feed/waiting", {}, int) as numbers:
            await numbers.__anext__()

    async def scenario(doomed: Doomed) -> None:
        async with feeding() as (site, feed), connect(site.url, reconnect=False) as client:
            await doomed(act, client)
            await client.terminals()
            await until(lambda: feed.open == 0)

    assert await at_every_step(scenario) > 10
