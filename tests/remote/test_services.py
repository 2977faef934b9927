"""What every runtime offers by itself: its agents, and their sessions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio

from greenroom.actors.agent import Agent
from greenroom.actors.client import Client, connect
from greenroom.actors.gateway import Access, AccessToken
from greenroom.actors.job import Job
from greenroom.actors.providers.scripted import ScriptedProvider, ScriptedTurn
from greenroom.actors.services.agents import AgentInfo, AgentPosted
from greenroom.actors.services.jobs import JobInfo, JobKilled
from greenroom.actors.services.sessions import SessionPage
from greenroom.protocol.access import Grants
from greenroom.protocol.agents import ProviderResult
from greenroom.protocol.errors import GreenroomError, RemoteError
from greenroom.protocol.sessions import SessionEvent, SessionHeader
from tests.gateway.conftest import Site, site_with, until

DONE = ProviderResult("done")
SLOW = ScriptedTurn(DONE, delay=1000.0)


@pytest.fixture
async def client(site: Site) -> AsyncIterator[Client]:
    async with connect(site.url) as client:
        yield client


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with site_with() as site:
        yield site


def add(site: Site, id: str, *script: ProviderResult | ScriptedTurn, **options: Any) -> Agent:
    return site.runtime.agents.add(Agent(ScriptedProvider(script), id=id, **options))


async def refusal(client: Client, method: str, **params: object) -> tuple[str, str]:
    with pytest.raises(RemoteError) as refused:
        await client.call(method, params, object)
    return refused.value.code, refused.value.message


async def test_an_agent_is_listed_spoken_to_and_stopped(site: Site, client: Client) -> None:
    planner = add(site, "planner", DONE, SLOW)
    add(site, "writer")
    listed = await client.call("agent/list", {}, tuple[AgentInfo, ...])
    assert [(agent.id, agent.status) for agent in listed] == [("planner", "idle"), ("writer", "idle")]
    posted = await client.call("agent/post", {"agentId": "planner", "text": "Plan it."}, AgentPosted)
    assert posted.message_id
    await until(lambda: planner.status == "done")
    await client.call("agent/post", {"agentId": "planner", "text": "Again.", "kind": "steer"}, AgentPosted)
    await until(lambda: planner.status == "running" and not planner.inbox.messages)
    await client.call("agent/post", {"agentId": "planner", "text": "Later.", "kind": "inject"}, AgentPosted)
    shown = await client.call("agent/show", {"agentId": "planner"}, AgentInfo)
    assert shown == AgentInfo(id="planner", status="running", waiting=1)
    await client.call("agent/abort", {"agentId": "planner", "reason": "enough"}, type(None))
    await until(lambda: planner.status == "done")
    assert planner.inbox.messages == ()


async def test_a_message_is_put_once_over_a_lost_connection_and_refused_with_what_to_do(
    site: Site, client: Client
) -> None:
    planner = add(site, "planner", inbox_limit=1)
    await client.call("agent/post", {"agentId": "planner", "text": "One.", "kind": "inject"}, AgentPosted)
    code, message = await refusal(client, "agent/post", agentId="planner", text="Two.", kind="inject")
    assert code == "agent/inbox-full"
    assert "1 messages" in message
    assert (await refusal(client, "agent/post", agentId="planner", text=" "))[0] == "agent/input"
    assert (await refusal(client, "agent/post", agentId="nobody", text="One."))[0] == "gateway/lookup-not-found"
    assert (await refusal(client, "agent/post", agentId="planner", text="x", kind="shout"))[0] == (
        "gateway/arguments-invalid"
    )
    await site.runtime.agents.remove("planner")
    assert (await refusal(client, "agent/show", agentId="planner"))[0] == "gateway/lookup-not-found"
    assert planner.inbox.messages == ()


async def test_a_job_is_listed_with_its_owner_and_killed(site: Site, client: Client) -> None:
    planner, jobs = add(site, "planner"), site.runtime.jobs

    async def forever(_: Job) -> str:
        await trio.sleep_forever()
        return ""

    own = await jobs.start("build", "Build it", forever, owner=planner)
    await jobs.start("watch", "Watch it", forever)
    listed = await client.call("job/list", {}, tuple[JobInfo, ...])
    assert [(info.job.id, info.owner) for info in listed] == [("build-1", "/agents/planner"), ("watch-1", None)]
    killed = await client.call("job/kill", {"jobId": "build-1", "reason": "not needed"}, JobKilled)
    assert (killed.outcome, killed.job.status) == ("cancellation-requested", "stopping")
    await until(lambda: own.over)
    shown = await client.call("job/show", {"jobId": "build-1"}, JobInfo)
    assert (shown.job.status, shown.job.detail) == ("killed", "not needed")
    again = await client.call("job/kill", {"jobId": "build-1"}, JobKilled)
    assert again.outcome == "already-finished"
    assert (await refusal(client, "job/kill", jobId="build-2"))[0] == "gateway/lookup-not-found"


async def test_a_session_is_listed_and_read_in_pages(site: Site, client: Client) -> None:
    session = await site.runtime.sessions.open("planner")
    for number in range(3):
        session.append("user/message", {"content": f"message {number}"})
    (header,) = await client.call("session/list", {}, tuple[SessionHeader, ...])
    assert header == session.header
    page = await client.call("session/read", {"session": "planner", "limit": 2}, SessionPage)
    assert [(event.seq, event.data["content"]) for event in page.events] == [(0, "message 0"), (1, "message 1")]
    assert (page.last, page.live) == (2, True)
    rest = await client.call("session/read", {"session": "planner", "afterSeq": 1}, SessionPage)
    assert [event.seq for event in rest.events] == [2]
    assert (await refusal(client, "session/read", session="nothing"))[0] == "session/not-found"
    assert (await refusal(client, "session/read", session="planner", limit=0))[0] == "gateway/arguments-invalid"
    assert (await refusal(client, "session/read", session="planner", afterSeq=-2))[0] == "gateway/arguments-invalid"


async def test_an_agent_whose_session_was_disposed_of_is_stopped_and_says_why_it_takes_nothing(
    site: Site, client: Client
) -> None:
    session = await site.runtime.sessions.open("planner")
    planner = site.runtime.agents.add(Agent(ScriptedProvider([SLOW]), session=session))
    planner.inbox.followup("One.")
    planner.inbox.followup("Two.")
    await until(lambda: len(planner.inbox.messages) == 1)
    await site.runtime.sessions.dispose(session)
    for method, params in (("agent/post", {"text": "Three."}), ("agent/abort", {})):
        code, message = await refusal(client, method, agentId="planner", **params)
        assert (code, "open it again" in message) == ("session/disposed", True)
    await until(lambda: planner.status != "running")


async def test_a_session_is_followed_from_a_position_until_it_is_disposed_of(site: Site, client: Client) -> None:
    session = await site.runtime.sessions.open("planner")
    other = await site.runtime.sessions.open("other")
    for number in range(2):
        session.append("user/message", {"content": f"message {number}"})
    seen: list[int] = []
    async with client.open_stream("session/follow", {"session": "planner", "afterSeq": 0}, SessionEvent) as events:
        seen.append((await events.__anext__()).seq)
        other.append("user/message", {"content": "not of this one"})
        session.append("user/message", {"content": "message 2"})
        seen.append((await events.__anext__()).seq)
        await site.runtime.sessions.dispose(session)
        seen += [event.seq async for event in events]
    assert seen == [1, 2]
    for id, code in (("nothing", "session/not-found"), ("planner", "session/not-live")):
        async with client.open_stream("session/follow", {"session": id}, SessionEvent) as events:
            with pytest.raises(RemoteError) as refused:
                await events.__anext__()
            assert refused.value.code == code


async def test_a_reader_that_leaves_listens_no_more(site: Site, client: Client) -> None:
    await site.runtime.sessions.open("planner")
    assert not site.runtime.sessions.appended.heard
    async with client.open_stream("session/follow", {"session": "planner"}, SessionEvent):
        await until(lambda: site.runtime.sessions.appended.heard)
    await until(lambda: not site.runtime.sessions.appended.heard)


async def test_nobody_gains_any_of_it_by_a_token_that_does_not_say_so() -> None:
    token = "a token from before there were remote methods"
    access = Access([AccessToken.of("ada", token, Grants(attach=("*",), tools=("*",), runs=("*",), tree=True))])
    async with site_with(access=access) as site, connect(site.url, token=token) as ada:
        await trio.lowlevel.checkpoint()
        for method in [endpoint.name for endpoint in site.runtime.remote.methods()]:
            with pytest.raises(GreenroomError) as refused:
                await ada.call(method, {}, object)
            assert refused.value.code == "METHOD"
        for stream in [endpoint.name for endpoint in site.runtime.remote.streams()]:
            with pytest.raises(RemoteError, match="There is no stream"):
                async with ada.open_stream(stream, {}, object):
                    raise AssertionError("it was opened")
