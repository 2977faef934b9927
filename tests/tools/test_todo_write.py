"""`todo_write`: the whole list each time, for each agent by itself, and in its session where it has one."""

from __future__ import annotations

import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from greenroom.actors.agent import Agent
from greenroom.actors.providers.scripted import ScriptedProvider
from greenroom.actors.system import Runtime, open_runtime
from greenroom.actors.toolbox import todo_write_tool
from greenroom.actors.toolbox.todo_write import TodoLists
from greenroom.protocol.agents import MessageInput, ProviderResult
from greenroom.protocol.errors import ToolError
from greenroom.protocol.schemas import advertising_faults
from greenroom.protocol.sessions import Todo
from greenroom.protocol.tools import ToolCall, ToolFailure
from greenroom.runtime.tools import Tool
from tests.agents.conftest import calling

READ = {"content": "Read the plan", "status": "completed"}
TEST = {"content": "Write the tests", "status": "in_progress"}
BUILD = {"content": "Build it", "status": "pending"}


@pytest.fixture
def lists() -> TodoLists:
    return TodoLists()


@pytest.fixture
def tool(lists: TodoLists) -> Tool:
    return todo_write_tool(lists, several=False)


async def write(tool: Tool, *todos: Any) -> Any:
    return await tool.execute({"todos": list(todos)})


async def test_the_whole_list_takes_the_place_of_the_one_before(lists: TodoLists, tool: Tool) -> None:
    assert await write(tool, READ, TEST, BUILD) == {
        "todos": [READ, TEST, BUILD],
        "counts": {"pending": 1, "in_progress": 1, "completed": 1},
    }
    assert await write(tool, TEST) == {
        "todos": [TEST],
        "counts": {"pending": 0, "in_progress": 1, "completed": 0},
    }
    assert lists.of(None) == (Todo("Write the tests", "in_progress"),)
    await write(tool)
    assert lists.of(None) == ()


async def test_a_model_is_shown_the_list(tool: Tool) -> None:
    value = await write(tool, READ, TEST, BUILD)
    assert tool.handling.rendered({}, value) == "[x] Read the plan\n[>] Write the tests\n[ ] Build it"
    assert tool.handling.rendered({}, await write(tool)) == "Nothing is to be done."


@pytest.mark.parametrize(
    ("todos", "said"),
    [
        ([READ, {"content": "", "status": "pending"}], "content"),
        ([{"content": " \t", "status": "pending"}], "blank"),
        ([READ, {"content": "Read the plan ", "status": "pending"}], "again"),
        ([{**READ, "priority": 1}], "priority"),
        ([{**READ, "id": 1, "": 2}], "nothing else"),
        ([TEST, {**BUILD, "status": "in_progress"}], "as is 'Write the tests'"),
        ([{"content": "x", "status": "done"}], "status"),
        ([{"content": "x"}], "status"),
        (["x"], "todos"),
        ("x", "todos"),
        (None, "todos"),
    ],
)
async def test_a_list_that_is_none_is_refused_and_the_one_before_stays(
    lists: TodoLists, tool: Tool, todos: Any, said: str
) -> None:
    await write(tool, BUILD)
    with pytest.raises(ToolError, match=said):
        await tool.execute({"todos": todos})
    assert lists.of(None) == (Todo("Build it", "pending"),)


async def test_several_are_in_progress_where_that_is_allowed(lists: TodoLists) -> None:
    tool = todo_write_tool(lists, several=True)
    value = await write(tool, TEST, {**BUILD, "status": "in_progress"})
    assert value["counts"]["in_progress"] == 2
    assert "One entry" in (todo_write_tool(lists, several=False).description or "")
    assert "One entry" not in (tool.description or "")


async def test_its_schema_is_one_for_models(tool: Tool) -> None:
    assert tool.parameters is not None
    assert advertising_faults(tool.parameters) == []


ENTRIES = st.fixed_dictionaries(
    {"content": st.sampled_from(["a", "a ", "b", " ", ""]), "status": st.sampled_from(["pending", "in_progress"])},
    optional={"note": st.just(1)},
)


