"""The tools `bash`, `job_list`, `job_output` and `job_kill`, as models call them."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from greenroom.actors.agent import Agent
from greenroom.actors.providers import ScriptedProvider
from greenroom.actors.session import JsonlPersistence
from greenroom.actors.system import Runtime, open_runtime
from greenroom.actors.toolbox import bash_tool, job_kill_tool, job_list_tool, job_output_tool
from greenroom.protocol.agents import MessageInput, ProviderResult
from greenroom.protocol.errors import JobError, ProcessError
from greenroom.protocol.tools import ToolCall, ToolFailure, ToolSuccess
from greenroom.runtime.cancel import Cancel
from greenroom.runtime.policies import LocalSpill
from tests.jobs.conftest import Stage
from tests.processes.looking import lives

PARENT = """\
import subprocess, sys, time
subprocess.Popen(["sh", "-c", "trap '' TERM; echo $$; sleep 3; : > $0", sys.argv[1]])
time.sleep(60)
"""
"""Starts a child that ignores the first signal, and would write a file."""


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    async with open_runtime() as runtime:
        runtime.tools.add(
            (
                bash_tool(background=runtime.jobs, root=tmp_path, grace=0.2, spill=LocalSpill(tmp_path / "spilled")),
                job_list_tool(runtime.jobs),
                job_output_tool(runtime.jobs),
                job_kill_tool(runtime.jobs),
            )
        )
        yield runtime


async def bash(runtime: Runtime, command: str, **arguments: Any) -> Any:
    return await runtime.tools.run("bash", {"command": command, "description": "Try it"} | arguments)


async def output(runtime: Runtime, id: str, **arguments: Any) -> Any:
    return await runtime.tools.run("job_output", {"job_id": id} | arguments)


async def test_a_command_returns_all_that_is_known_of_its_end(runtime: Runtime) -> None:
    assert await bash(runtime, "echo out; echo err >&2; exit 3") == {
        "exitCode": 3,
        "signal": None,
        "timedOut": False,
        "aborted": False,
        "timeoutMs": 120_000,
        "stdout": {"text": "out\n", "truncated": False},
        "stderr": {"text": "err\n", "truncated": False},
    }


async def test_a_model_is_shown_the_output_and_what_there_is_to_say_of_it(runtime: Runtime) -> None:
    runtime.pipeline.guard(lambda call: None)
    shown: list[str] = []
    runtime.bus.on("tools/result", lambda settled: shown.append(str(settled.outcome.content)))
    await bash(runtime, "echo out; echo err >&2; exit 3")
    await bash(runtime, "true")
    await bash(runtime, "seq 100000", timeoutMs=600_000)
    await bash(runtime, "exec sleep 60", timeoutMs=100)
    assert shown[:2] == ["out\n[stderr]\nerr\n[exit code 3]", "[exit code 0]"]
    assert shown[2].startswith("[the end of stdout; all of it: ")
    assert shown[2].endswith("99999\n100000\n[exit code 0]")
    assert shown[3] == "[its 0.1 s were over: ended by SIGTERM]"


@pytest.mark.parametrize("timeout", [0, 600_001, 1.5])
async def test_a_time_that_no_command_gets_is_refused(runtime: Runtime, timeout: Any) -> None:
    result = await runtime.tools.execute(
        ToolCall("1", "bash", {"command": "true", "description": "x", "timeoutMs": timeout})
    )
    assert isinstance(result, ToolFailure)
    assert "timeoutMs" in result.error


async def test_it_begins_in_its_root_and_stays_beneath_it(runtime: Runtime, tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "out").symlink_to("/")
    assert (await bash(runtime, "pwd"))["stdout"]["text"] == f"{tmp_path}\n"
    assert (await bash(runtime, "pwd", workdir="inside"))["stdout"]["text"] == f"{tmp_path}/inside\n"
    for workdir in ("..", "/", "out", "file", "missing", "inside/../..", "a\0b"):
        with pytest.raises(ProcessError, match="Nothing was run") as refused:
            await bash(runtime, "touch ran", workdir=workdir)
        assert refused.value.code == "WORKDIR"
    assert not (tmp_path / "ran").exists()


async def test_without_a_root_any_directory_will_do(tmp_path: Path) -> None:
    tool = bash_tool()
    call = {"command": "pwd", "description": "Where?"}
    assert (await tool.execute(call))["stdout"]["text"] == f"{Path.cwd()}\n"
    assert (await tool.execute(call | {"workdir": str(tmp_path)}))["stdout"]["text"] == f"{tmp_path}\n"
    assert "run_in_background" not in (tool.parameters or {})["properties"]


async def test_secrets_do_not_reach_a_command(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "hunter2")
    monkeypatch.setenv("GREENROOM_SESSION_ID", "another")
    told = (await bash(runtime, "env"))["stdout"]["text"]
    assert "hunter2" not in told
    assert "GREENROOM_SESSION_ID" not in told
    assert {"GREENROOM_SHELL=1", "TERM=dumb", "NO_COLOR=1"} <= set(told.splitlines())


async def test_a_command_of_an_agent_knows_whose_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GREENROOM_HOME", "another")
    logs = JsonlPersistence(tmp_path)
    tool = bash_tool(env={"MY_TOKEN": "meant"}, home=tmp_path, session_log=logs.path)
    told = "echo $GREENROOM_HOME $GREENROOM_SESSION_ID $GREENROOM_SESSION_LOG $MY_TOKEN."
    call = ToolCall("1", "bash", {"command": told, "description": "Who?"})
    async with open_runtime(session_persistence=logs) as runtime:
        for session in (None, await runtime.sessions.open("ada")):
            script = [ProviderResult("", tools=(call,)), ProviderResult("Seen.")]
            agent = Agent(ScriptedProvider(script), id="ada", session=session, tools=[tool])
            runtime.agents.add(agent).context.messages.add(MessageInput("user", "Look."))
            await agent.generate()
            (answer,) = [each.content for each in agent.context.messages.view() if each.role == "tool"]
            log = "" if session is None else f"{logs.path('ada')} "
            assert f"{tmp_path} ada {log}meant." in answer
            await runtime.agents.remove("ada")


# -------------------------------------------------------------------- the end of what it has started


@pytest.mark.case("reports/pipeline", 7)
@pytest.mark.parametrize("by", ["timeout", "stop", "cancellation", "job kill", "owner's end"])
async def test_a_child_that_would_write_a_file_is_gone_before_it_does(
    runtime: Runtime, tmp_path: Path, by: str
) -> None:
    script, file, pid = tmp_path / "parent.py", tmp_path / "written", tmp_path / "pid"
    script.write_text(PARENT)
    command = f"{sys.executable} -IS parent.py {file} | tee {pid}"
    if by == "timeout":
        result = await bash(runtime, command, timeoutMs=1000)
        assert (result["timedOut"], result["aborted"]) == (True, False)
    elif by == "stop":
        stop = Cancel()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_when_there, pid, stop.set)
            call = ToolCall("1", "bash", {"command": command, "description": "Write"})
            stopped = await runtime.tools.execute(call, stop=stop)
        assert isinstance(stopped, ToolFailure)
    elif by == "cancellation":
        async with trio.open_nursery() as nursery:
            with trio.CancelScope() as scope:
                nursery.start_soon(_when_there, pid, scope.cancel)
                await bash(runtime, command)
        assert scope.cancelled_caught
    else:
        ada = Stage(runtime).agent("ada")
        job = await _started_by(runtime, ada, command)
        if by == "job kill":
            await _when_there(pid, lambda: job.kill("enough"))
            assert (await job.wait()).status == "killed"
        else:
            await _when_there(pid, lambda: None)
            await runtime.agents.remove("ada")
    child = int(pid.read_text())
    assert not lives(child)
    assert not file.exists()


async def _when_there(pid: Path, then: Any) -> None:
    """Once the child has begun."""
    await _until(lambda: pid.exists() and pid.read_text().endswith("\n"))
    then()


async def _until(condition: Any) -> None:
    """Another process makes it so, and nothing tells of it."""
    with trio.fail_after(20):
        while not condition():  # noqa: ASYNC110
            await trio.sleep(0.01)


async def _started_by(runtime: Runtime, agent: Agent, command: str) -> Any:
    """A job of the agent."""
    send, receive = trio.open_memory_channel[str](1)

    async def start() -> None:
        await send.send((await bash(runtime, command, run_in_background=True))["jobId"])

    await trio.testing.wait_all_tasks_blocked()  # an agent does nothing before it has begun
    agent.start_soon(start)
    return runtime.jobs.find(await receive.receive(), by=agent)


# -------------------------------------------------------------------- as a job


async def test_a_job_is_read_as_it_goes_on_awaited_and_listed(runtime: Runtime, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    started = await bash(runtime, "echo one; echo two >&2; read x < gate; echo three; exit 4", run_in_background=True)
    assert started == {"jobId": "bash-1"}
    text = ""
    with trio.fail_after(20):
        while len(text) < 8:
            text += (await output(runtime, "bash-1"))["text"]
            await trio.sleep(0.01)
    assert sorted(text.split()) == ["one", "two"]
    (listed,) = await runtime.tools.run("job_list", {})
    assert (listed["id"], listed["kind"], listed["label"], listed["status"]) == ("bash-1", "bash", "Try it", "running")
    assert "finishedAt" not in listed
    still = await output(runtime, "bash-1", wait=True, timeout_ms=1)
    assert (still["text"], still["job"]["status"]) == ("", "running")
    await trio.Path(tmp_path / "gate").write_text("\n")
    over = await output(runtime, "bash-1", wait=True)
    assert over["text"] == "three\n"
    assert (over["job"]["status"], over["job"]["detail"]) == ("completed", "exit code 4")
    assert (await output(runtime, "bash-1"))["text"] == ""
    assert (await runtime.tools.run("job_kill", {"job_id": "bash-1"}))["outcome"] == "already-finished"


async def test_the_output_of_a_job_ends_with_where_all_of_it_is(runtime: Runtime) -> None:
    started = await bash(runtime, "seq 20000; echo no >&2", run_in_background=True)
    text = (await output(runtime, started["jobId"], wait=True))["text"]
    assert text.startswith("[... ")
    last = text.splitlines()[-1]
    assert last.startswith("[all of stdout: ")
    kept = trio.Path(last.removeprefix("[all of stdout: ").removesuffix("]"))
    assert (await kept.read_text()).split() == [str(number) for number in range(1, 20001)]
    assert "all of stderr" not in text


async def test_a_job_that_is_killed_says_by_what_and_one_whose_time_is_over_has_failed(runtime: Runtime) -> None:
    await bash(runtime, "exec sleep 60", run_in_background=True)
    asked = await runtime.tools.run("job_kill", {"job_id": "bash-1", "reason": "not needed"})
    assert asked["outcome"] == "cancellation-requested"
    over = await output(runtime, "bash-1", wait=True)
    assert (over["job"]["status"], over["job"]["detail"]) == ("killed", "not needed: ended by SIGTERM")
    await bash(runtime, "exec sleep 60", run_in_background=True, timeoutMs=50)
    over = await output(runtime, "bash-2", wait=True)
    assert (over["job"]["status"], over["job"]["detail"]) == ("failed", "its 0.05 s were over: ended by SIGTERM")


async def test_a_job_that_cannot_be_started_has_failed(runtime: Runtime) -> None:
    await bash(runtime, "true", run_in_background=True, workdir="missing")
    over = await output(runtime, "bash-1", wait=True)
    assert over["job"]["status"] == "failed"
    assert "missing" in over["job"]["detail"]


async def test_the_tools_keep_to_the_jobs_of_their_caller(runtime: Runtime) -> None:
    stage = Stage(runtime)
    await stage.start(owner=stage.agent("ada"))
    assert await runtime.tools.run("job_list", {}) == []
    for tool in ("job_output", "job_kill"):
        with pytest.raises(JobError, match="another agent's"):
            await runtime.tools.run(tool, {"job_id": "bash-1"})
        with pytest.raises(JobError, match="no job bash-9"):
            await runtime.tools.run(tool, {"job_id": "bash-9"})


@pytest.mark.case("reports/pipeline", 8)
async def test_a_job_is_announced_once_unless_its_end_was_seen_and_is_unknown_with_its_owner(runtime: Runtime) -> None:
    stage = Stage(runtime)

    def idle() -> tuple[Agent, list[str]]:
        notices: list[str] = []
        agent = stage.agent("ada")
        runtime.bus.on("inbox/inserted", lambda event: notices.append(event.message.text))
        return agent, notices

    ada, notices = idle()
    job = await _started_by(runtime, ada, "echo done")
    await _until(lambda: notices)
    assert job.read() == "done\n"
    assert (await job.wait()).status == "completed"
    assert job.kill() == "already-finished"
    assert [each.id for each in runtime.jobs.of(ada)] == ["bash-1"]
    assert len(notices) == 1, "it is announced once"
    for seen in ("wait", "kill"):
        job = await _started_by(runtime, ada, "exec sleep 0.01" if seen == "wait" else "exec sleep 60")
        if seen == "kill":
            job.kill()
        with trio.fail_after(20):
            assert (await job.wait()).status == ("completed" if seen == "wait" else "killed")
    await trio.testing.wait_all_tasks_blocked()
    assert len(notices) == 1
    await runtime.agents.remove("ada")
    again, _ = idle()
    assert runtime.jobs.of(again) == []
    with pytest.raises(JobError, match="no job bash-1"):
        runtime.jobs.find("bash-1", by=again)


async def test_a_result_is_what_the_tool_says_that_it_returns(runtime: Runtime) -> None:
    runtime.pipeline.guard(lambda call: None)
    for name, arguments in (
        ("bash", {"command": "true", "description": "x"}),
        ("bash", {"command": "true", "description": "x", "run_in_background": True}),
        ("job_list", {}),
        ("job_output", {"job_id": "bash-1", "wait": True}),
        ("job_kill", {"job_id": "bash-1"}),
    ):
        assert isinstance(await runtime.tools.execute(ToolCall("1", name, arguments)), ToolSuccess)
