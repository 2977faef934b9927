"""A process that is killed in the middle of a batch of calls, and what an agent finds that goes on from its log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import trio

from greenroom.actors.agent import Agent
from greenroom.actors.providers.scripted import ScriptedProvider
from greenroom.actors.system import open_runtime
from greenroom.protocol.agents import MessageInput, ProviderResult
from tests.journal.kill_run import Writers, writers
from tests.sessions.conftest import session_of, told
from tests.sessions.killed import STAGES, kept, presses, pressing

OK, UNKNOWN, NEVER = None, "TOOL_OUTCOME_UNKNOWN", "TOOL_NOT_STARTED"

LEFT = {
    "before": (UNKNOWN, NEVER, NEVER),
    "policy": (OK, UNKNOWN, NEVER),
    "approval": (OK, NEVER, NEVER),
    "granted": (OK, UNKNOWN, NEVER),
    "body": (OK, UNKNOWN, NEVER),
    "after": (OK, UNKNOWN, NEVER),
    "result": (OK, UNKNOWN, NEVER),
}
"""What the log says of the three calls of the second turn."""

SECONDS = 30.0


@pytest.fixture(scope="module")
def alive() -> Iterator[Writers]:
    with writers("tests.sessions.killed") as found:
        yield found


@pytest.mark.case("pipeline", 29)
@pytest.mark.case("reports/pipeline", 6)
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("name", ["work.db", "work.logs"])
def test_each_call_of_a_killed_batch_has_one_result_in_place_and_nothing_runs_twice(
    alive: Writers, tmp_path: Path, stage: str, name: str
) -> None:
    path = tmp_path / name
    assert alive.live_and_die(STAGES.index(stage), path, SECONDS) == [f"dying {stage}"]
    ran = presses(path)
    trio.run(_go_on, path, stage)
    assert presses(path) == ran, "nothing runs again by itself"
    assert sorted(ran) == sorted(set(ran))
    assert ("2.1" in ran) == (stage in ("body", "after", "result"))


async def _go_on(path: Path, stage: str) -> None:
    async with open_runtime(**kept(path)) as runtime:
        stored = await runtime.sessions.persistence.read("planner")
        assert stored is not None
        session = await runtime.sessions.open("planner")
        events = session.events()
        assert [event.type for event in events[: len(stored.events)]] == [event.type for event in stored.events]
        added = events[len(stored.events) :]
        assert [event.type for event in added][-2:] == ["step/end", "turn/end"]
        await runtime.sessions.flush(session)
        again = await runtime.sessions.persistence.read("planner")
        assert again is not None
        assert again.events[: len(stored.events)] == stored.events, "it is not rewritten"
        results = [event.data for event in events if event.type == "tool/result"]
        codes = tuple(result.error and result.error.code for result in results)
        assert codes == (OK, OK, OK, *LEFT[stage])
        assert [result.position for result in results] == [0, 1, 2, 0, 1, 2]
        await runtime.sessions.dispose(session)
        assert (await runtime.sessions.open("planner")).events() == events, "a second opening adds nothing"
        agent = runtime.agents.add(
            Agent(
                ScriptedProvider([ProviderResult("I see")]),
                session=runtime.sessions.get("planner"),
                tools=[pressing(path)],
            )
        )
        agent.context.messages.add(MessageInput("user", "go on"))
        assert (await agent.generate()).content == "I see"
        roles = [role for role, _ in told(agent)]
        batch = ["user", "assistant", "tool", "tool", "tool"]
        assert roles == [*batch, "assistant", *batch, "user"]
        contents = [content for role, content in told(agent) if role == "tool"]
        for content, code in zip(contents[3:], LEFT[stage], strict=True):
            assert ("did not run" in content) == (code == NEVER)
            assert ("may have taken effect" in content) == (code == UNKNOWN)
        assert session_of(agent).order.turn is None
