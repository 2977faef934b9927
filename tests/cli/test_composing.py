"""The runtime that a configuration describes: its policies in their order, and who fills its seams."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from trio.testing import MockClock

from greenroom.actors.agent import Agent
from greenroom.actors.cli.composing import open_composition
from greenroom.actors.config import read_config
from greenroom.actors.providers import ScriptedProvider
from greenroom.actors.session import JsonlPersistence
from greenroom.actors.system import Runtime
from greenroom.protocol.agents import ProviderResult
from greenroom.protocol.errors import SeamError, ToolError
from greenroom.protocol.tools import ToolCall, ToolFailure, ToolResult, ToolSuccess
from greenroom.runtime.pipeline.handling import Handling
from greenroom.runtime.policies import CheckedRecorder
from greenroom.runtime.tools import Tool
from tests.cancelling import Doomed, at_every_step
from tests.seams.installed import installed

ROOT = Path(__file__).resolve().parent.parent.parent

CODE = """
from contextlib import asynccontextmanager

seen = []

class Instrument:
    def __init__(self, name):
        self.name = name
    def add(self, amount, attributes):
        seen.append((self.name, attributes["gen_ai.tool.name"]))
    record = add

class Meter:
    def create_counter(self, name, unit="", description=""):
        return Instrument(name)
    create_histogram = create_counter

@asynccontextmanager
async def meter():
    yield Meter()
    seen.append("all given out")

class Store:
    def __init__(self, root):
        self.root = root
    async def save(self, owner, name, text):
        seen.append((self.root, name, len(text)))
        return "elsewhere"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


class Slow:
    """A tool that takes so many seconds at its first, second, ... call, and fails at all but the last of these."""

    def __init__(self, *seconds: float) -> None:
        self._seconds: Iterator[float] = iter(seconds)
        self._left = len(seconds)
        self.calls = 0

    async def __call__(self, _: Any) -> str:
        self.calls += 1
        self._left -= 1
        await trio.sleep(next(self._seconds))
        if self._left:
            raise LookupError("not yet")
        return "done"


async def called(runtime: Runtime, name: str = "t") -> ToolResult:
    return await runtime.tools.execute(ToolCall("1", name, {}))


@pytest.mark.parametrize(("each", "ends"), [(False, "TIMEOUT"), (True, "done")])
async def test_a_deadline_is_for_all_attempts_or_for_each(each: bool, ends: str, autojump_clock: MockClock) -> None:
    policies = {
        "timeout": {"seconds": 5, "each_attempt": each},
        "retry": {"tools": ["t"], "attempts": 3, "delay": 0.5, "factor": 1},
    }
    async with open_composition(read_config({"policies": policies}), others={"t"}) as runtime:
        slow = Slow(2, 2, 2)
        runtime.tools.add(Tool("t", slow))
        result = await called(runtime)
        if each:
            assert isinstance(result, ToolSuccess)
            assert (result.value, slow.calls) == ("done", 3)
        else:
            assert isinstance(result, ToolFailure)
            assert "took longer than 5 s" in result.error


async def test_no_more_calls_of_a_batch_run_at_a_time_than_the_file_says(autojump_clock: MockClock) -> None:
    running: set[int] = set()
    most = 0

    async def tool(arguments: dict[str, int]) -> None:
        nonlocal most
        running.add(arguments["n"])
        most = max(most, len(running))
        await trio.sleep(1)
        running.remove(arguments["n"])

    document = {"agent_loop": {"max_parallel_tool_calls": 3}, "policies": {"invariants": True}}
    async with open_composition(read_config(document)) as runtime:
        runtime.tools.add(Tool("t", tool, handling=Handling(concurrent=True)))
        await runtime.tools.execute([ToolCall(str(n), "t", {"n": n}) for n in range(7)])
        assert most == 3
        assert isinstance(runtime.pipeline.recorder, CheckedRecorder)


async def test_the_logs_of_agents_go_where_the_file_says(tmp_path: Path) -> None:
    document = {"sessions": {"root": str(tmp_path / "logs"), "project": "a/b"}, "policies": {"invariants": True}}
    async with open_composition(read_config(document)) as runtime:
        session = await runtime.sessions.open("ada")
        calling = ProviderResult("", tools=(ToolCall("1", "t", {}),))
        tools = [Tool("t", lambda _: "done")]
        agent = Agent(ScriptedProvider([calling, ProviderResult("Seen.")]), session=session, tools=tools)
        await runtime.agents.add(agent).generate()
    kept = await JsonlPersistence(tmp_path / "logs", project="a/b").read("ada")
    assert kept is not None
    assert [event.type for event in kept.events].count("tool/result") == 1


