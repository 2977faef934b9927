"""Runs over the wire: started, seen, followed, steered, and only by whom it was granted."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from greenroom.actors.client import Client, connect
from greenroom.actors.gateway import Access, AccessToken
from greenroom.actors.workflow import MemoryWorkflowStore, TaskController
from greenroom.protocol.access import EVERYTHING, Grants
from greenroom.protocol.errors import GreenroomError, RpcError, WorkflowError
from greenroom.protocol.runs import RunPicture
from greenroom.protocol.workflows import WorkflowEvent
from tests.gateway.conftest import ONE_FIELD, Site, peer, site_with, until
from tests.gateway.test_reconnecting import QUICK, cut

ADA, ROOT = "ada's own long token", "the token of the administrator"


def release(id: str = "release", **task: Any) -> dict[str, Any]:
    """A build, and an approval of it."""
    return {
        "id": id,
        "name": "Release 4.2",
        "phases": [
            {"id": "build", "name": "Build", "tasks": [{"id": "build", "name": "Build", "behavior": "build"}]},
            {
                "id": "approve",
                "name": "Approve",
                "tasks": [{"id": "ask", "name": "Ask", "behavior": "ask", **task}],
            },
        ],
    }


@asynccontextmanager
async def running_site(**options: Any) -> AsyncGenerator[Site]:
    """A site whose runs build at once and then ask the terminal `ops`, or wait for the signal `go`."""
    async with site_with(**options) as site:

        async def build(controller: TaskController) -> int:
            await trio.lowlevel.checkpoint()
            return 42

        async def ask(controller: TaskController) -> Any:
            return await site.runtime.ask("ops", ONE_FIELD, timeout=None)

        async def wait(controller: TaskController) -> Any:
            return await controller.signal("go")

        site.runtime.workflows.functions.update(build=build, ask=ask, wait=wait)
        site.runtime.workflows.store = MemoryWorkflowStore()
        yield site


def told(events: list[WorkflowEvent]) -> list[str]:
    return [".".join(str(part) for part in (event.task, event.event) if part) for event in events]


async def collect(client: Client, id: str, after: int = 0, buffer: int = 1024) -> list[WorkflowEvent]:
    async with client.follow_run(id, after=after, buffer=buffer) as events:
        return [event async for event in events]


async def refused(client: Client, method: str, **params: Any) -> GreenroomError:
    with pytest.raises(GreenroomError) as error:
        await client.call(method, params, dict[str, Any])
    return error.value


# -------------------------------------------------------------------- starting and seeing


async def test_a_run_is_started_seen_and_comes_to_its_end() -> None:
    async with running_site() as site, connect(site.url) as client:
        info = await client.start_run(release())
        assert (info.id, info.name, info.live) == ("release", "Release 4.2", True)
        form = await site.the_form()
        picture = await client.show_run("release")
        assert [phase.status for phase in picture.run.phases] == ["completed", "running"]
        (wait,) = picture.waits
        assert (wait.task, wait.to, wait.message) == ("release/approve/ask", "ops", "Ask")
        assert [(run.id, run.tasks, run.over) for run in await client.runs()] == [("release", 2, 1)]
        await client.answer("ops", form, {"x": "yes"})
        await until(lambda: site.runtime.workflows.find("release").over)
        (over,) = await client.runs(status=["completed"])
        assert (over.live, over.status) == (False, "completed")
        assert await client.runs(status=["running"]) == ()


async def test_the_same_definition_is_the_same_run_and_another_one_is_refused() -> None:
    async with running_site() as site, connect(site.url) as client:
        await client.start_run(release())
        again = await client.start_run(release())
        assert again.live
        assert len(site.runtime.workflows.runs()) == 1
        with pytest.raises(WorkflowError) as error:
            await client.start_run(release(retries=3))
        assert error.value.code == "TRANSITION"


@pytest.mark.parametrize(
    ("definition", "code"),
    [
        (release(behavior="no such thing"), "TRANSITION"),
        ({"id": "x"}, "MUTATION"),
        ({**release(), "unknown": 1}, "MUTATION"),
    ],
    ids=["behaviour", "shape", "member"],
)
async def test_what_cannot_be_run_is_refused_and_leaves_nothing(definition: dict[str, Any], code: str) -> None:
    async with running_site() as site, connect(site.url) as client:
        with pytest.raises(WorkflowError) as error:
            await client.start_run(definition)
        assert error.value.code == code
        assert await client.runs() == ()
        assert site.runtime.workflows.count == 0


async def test_an_unknown_run_is_told_with_those_there_are() -> None:
    async with running_site() as site, connect(site.url) as client:
        await client.start_run(release())
        for method in ("run/show", "run/follow", "run/resume", "run/cancel"):
            error = await refused(client, method, run="relase")
            assert isinstance(error, WorkflowError)
            assert (error.code, error.context["known"]) == ("UNKNOWN", ["release"])


# -------------------------------------------------------------------- steering


async def test_a_cancelled_run_has_ended_when_the_call_returns_and_its_form_is_gone() -> None:
    async with running_site() as site, connect(site.url) as client:
        await client.start_run(release())
        await site.the_form()
        info = await client.cancel_run("release")
        assert (info.status, info.live) == ("stopped", False)
        assert site.parked("ops") == []
        assert (await client.cancel_run("release")).status == "stopped"
        with pytest.raises(WorkflowError, match="takes no signals"):
            await client.signal_run("release", "go")


async def test_a_signal_reaches_the_task_that_waits_for_it() -> None:
    async with running_site() as site, connect(site.url) as client:
        await client.start_run(release(behavior="wait"))
        await client.signal_run("release", "go", {"by": "ada"})
        events = await collect(client, "release")
        (result,) = [event.result for event in events if event.task == "ask" and event.event == "complete"]
        assert result
        assert result.result.value == {"by": "ada"}


async def test_a_suspended_run_is_listed_and_resumed() -> None:
    async with running_site() as site, connect(site.url) as client:
        await client.start_run(release())
        await site.the_form()
        await site.runtime.workflows.find("release").suspend()
        (info,) = await client.runs()
        assert (info.status, info.live) == ("running", False)
        with pytest.raises(WorkflowError, match="Resume it first"):
            await client.cancel_run("release")
        assert (await client.resume_run("release")).live
        form = await site.the_form()
        await client.answer("ops", form, {"x": "yes"})
        events = await collect(client, "release")
        assert told(events).count("build.complete") == 0  # it was recorded, and does not run again
        assert (await client.show_run("release")).run.status == "completed"


# -------------------------------------------------------------------- following


async def test_whoever_follows_is_told_every_event_once_and_the_end() -> None:
    async with running_site() as site, connect(site.url) as client, trio.open_nursery() as nursery:
        await client.start_run(release())
        followed: list[list[WorkflowEvent]] = []

        async def follow(after: int) -> None:
            followed.append(await collect(client, "release", after))

        nursery.start_soon(follow, 0)
        nursery.start_soon(follow, 4)
        await client.answer("ops", await site.the_form(), {"x": "yes"})
        await until(lambda: len(followed) == 2)
        late, whole = sorted(followed, key=len)
        assert [event.number for event in whole] == list(range(1, len(whole) + 1))
        assert late == whole[4:]
        assert told(whole)[-1] == "complete"
        async with client.follow_run("release", after=len(whole)) as nothing:
            assert [event async for event in nothing] == []
        assert nothing.status == "completed"


async def test_a_lost_connection_loses_no_event_and_tells_none_twice() -> None:
    async with running_site() as site, connect(site.url, reconnect=QUICK) as client:
        await client.start_run(release())
        numbers: list[int] = []
        told_the_end = trio.Event()

        async def follow() -> None:
            async with client.follow_run("release") as events:
                async for event in events:
                    numbers.append(event.number)
            told_the_end.set()

        site.nursery.start_soon(follow)
        form = await site.the_form()
        run = site.runtime.workflows.find("release")
        for _ in range(3):
            await until(lambda: numbers[-1:] == [run.last])
            await cut(site)
            await run.signal("meanwhile")
        await client.answer("ops", form, {"x": "yes"})
        with trio.fail_after(5):
            await told_the_end.wait()
        assert numbers == list(range(1, run.last + 1))


async def test_a_slow_reader_holds_few_events_and_still_gets_all() -> None:
    async with running_site() as site, connect(site.url) as client:
        await client.start_run(release())
        await site.the_form()
        run = site.runtime.workflows.find("release")
        for number in range(50):
            await run.signal(f"signal {number}")
        async with client.follow_run("release", buffer=4) as events:
            first = await anext(events)
            await trio.testing.wait_all_tasks_blocked(0.05)
            assert len(events._events) <= 4
            numbers = [first.number]
            await client.cancel_run("release")
            numbers += [event.number async for event in events]
        assert numbers == list(range(1, run.last + 1))


async def test_a_peer_that_does_not_read_is_told_when_it_reads_and_is_not_given_up() -> None:
    async with running_site() as site, peer(site.url) as caller:
        run = await site.runtime.workflows.start(release())
        await site.the_form()
        for _ in range(400):  # together more than sockets and queues hold
            await run.signal("note", "x" * 20_000)
        await caller.send({"jsonrpc": "2.0", "id": 1, "method": "run/follow", "params": {"run": "release"}})
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert site.gateway.connections == 1
        numbers = [(await caller.receive())["params"]["event"]["number"] for _ in range(run.last)]
        assert numbers == list(range(1, run.last + 1))


async def test_leaving_the_block_ends_the_following_at_the_server() -> None:
    async with running_site() as site, connect(site.url) as client:
        await client.start_run(release())
        await site.the_form()
        async with client.follow_run("release") as events:
            await anext(events)
            assert client._followed
        assert client._followed == {}
        await client.terminals()
        (connection,) = (site.runtime.tree.find("/gateway/connections").children or {}).values()
        await until(lambda: connection.actor._session._calls == {})  # type: ignore[attr-defined]  # of a Connection


async def test_following_as_a_notification_is_refused_and_sends_nothing() -> None:
    async with running_site() as site, peer(site.url) as caller:
        await site.runtime.workflows.start(release())
        await caller.send({"jsonrpc": "2.0", "method": "run/follow", "params": {"run": "release"}})
        answer = await caller.call("terminal/list")
        assert answer["id"] == 1


async def test_events_name_the_call_under_which_they_were_asked_for() -> None:
    async with running_site() as site, peer(site.url) as caller:
        await site.runtime.workflows.start(release())
        await site.the_form()
        first = await caller.call("run/follow", {"run": "release"}, id="mine")
        assert (first["method"], first["params"]["call"], first["params"]["run"]) == ("run/event", "mine", "release")
        assert first["params"]["event"]["number"] == 1


# -------------------------------------------------------------------- who may


async def test_a_run_that_was_not_granted_is_as_if_it_were_not_there() -> None:
    access = Access(
        [
            AccessToken.of("ada", ADA, Grants(runs=("night-*",), drive=("night-build",))),
            AccessToken.of("root", ROOT, EVERYTHING),
        ]
    )
    async with running_site(access=access) as site:
        async with connect(site.url, token=ADA) as ada, connect(site.url, token=ROOT) as root:
            for id in ("release", "night-check"):
                await root.start_run(release(id))
            assert [run.id for run in await ada.runs()] == ["night-check"]
            assert isinstance(await ada.show_run("night-check"), RunPicture)
            for method in ("run/show", "run/follow", "run/cancel", "run/resume"):
                error = await refused(ada, method, run="release")
                assert (error.code, error.context["known"]) == ("UNKNOWN", ["night-check"])
            for method, more in (("run/cancel", {}), ("run/resume", {}), ("run/signal", {"name": "go"})):
                error = await refused(ada, method, run="night-check", **more)
                assert isinstance(error, RpcError)
                assert (error.code, error.context) == ("DENIED", {"grant": "drive"})
            assert (await refused(ada, "run/start", definition=release("other"))).code == "DENIED"
            assert (await ada.start_run(release("night-build"))).live
        assert len(site.runtime.workflows.runs()) == 3
