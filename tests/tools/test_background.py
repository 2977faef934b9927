"""Tools whose calls may go on in the background."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import trio
import trio.testing
from msgspec import Struct

from greenroom.actors.job import Job
from greenroom.actors.system import Runtime, open_runtime
from greenroom.protocol.errors import JobError, ToolError
from greenroom.protocol.tools import ToolCall, ToolFailure, ToolSuccess
from greenroom.runtime.background import current_job
from greenroom.runtime.bus import Next
from greenroom.runtime.pipeline.handling import Handling
from greenroom.runtime.pipeline.invocations import Invocation
from greenroom.runtime.pipeline.verdicts import Deny, Verdict
from greenroom.runtime.tools import Tool
from tests.jobs.conftest import Stage


class Fetch(Struct):
    """Fetches a page."""

    url: str
    description: str = ""


class Page(Struct):
    page: str


async def endless(_call: Fetch) -> None:
    await trio.sleep_forever()


async def fetch(call: Fetch) -> dict[str, str]:
    await trio.lowlevel.checkpoint()
    return {"page": call.url}


@pytest.fixture
async def runtime() -> AsyncIterator[Runtime]:
    async with open_runtime() as runtime:
        yield runtime


def add(runtime: Runtime, execute: Any = fetch, **options: Any) -> Tool:
    options = {"parameters": Fetch} | options
    tool = Tool("fetch", execute, background=runtime.jobs, **options)
    runtime.tools.add(tool)
    return tool


async def call(runtime: Runtime, **arguments: Any) -> Any:
    result = await runtime.tools.execute(ToolCall("1", "fetch", {"url": "/a"} | arguments))
    assert isinstance(result, ToolSuccess), result
    return result.value


async def end(runtime: Runtime, started: Any) -> Job:
    job = runtime.jobs.find(started["jobId"], by=None)
    await job.wait()
    return job


async def test_a_call_goes_on_by_itself_if_it_says_so(runtime: Runtime) -> None:
    add(runtime)
    assert await call(runtime) == {"page": "/a"}
    assert await call(runtime, run_in_background=False) == {"page": "/a"}
    started = await call(runtime, run_in_background=True, description="Fetch it")
    assert started == {"jobId": "fetch-1"}
    job = await end(runtime, started)
    assert (job.status, job.label, job.read()) == ("completed", "Fetch it", '{"page":"/a"}')


@pytest.mark.parametrize("policy", [False, True])
async def test_its_output_is_what_a_model_is_shown_of_the_value(runtime: Runtime, policy: bool) -> None:
    handling = Handling(returns=Page, render=lambda args, value: f"{args['url']}: {value}")
    add(runtime, handling=handling)
    if policy:
        runtime.pipeline.guard(lambda call: None)
    started = await call(runtime, run_in_background="true")
    assert started == {"jobId": "fetch-1"}
    assert (await end(runtime, started)).read() == "/a: {'page': '/a'}"


async def test_a_value_of_another_type_than_the_tool_returns_is_a_failure_of_the_job(runtime: Runtime) -> None:
    add(runtime, lambda call: {"page": 1}, handling=Handling(returns=Page, render=lambda args, value: "x"))
    job = await end(runtime, await call(runtime, run_in_background=True))
    assert job.status == "failed"
    assert "what it should not" in str(job.snapshot.detail)


@pytest.mark.parametrize(
    "parameters", [Fetch, None, {"type": "object", "properties": {"url": {"type": "string"}}, "required": ["url"]}]
)
async def test_models_are_shown_the_argument(runtime: Runtime, parameters: Any) -> None:
    tool = add(runtime, lambda args: None, parameters=parameters)
    (shown,) = runtime.tools.definitions()
    assert shown.parameters is not None
    assert shown.parameters["properties"]["run_in_background"]["type"] == "boolean"
    assert "run_in_background" not in shown.parameters.get("required", ())
    assert "run_in_background" not in (Tool("fetch", lambda args: None, parameters=parameters).parameters or {}).get(
        "properties", {}
    )
    assert tool.background is runtime.jobs


async def test_the_tool_itself_sees_nothing_of_it(runtime: Runtime) -> None:
    seen: list[Any] = []
    add(runtime, seen.append, parameters=None)
    await call(runtime, run_in_background=False)
    await end(runtime, await call(runtime, run_in_background=True))
    assert seen == [{"url": "/a"}, {"url": "/a"}]


async def test_arguments_that_are_refused_are_refused_at_once(runtime: Runtime) -> None:
    add(runtime)
    for arguments in ({"url": ["no"], "run_in_background": True}, {"run_in_background": "perhaps"}):
        result = await runtime.tools.execute(ToolCall("1", "fetch", {"url": "/a"} | arguments))
        assert isinstance(result, ToolFailure)
        assert "malformed fetch call" in result.error
    assert runtime.jobs.jobs() == []


async def test_without_a_background_the_argument_means_nothing() -> None:
    assert await Tool("fetch", fetch, parameters=Fetch).execute({"url": "/a", "run_in_background": True}) == {
        "page": "/a"
    }


def test_a_tool_that_has_such_an_argument_is_refused_by_name() -> None:
    class Own(Struct):
        run_in_background: bool = False

    class Nowhere:
        async def begin(self, kind: str, label: str, run: Any) -> str:
            raise AssertionError("nothing is begun")

    with pytest.raises(ValueError, match=r"tool 'own'.*run_in_background"):
        Tool("own", lambda call: None, parameters=Own, background=Nowhere())


async def test_a_failure_and_a_timeout_are_those_of_the_job(runtime: Runtime, autojump_clock: Any) -> None:
    add(runtime, lambda call: 1 / 0)
    job = await end(runtime, await call(runtime, run_in_background=True))
    assert (job.status, job.snapshot.detail) == ("failed", "division by zero")
    add(runtime, endless, timeout=5.0)
    job = await end(runtime, await call(runtime, run_in_background=True))
    assert job.status == "failed"
    assert "took longer than 5 s" in str(job.snapshot.detail)


async def test_an_eleventh_is_the_failure_of_its_call(runtime: Runtime) -> None:
    add(runtime, endless)
    for _ in range(10):
        await call(runtime, run_in_background=True)
    with pytest.raises(JobError):
        await runtime.tools.run("fetch", {"url": "/a", "run_in_background": True})


async def test_a_denied_call_starts_no_job(runtime: Runtime) -> None:
    async def deny(call: Invocation, next: Next[Verdict]) -> Verdict:
        assert call.arguments["run_in_background"] is True
        return Deny("not in the dark")

    add(runtime)
    runtime.bus.on("tools/pre-execute", deny)
    with pytest.raises(ToolError, match="not in the dark"):
        await runtime.tools.run("fetch", {"url": "/a", "run_in_background": True})
    assert runtime.jobs.jobs() == []


async def test_the_tool_may_speak_as_its_job_and_what_it_calls_may_not(runtime: Runtime) -> None:
    inner: list[Any] = []

    async def execute(call: Fetch) -> str:
        job = current_job()
        if job is None:
            return "waited for"
        job.write(f"{job.id} begins\n")
        inner.append(await runtime.tools.run("look", {}))
        inner.append(await runtime.tools.run("fetch", {"url": "/b"}))
        assert current_job() is job
        return "nobody reads this"

    add(runtime, execute)
    runtime.tools.add(Tool("look", lambda: current_job() is None))
    assert await call(runtime) == "waited for"
    assert (await end(runtime, await call(runtime, run_in_background=True))).read() == "fetch-1 begins\n"
    assert inner == [True, "waited for"]


async def test_a_job_outlives_the_call_and_the_run_but_not_the_agent(runtime: Runtime) -> None:
    stage = Stage(runtime)
    ada = stage.agent("ada")
    add(runtime, endless)
    done = trio.Event()

    async def within() -> None:
        assert await call(runtime, run_in_background=True) == {"jobId": "fetch-1"}
        done.set()

    await trio.testing.wait_all_tasks_blocked()
    ada.start_soon(within)
    await done.wait()
    await trio.testing.wait_all_tasks_blocked()
    (job,) = runtime.jobs.of(ada)
    assert (job.owner, job.status) == ("/agents/ada", "running")
    await runtime.agents.remove("ada")
    assert job.status == "killed"