async def test_what_is_large_goes_where_the_file_says_and_a_second_store_is_refused(tmp_path: Path) -> None:
    document = {"policies": {"spill": {"max_inline_bytes": 300, "root": str(tmp_path / "large")}}}
    async with open_composition(read_config(document)) as runtime:
        runtime.tools.add(Tool("t", lambda _: "x" * 1000))
        calling = ProviderResult("", tools=(ToolCall("1", "t", {}),))
        model = ScriptedProvider([calling, ProviderResult("Seen.")])
        agent = runtime.agents.add(Agent(model, id="ada", tools=runtime.tools))
        await agent.generate()
        (text,) = [message.content for message in agent.context.messages.view() if message.role == "tool"]
        assert len(text.encode()) <= 300
        (place,) = re.findall(r"kept at (\S+):", text)
        assert place.startswith(str(tmp_path / "large"))
        assert await trio.Path(place).read_text() == f'"{"x" * 1000}"'
        with pytest.raises(SeamError) as refused:
            runtime.spill.provide("another", runtime.spill.choose())
        assert refused.value.code == "DUPLICATE_PROVIDER"


async def test_installed_distributions_fill_the_seams_of_policies(folder: Path) -> None:
    points = ("metered = filling:meter",)
    installed(folder / "a", "filling", *points, group="greenroom.telemetry", code=CODE)
    installed(folder / "b", "storing", "bucket = filling:Store", group="greenroom.spill")
    document = {
        "policies": {
            "metrics": {"meter": "metered"},
            "spill": {"max_inline_bytes": 200, "store": "bucket", "root": "s3://here"},
        }
    }
    sys.path[:0] = [str(folder / "a"), str(folder / "b")]
    async with open_composition(read_config(document)) as runtime:
        runtime.tools.add(Tool("t", lambda _: 1))
        await called(runtime)
        seen = sys.modules["filling"].seen
        assert sorted(seen) == [("greenroom.tool.calls", "t"), ("greenroom.tool.duration", "t")]
        assert await runtime.spill.choose().save("a", "t", "text") == "elsewhere"
    assert seen[2:] == [("s3://here", "t", 4), "all given out"]


TOOLS = """
from greenroom import Tool

def weather(runtime):
    return [Tool("weather", lambda _: len(runtime.terminals.terminals()), description="The weather.")]

def another_infer(runtime):
    return Tool("infer", lambda _: 1, description="No.")

def no_tool(runtime):
    return [7]

def nothing(runtime):
    return []

def silent(runtime):
    return Tool("silent", lambda _: 1, description=" ")
"""


async def test_an_installed_package_adds_tools_and_a_clash_is_told_with_its_owner(folder: Path) -> None:
    made = {"weather": "weather", "clash": "another_infer", "bad": "no_tool", "nothing": "nothing", "silent": "silent"}
    points = [f"{name} = weathering:{function}" for name, function in made.items()]
    installed(folder, "weathering", *points, group="greenroom.tools", code=TOOLS)
    document = {"terminals": {"names": ["a", "b"]}, "tools": {"add": ["weather"]}}
    async with open_composition(read_config(document)) as runtime:
        result = await called(runtime, "weather")
        assert isinstance(result, ToolSuccess)
        assert result.value == 2
    wrong = {
        "clash": "there is a tool infer already",
        "bad": "int, which is no tool",
        "nothing": "it gives no tool",
        "silent": "the tool silent has no description",
    }
    for name, said in wrong.items():
        with pytest.raises(SeamError, match=rf"{said}.*weathering 1\.0"):
            async with open_composition(read_config({"tools": {"add": [name]}})):
                pass
    with pytest.raises(SeamError, match="no provider missing"):
        async with open_composition(read_config({"tools": {"add": ["missing"]}})):
            pass


async def test_a_composition_that_is_cancelled_while_it_opens_gives_everything_back(folder: Path) -> None:
    code = CODE.replace(
        "    yield Meter()", "    live.append(1)\n    try:\n        yield Meter()\n    finally:\n        live.pop()"
    )
    installed(folder, "lively", "lively = lively:meter", group="greenroom.telemetry", code=f"{code}\nlive = []\n")
    config = read_config({"policies": {"metrics": {"meter": "lively"}, "invariants": True}})

    async def use() -> None:
        async with open_composition(config) as runtime:
            await called(runtime, "infer")

    async def scenario(doomed: Doomed) -> None:
        await doomed(use)
        module = sys.modules.get("lively")
        assert module is None or module.live == []

    assert await at_every_step(scenario, within=60) > 10


