"""Remote methods as the Python client calls them."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from greenroom.actors.client import connect
from greenroom.protocol.errors import RemoteError, RpcError
from tests.cancelling import Doomed, at_every_step
from tests.gateway.conftest import Site, until
from tests.gateway.test_reconnecting import QUICK, cut
from tests.remote.conftest import Channel, Release, Releases, offered

Offered = tuple[Site, Releases]


async def test_a_remote_method_is_called_with_values_and_raises_what_it_refuses(releases: Offered) -> None:
    site, service = releases
    async with connect(site.url) as client:
        wanted: dict[str, Any] = {"version": "4.2", "projectId": "a", "channel": Channel("beta")}
        assert await client.call("release/start", wanted, Release) == Release("4.2", "apple")
        await client.call("release/forget", {}, type(None))
        with pytest.raises(RemoteError) as refused:
            await client.call("release/start", {"version": "frozen", "projectId": "a"}, Release)
        assert refused.value.code == "release/frozen"
        assert refused.value.context == {"until": "Monday", "endpoint": "release/start"}
        with pytest.raises(RpcError) as unsendable:
            await client.call("release/start", ["4.2"], Release)
        assert unsendable.value.code == "PARAMS"
    assert service.started == []


async def test_a_call_goes_on_over_a_lost_connection_and_is_done_once() -> None:
    async with offered() as (site, service), connect(site.url, reconnect=QUICK) as client:
        results: list[str] = []

        async def hold() -> None:
            results.append(await client.call("release/hold", {}, str))

        site.nursery.start_soon(hold)
        await service.entered.wait()
        service.entered = trio.Event()
        await cut(site)
        await client.call("release/count", {}, int)
        service.let_go.set()
        await until(lambda: results)
        assert results == ["let go"]
        assert not service.entered.is_set(), "it was entered once more"
        assert service.ended == []


async def test_a_call_that_is_cancelled_at_any_moment_was_carried_out_or_was_not() -> None:
    wanted = {"version": "4.2", "projectId": "a"}
    done: set[bool] = set()

    async def scenario(doomed: Doomed) -> None:
        async with offered() as (site, service), connect(site.url) as client:
            ended = await doomed(client.call, "release/start", wanted, Release)
            if not ended.cancelled:
                assert ended.value == Release("4.2", "apple")
            assert await client.call("release/count", {}, int) in (0, 1)
            assert len(service.started) <= 1
            done.add(bool(service.started))

    assert await at_every_step(scenario) > 5
    assert done == {False, True}
