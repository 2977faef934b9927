"""A request that is cancelled, whenever that is, leaves nothing behind and hides no cancellation."""

from __future__ import annotations

import trio
import trio.testing

from greenroom.actors.providers.openai import OpenAIProvider
from greenroom.protocol.agents import ProviderResult
from tests.cancelling import Doomed, at_every_step
from tests.providers.conftest import answer
from tests.providers.server import Act, model_server, sse

H = {"choices": [{"index": 0, "delta": {"content": "h"}}]}
END = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


async def test_a_cancelled_request_leaves_nothing(autojump_clock: trio.testing.MockClock) -> None:
    async def scenario(doomed: Doomed) -> None:
        async with model_server() as server:
            server.plays(Act(status=503), [sse(H), 1.0, sse(H, END, "[DONE]")])
            async with OpenAIProvider("m", base_url=server.url, key_env=None) as provider:
                ended = await doomed(answer, provider)
                assert ended.cancelled or ended.value == ProviderResult("hh")
                assert await answer(provider) == ProviderResult("hh")
            await trio.testing.wait_all_tasks_blocked()
            assert server.open == 0

    assert await at_every_step(scenario) > 20