@given(st.lists(ENTRIES, max_size=5))
async def test_a_list_is_taken_exactly_if_it_is_one(todos: list[dict[str, Any]]) -> None:
    said = [todo["content"].strip() for todo in todos]
    sound = (
        all(said)
        and len(set(said)) == len(said)
        and sum(todo["status"] == "in_progress" for todo in todos) < 2
        and not any("note" in todo for todo in todos)
    )
    lists = TodoLists()
    tool = todo_write_tool(lists, several=False)
    taken = True
    try:
        await write(tool, *todos)
    except ToolError:
        taken = False
    assert taken is sound
    assert len(lists.of(None)) == (len(todos) if sound else 0)


# -------------------------------------------------------------------- whose it is


@pytest.fixture
async def runtime() -> AsyncIterator[Runtime]:
    async with open_runtime() as runtime:
        yield runtime


def writer(runtime: Runtime, tool: Tool, id: str, *todos: Any, **options: Any) -> Agent:
    """An agent that writes this list, and no more."""
    script = ScriptedProvider([calling("", "todo_write", todos=list(todos)), ProviderResult("Done.")])
    agent = runtime.agents.add(Agent(script, id=id, tools=[tool], **options))
    agent.context.messages.add(MessageInput("user", "Go."))
    return agent


async def test_each_agent_has_its_own_list_which_goes_with_it(runtime: Runtime, lists: TodoLists, tool: Tool) -> None:
    ada, bob = writer(runtime, tool, "ada", READ), writer(runtime, tool, "bob", TEST, BUILD)
    await ada.generate()
    await bob.generate()
    assert [len(lists.of(agent)) for agent in (ada, bob, None)] == [1, 2, 0]
    await runtime.agents.remove("ada")
    again = writer(runtime, tool, "ada", READ)
    assert lists.of(again) == ()
    assert len(lists.of(bob)) == 2


async def test_a_list_is_in_the_session_and_there_when_it_is_opened_again(
    runtime: Runtime, lists: TodoLists, tool: Tool
) -> None:
    written: list[list[str]] = [[]]
    for todos in ([READ, TEST], [BUILD], [READ]):
        session = await runtime.sessions.open("ada")
        agent = writer(runtime, tool, "ada", *todos, session=session)
        assert [todo.content for todo in lists.of(agent)] == written[-1]
        await agent.generate()
        written.append([todo["content"] for todo in todos])
        assert [todo.content for todo in lists.of(agent)] == written[-1]
        assert [event.type for event in session.events()].count("todo/write") == len(written) - 1
        await runtime.agents.remove("ada")
        await runtime.sessions.dispose(session)
    assert lists.of(None) == ()


DYING = """
import os, signal, sys, trio, greenroom

TODOS = [{"content": "Read the plan", "status": "completed"}, {"content": "Build it", "status": "pending"}]

def killed(messages, tools):  # the model is asked for the next step: it was told that the list is written
    os.kill(os.getpid(), signal.SIGKILL)

async def main():
    async with greenroom.open_runtime(data=sys.argv[1]) as runtime:
        session = await runtime.sessions.open("ada")
        call = greenroom.ToolCall("1", "todo_write", {"todos": TODOS})
        script = greenroom.ScriptedProvider([greenroom.ProviderResult("", tools=(call,)), killed])
        tool = greenroom.todo_write_tool(greenroom.TodoLists(), several=False)
        agent = runtime.agents.add(greenroom.Agent(script, session=session, tools=[tool]))
        agent.context.messages.add(greenroom.MessageInput("user", "Go."))
        await agent.generate()

trio.run(main)
"""


async def test_a_list_that_a_model_was_told_is_written_outlives_a_kill(
    tmp_path: Path, lists: TodoLists, tool: Tool
) -> None:
    data = tmp_path / "ada.journal"
    done = await trio.run_process([sys.executable, "-c", DYING, str(data)], check=False)
    assert done.returncode == -signal.SIGKILL
    async with open_runtime(data=data) as runtime:
        agent = writer(runtime, tool, "ada", session=await runtime.sessions.open("ada"))
        assert lists.of(agent) == (Todo("Read the plan", "completed"), Todo("Build it", "pending"))


async def test_under_policy_a_refused_list_has_a_code(runtime: Runtime, tool: Tool) -> None:
    codes: list[str] = []
    runtime.bus.on("tools/result", lambda settled: codes.append(settled.outcome.code))
    runtime.tools.add(tool)
    no_lists: tuple[Any, ...] = ([READ, READ], [{}], 1)
    for todos in no_lists:
        result = await runtime.tools.execute(ToolCall("1", "todo_write", {"todos": todos}))
        assert isinstance(result, ToolFailure)
    assert codes == ["INVALID_ARGS"] * 3
