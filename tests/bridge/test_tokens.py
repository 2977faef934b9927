"""Who may pass: a token that is fixed, and one that somebody decides about."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import trio
import trio.testing

from greenroom.actors.bridge import RouteRequest, Token, question_routes, terminal_routes
from greenroom.protocol.bridge import TOKEN_HEADER
from tests.bridge.conftest import Bridge


async def statuses(bridge: Bridge, *presented: str, name: str = "ops") -> tuple[int, int]:
    """What GET and POST answer to a header that is sent with each of these values."""
    request = RouteRequest(params={"name": name}, headers=tuple((TOKEN_HEADER, value) for value in presented))
    got, posted = await bridge.get_route.handler(request), await bridge.post_route.handler(request)
    for response in (got, posted):
        assert response.status == 200 or response.body == b""
    return got.status, posted.status


@pytest.mark.parametrize("routes", [terminal_routes, question_routes])
async def test_a_fixed_token_is_compared_as_it_is(bridge: Bridge, routes: Any) -> None:
    bridge.routes(routes(bridge.terminals, token="s\xe9cret"))
    assert await statuses(bridge, "s\xe9cret") == (200, 400)
    for presented in ((), ("",), ("secret",), ("s\xe9cret ",), ("S\xe9CRET",)):
        assert await statuses(bridge, *presented) == (401, 401)


async def test_an_empty_token_has_to_be_sent_too(bridge: Bridge) -> None:
    bridge.routes(terminal_routes(bridge.terminals, token=""))
    assert await statuses(bridge, "") == (200, 400)
    assert await statuses(bridge) == (401, 401)


@pytest.mark.case("terminals", 25)
async def test_the_token_comes_first_and_may_come_once(bridge: Bridge) -> None:
    bridge.routes(terminal_routes(bridge.terminals, token="s"))
    assert await statuses(bridge, "x", name="nobody") == (401, 401)
    assert await statuses(bridge, "s", name="nobody") == (404, 404)
    assert await statuses(bridge, "s", "s") == (401, 401)
    bridge.routes(terminal_routes(bridge.terminals, token="s, s"))
    assert await statuses(bridge, "s", "s") == (401, 401)


async def test_without_a_token_everybody_may_pass(bridge: Bridge) -> None:
    assert await statuses(bridge) == await statuses(bridge, "anything") == (200, 400)


async def test_a_validator_is_given_what_was_presented(bridge: Bridge) -> None:
    presented: list[str | None] = []

    def check(value: str | None) -> bool:
        presented.append(value)
        return value == "yes"

    bridge.routes(terminal_routes(bridge.terminals, token=check))
    assert await statuses(bridge, "yes") == (200, 400)
    assert await statuses(bridge) == await statuses(bridge, "yes", "no") == (401, 401)
    assert presented == ["yes", "yes", None, None, "yes, no", "yes, no"]


async def test_a_validator_that_raises_refuses(bridge: Bridge, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)

    def check(value: str | None) -> bool:
        raise ValueError(f"cannot read {value}")

    bridge.routes(terminal_routes(bridge.terminals, token=check))
    assert await statuses(bridge, "tok3n") == (401, 401)
    assert "ValueError" in caplog.text
    assert "tok3n" not in caplog.text


@pytest.mark.parametrize("answer", [1, "yes", [True], object()])
async def test_nothing_but_true_lets_pass(bridge: Bridge, answer: object) -> None:
    check: Any = lambda _value: answer  # noqa: E731 # as untyped as a mistake would be
    bridge.routes(terminal_routes(bridge.terminals, token=check))
    assert await statuses(bridge, "x") == (401, 401)


@pytest.mark.case("terminals", 24)
@pytest.mark.parametrize("raising", [False, True])
async def test_a_token_that_is_revoked_streams_for_at_most_one_interval(
    bridge: Bridge, autojump_clock: trio.testing.MockClock, raising: bool
) -> None:
    valid = {"t"}
    asked: list[float] = []

    def check(value: str | None) -> bool:
        asked.append(trio.current_time())
        if raising and not valid:
            raise RuntimeError
        return value in valid

    token: Token = check
    bridge.routes(terminal_routes(bridge.terminals, token=token, keepalive=10))
    reader = await bridge.connect(token="t")
    await trio.sleep(12)
    assert reader.new() == b": \n\n"
    valid.clear()
    await bridge.ask()
    assert len(reader.events) == 1  # until it is looked at again
    reader.new()
    await trio.sleep(10)
    assert (reader.new(), reader.ended) == (b"", True)
    assert bridge.terminals.subscriptions == 0
    assert len(asked) == 3
    await trio.sleep(100)
    assert len(asked) == 3
    assert (await bridge.get(token="t")).status == 401
