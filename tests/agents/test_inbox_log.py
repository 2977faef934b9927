"""The inbox of an agent with a session: what is logged, and what the next agent on that session reads."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from greenroom.actors.agent import Agent
from greenroom.actors.providers.scripted import ScriptedProvider, ScriptedTurn
from greenroom.actors.session import Session
from greenroom.actors.system import open_runtime
from greenroom.protocol.agents import InboxMessage, ProviderResult
from greenroom.protocol.errors import SessionError
from greenroom.protocol.sessions import INBOX, InboxSpliced, SessionEvent, UserMessage, project
from tests.agents.conftest import Stage, stored
from tests.killing import said_before_its_kill

DONE = ProviderResult("done")
NEVER = ScriptedTurn(DONE, delay=float("inf"))


def pending(session: Session) -> list[str]:
    return [message.text for message in project([INBOX], session.events()).values["inbox"]]


def read(session: Session) -> list[str]:
    return [event.data.content for event in session.events() if isinstance(event.data, UserMessage)]


async def test_each_change_is_logged_before_it_is_made(stage: Stage) -> None:
    session = await stage.runtime.sessions.open("planner")
    agent = stage.agent(DONE, seed=None, session=session)
    seen: list[tuple[int, int]] = []

    def look(told: Any) -> None:
        if isinstance(told.event.data, InboxSpliced):
            seen.append((len(told.event.data.inserted), len(agent.inbox.messages)))

    stage.runtime.bus.on("session/event", look)
    agent.inbox.inject("one")
    agent.inbox.followup("two")
    await trio.testing.wait_all_tasks_blocked()
    assert seen == [(1, 0), (1, 1), (0, 2)]
    types = [event.type for event in session.events()]
    assert types[:5] == [*["agent/inbox/spliced"] * 2, "turn/start", "agent/inbox/spliced", "user/message"]
    assert read(session) == ["one", "two"]
    assert pending(session) == []


async def test_what_a_log_refuses_is_not_put_in(stage: Stage) -> None:
    session = await stage.runtime.sessions.open("planner")
    agent = stage.agent(DONE, seed=None, session=session)
    await stage.runtime.sessions.dispose(session)
    with pytest.raises(SessionError) as refused:
        agent.inbox.followup("one")
    assert refused.value.code == "DISPOSED"
    assert agent.inbox.messages == ()


@pytest.mark.parametrize("keep", [False, True])
async def test_what_is_cleared_stays_cleared(stage: Stage, keep: bool) -> None:
    session = await stage.runtime.sessions.open("planner")
    agent = stage.agent(NEVER, seed=None, session=session)
    agent.inbox.followup("one")
    await trio.testing.wait_all_tasks_blocked()
    agent.inbox.followup("two")
    if not keep:
        agent.abort("enough")
    await stage.runtime.agents.remove("planner")
    assert pending(session) == (["two"] if keep else [])


async def test_the_next_agent_on_the_session_reads_what_the_last_one_has_not(stage: Stage) -> None:
    sessions = stage.runtime.sessions
    session = await sessions.open("planner")
    first = stage.agent(NEVER, seed=None, session=session)
    first.inbox.followup("one")
    await trio.testing.wait_all_tasks_blocked()
    first.inbox.followup("two")
    first.inbox.inject("three")
    await stage.runtime.agents.remove("planner")
    assert first.inbox.messages == ()
    await sessions.dispose(session)
    again = await sessions.open("planner")
    second = stage.agent(DONE, seed=None, session=again)
    await trio.testing.wait_all_tasks_blocked()
    assert read(again) == ["one", "two", "three"]
    assert stored(second)[-1] == ("assistant", "done")
    assert pending(again) == []


async def test_what_was_taken_over_in_a_fork_is_not_read_again(stage: Stage) -> None:
    sessions = stage.runtime.sessions
    session = await sessions.open("planner")
    agent = stage.agent(DONE, seed=None, session=session)
    agent.inbox.inject("not now")
    fork = await sessions.fork("planner", session.last, id="other")
    assert stage.agent(DONE, seed=None, session=fork).inbox.messages == ()


async def test_a_run_that_cannot_be_logged_fails_once_and_loses_nothing(stage: Stage) -> None:
    session = await stage.runtime.sessions.open("planner")
    session.append("turn/start", {})
    agent = stage.agent(DONE, seed=None, session=session)
    agent.inbox.followup("one")
    await trio.testing.wait_all_tasks_blocked()
    assert [type(error) for error in stage.told("error")] == [SessionError]
    assert [message.text for message in agent.inbox.messages] == ["one"]
    session.append("turn/end", {"reason": "interrupted"})
    agent.inbox.followup("two")
    await trio.testing.wait_all_tasks_blocked()
    assert read(session) == ["one", "two"]


def test_what_was_claimed_and_not_read_is_still_there() -> None:
    one, two, three = (InboxMessage(str(number), "followup", f"text {number}") for number in (1, 2, 3))

    def after(*data: InboxSpliced | UserMessage) -> list[str]:
        events = [SessionEvent(type="-", seq=at, time=0, data=each) for at, each in enumerate(data)]
        return [message.text for message in project([INBOX], events).values["inbox"]]

    put_in, claimed = InboxSpliced(inserted=(one, two, three)), InboxSpliced(removed=("1", "2"), claimed=True)
    assert after(put_in, claimed) == ["text 1", "text 2", "text 3"]
    assert after(put_in, claimed, UserMessage("text 1")) == ["text 2", "text 3"]
    assert after(put_in, claimed, UserMessage("text 2"), UserMessage("other")) == ["text 1", "text 3"]
    assert after(put_in, claimed, InboxSpliced(removed=("1", "3"))) == ["text 2"]
    claimed_again = InboxSpliced(removed=("1",), claimed=True)
    assert after(put_in, claimed, claimed_again, UserMessage("text 1")) == ["text 2", "text 3"]


KILLED = textwrap.dedent(
    """
    import sys
    import trio
    import greenroom
    from greenroom import ProviderResult, ScriptedTurn

    async def main() -> None:
        async with greenroom.open_runtime(data=sys.argv[1]) as runtime:
            session = await runtime.sessions.open("planner")
            never = greenroom.ScriptedProvider([ScriptedTurn(ProviderResult(""), delay=1000)])
            agent = runtime.agents.add(greenroom.Agent(never, session=session))
            for text in ("one", "two", "three"):
                agent.inbox.followup(text)
            await trio.sleep(0.05)
            agent.inbox.inject("four")
            await runtime.sessions.flush(session)
            print("ready", flush=True)
            await trio.sleep_forever()

    trio.run(main)
    """
)


async def test_what_waits_outlives_a_kill(tmp_path: Path) -> None:
    data = tmp_path / "data.db"
    assert await said_before_its_kill(KILLED, str(data)) == "ready"
    async with open_runtime(data=data) as runtime:
        session = await runtime.sessions.open("planner")
        assert pending(session) == ["two", "three", "four"]
        finished = trio.Event()
        agent = Agent(ScriptedProvider([DONE]), session=session)
        agent.emitter.on("finish", lambda _: agent.inbox.messages or finished.set())
        runtime.agents.add(agent)
        with trio.fail_after(30):
            await finished.wait()
        assert read(session) == ["one", "two", "four", "three"]
        assert pending(session) == []
