"""More pending at a terminal than one message holds: it is shown piece by piece, and nobody is closed for it."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from greenroom.actors.client import Reconnect, SocketLimits, connect
from greenroom.actors.gateway import GatewayLimits, attachments, session
from greenroom.protocol.errors import RpcError
from greenroom.protocol.forms import Form
from greenroom.protocol.rpc import FormPending, FormWithdrawn
from tests.gateway.conftest import ONE_FIELD, Site, peer, site_with
from tests.gateway.test_reconnecting import cut

PIECE = 100_000
"""What comes in one message, for the tests of this file."""
HALF: dict[str, Any] = {"fields": [{"control": "text", "name": "x", "label": "y" * (PIECE // 2)}]}
MORE = 10
"""Forms of half a piece each, so that most of them come later."""
NARROW = GatewayLimits(socket=SocketLimits(queued_bytes=PIECE))
"""Room for one or two of them in the line."""


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attachments, "PIECE", PIECE)


async def parked(site: Site) -> list[str]:
    return [await site.ops.park(Form(HALF)) for _ in range(MORE)]


async def test_what_does_not_fit_into_the_answer_follows_it_at_the_peers_own_pace() -> None:
    async with site_with(NARROW) as site, peer(site.url) as viewer:
        ids = await parked(site)
        attachment = await viewer.result("terminal/attach", {"terminal": "ops"})
        assert [form["id"] for form in attachment["pending"]] == ids[:2]
        assert attachment["following"] == ids[2:]
        assert sorted(attachment["remaining"]) == sorted(ids[:2])
        for id in ids[2:]:
            params = (await viewer.receive())["params"]
            assert (params["form"]["id"], params["remaining"] > 0) == (id, True)


async def test_what_ends_before_it_is_shown_is_not_shown_and_detaching_ends_the_showing() -> None:
    async with site_with(NARROW) as site, peer(site.url) as viewer, peer(site.url) as other:
        ids = await parked(site)
        await viewer.result("terminal/attach", {"terminal": "ops"})
        await site.ops.withdraw(ids[-1])
        shown = [(await viewer.receive()) for _ in ids[2:]]
        assert ids[-1] not in [message["params"].get("form", {}).get("id") for message in shown]
        await other.send(
            [
                {"jsonrpc": "2.0", "id": id, "method": f"terminal/{what}", "params": {"terminal": "ops"}}
                for id, what in enumerate(("attach", "detach"))
            ]
        )
        assert len(await other.receive()) == 2
        assert "terminals" in await other.result("terminal/list"), "nothing was shown in between"


async def test_the_client_waits_until_everything_is_there_and_tells_none_of_it_as_news() -> None:
    async with site_with(NARROW) as site, connect(site.url, reconnect=Reconnect(first=0.01)) as client:
        ids = await parked(site)
        async with client.attach("ops") as ops:
            assert list(ops.pending) == ids
            await site.ops.withdraw(ids[0])
            with trio.fail_after(5):
                event = await anext(ops)
            assert isinstance(event, FormWithdrawn)
            await cut(site)
            new = await site.ops.park(Form(ONE_FIELD))
            with trio.fail_after(5):
                event = await anext(ops)
            assert isinstance(event, FormPending)
            assert event.form.id == new, "what it knows is not told again, though it was sent anew"
            assert list(ops.pending) == [*ids[1:], new]


async def test_one_who_attaches_twice_is_told_nothing_twice() -> None:
    async with site_with(NARROW) as site, connect(site.url) as client:
        ids = await parked(site)
        async with client.attach("ops") as first, client.attach("ops") as second:
            assert list(first.pending) == list(second.pending) == ids
            new = await site.ops.park(Form(ONE_FIELD))
            for terminal in (first, second):
                with trio.fail_after(5):
                    event = await anext(terminal)
                assert isinstance(event, FormPending)
                assert event.form.id == new


async def test_a_result_that_no_client_would_take_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "LARGEST", 3 * PIECE)
    async with site_with() as site, connect(site.url) as client:
        await parked(site)
        with pytest.raises(RpcError) as refused:
            await client.pending("ops")
        assert refused.value.code == "SIZE"
        async with client.attach("ops") as ops:
            assert len(ops.pending) == MORE