async def test_approval_is_asked_of_the_terminal_that_the_file_names(autojump_clock: MockClock) -> None:
    document = {
        "terminals": {"names": ["reviewer"]},
        "approvals": {"tools": ["t"], "terminal": "reviewer", "timeout": 60},
    }
    async with open_composition(read_config(document), others={"t"}) as runtime:
        ran: list[int] = []
        runtime.tools.add((Tool("t", lambda _: ran.append(1)), Tool("free", lambda _: "free")))
        assert isinstance(await called(runtime, "free"), ToolSuccess)
        before = trio.current_time()
        result = await called(runtime)
        assert isinstance(result, ToolFailure)
        assert "the time to answer ran out" in result.error
        assert (ran, trio.current_time() - before) == ([], 60)
        results: list[ToolResult] = []

        async def call() -> None:
            results.append(await called(runtime))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await trio.testing.wait_all_tasks_blocked()
            (asked,) = runtime.terminals.pending("reviewer")
            await runtime.terminals.answer("reviewer", asked.id, {"allow": True})
        assert isinstance(results[0], ToolSuccess)
        assert ran == [1]


async def test_nobody_is_asked_where_the_file_says_never() -> None:
    document = {
        "terminals": {"names": ["reviewer"]},
        "approvals": {"tools": ["t"], "terminal": "reviewer", "mode": "never"},
    }
    async with open_composition(read_config(document), others={"t"}) as runtime:
        runtime.tools.add(Tool("t", lambda _: "never"))
        result = await called(runtime)
        assert isinstance(result, ToolFailure)
        assert "by rule, not by a person" in result.error


async def test_files_are_read_and_edited_by_tools_that_heed_what_was_seen(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    workspaces = {"roots": [str(tmp_path)]}
    async with open_composition(read_config({"workspaces": workspaces})) as runtime:
        assert {tool.name for tool in runtime.tools.tools()} == {"describe", "infer", "workspace"}
    async with open_composition(read_config({"workspaces": {**workspaces, "tools": "files"}})) as runtime:
        names = {tool.name for tool in runtime.tools.tools()}
        assert names == {"describe", "infer", "read", "write", "edit", "glob", "grep"}
        unseen = await runtime.tools.execute(ToolCall("1", "write", {"file_path": "a.txt", "content": "new"}))
        assert isinstance(unseen, ToolFailure)
        assert "have not read" in unseen.error
        await runtime.tools.run("read", {"file_path": "a.txt"})
        await runtime.tools.run("write", {"file_path": "a.txt", "content": "new"})
    assert await trio.Path(tmp_path / "a.txt").read_text() == "new"


async def test_folders_that_the_file_names_are_no_part_of_a_workspace(tmp_path: Path) -> None:
    for folder in (".venv", ".git", "src"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.py").write_text("x")
    workspaces = {"roots": [str(tmp_path)], "tools": "files", "private": [".git", ".venv"]}
    async with open_composition(read_config({"workspaces": workspaces})) as runtime:
        assert (await runtime.tools.run("glob", {"pattern": "*.py"}))["paths"] == ["src/a.py"]
        with pytest.raises(ToolError) as refused:
            await runtime.tools.run("read", {"file_path": ".venv/a.py"})
        assert refused.value.code == "FS_PATH"


async def test_a_person_is_asked_at_the_terminal_that_the_file_names(autojump_clock: MockClock) -> None:
    document = {"terminals": {"names": ["ann"]}, "questions": {"terminal": "ann", "timeout": 60}}
    async with open_composition(read_config(document)) as runtime:
        before = trio.current_time()
        with pytest.raises(ToolError) as refused:
            await runtime.tools.run("ask_user_question", {"questions": [{"id": "a", "question": "Why?"}]})
        assert (refused.value.code, trio.current_time() - before) == ("ASK_ABORTED", 60)


@pytest.mark.parametrize("several", [True, False])
async def test_several_things_are_in_progress_if_the_file_says_so(several: bool) -> None:
    todos = [{"content": content, "status": "in_progress"} for content in ("a", "b")]
    async with open_composition(read_config({"todos": {"several": several}})) as runtime:
        result = await runtime.tools.execute(ToolCall("1", "todo_write", {"todos": todos}))
        assert isinstance(result, ToolSuccess) is several


async def test_the_file_of_the_documentation_offers_everything_for_work_on_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "coding.md").read_text("utf-8")
    (document,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    async with open_composition(read_config(tomllib.loads(document))) as runtime:
        names = {tool.name for tool in runtime.tools.tools()}
    assert names >= {"read", "write", "edit", "glob", "grep", "ask_user_question", "todo_write"}
