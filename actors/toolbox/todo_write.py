"""The tool `todo_write`: a model keeps the list of what it has to do."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, cast, final

import msgspec
from msgspec import Meta, Struct

from greenroom.actors.agent import Agent
from greenroom.protocol.errors import ToolError
from greenroom.protocol.schemas import Arguments
from greenroom.protocol.sessions import TODOS, Todo, TodoWrite
from greenroom.runtime.actor import Actor
from greenroom.runtime.context import current_actor
from greenroom.runtime.pipeline.handling import Handling
from greenroom.runtime.ref import Ref
from greenroom.runtime.tool import accepted
from greenroom.runtime.tools import Tool

__all__ = ["TodoLists", "TodoResult", "todo_write_tool"]

SUMMARY: Final = "Writes the whole list of what you have to do, each with its status."

DESCRIPTION: Final = """\
Writes down what you have to do, so that you and those who look on see how far you are. `todos` is the whole list, in \
place of the one before; each entry has
- `content`: what is to be done, which no other entry says
- `status`: pending, in_progress or completed

{limit}Write the list anew whenever something has begun or is done. An empty list is one with nothing to do.

Example: {{"todos": [{{"content": "Read the plan", "status": "completed"}}, {{"content": "Write the tests", "status": \
"in_progress"}}]}} returns the list, and how many entries there are of each status.
"""

ONE: Final = "One entry is in progress at a time. "

Status = Literal["pending", "in_progress", "completed"]


class TodoEntry(Struct):
    content: Annotated[str, Meta(min_length=1, description="What is to be done.")]
    status: Annotated[Status, Meta(description="How far it is.")]


class WriteTodos(Struct):
    todos: Annotated[list[TodoEntry], Meta(description="The whole list.")]


class TodoCounts(Struct, frozen=True):
    """How many entries there are of each status."""

    pending: int
    in_progress: int
    completed: int


class TodoResult(Struct, frozen=True):
    """The list as it is now."""

    todos: list[Todo]
    counts: TodoCounts


ARGUMENTS: Final = Arguments[WriteTodos](WriteTodos)


@final
class TodoLists:
    """The list of each agent, as it wrote it last.

    That of an agent with a session is its session's, and outlives the process where that does; every other one is
    here, and goes with its agent. What calls from outside the tree has one list.
    """

    def __init__(self) -> None:
        self._lists: dict[Ref | None, tuple[Todo, ...]] = {}

    def of(self, agent: Actor | None) -> tuple[Todo, ...]:
        """The agent's list; an empty one, if it has written none."""
        if isinstance(agent, Agent) and agent.session is not None:
            todos: tuple[Todo, ...] = agent.session.snapshot([TODOS]).values[TODOS.key]
            return todos
        return self._lists.get(None if agent is None else agent.ref, ())

    def write(self, agent: Actor | None, todos: tuple[Todo, ...]) -> None:
        """Put this list in the place of the agent's. Raises what `Session.append` does."""
        if isinstance(agent, Agent) and agent.session is not None:
            agent.session.append("todo/write", TodoWrite(todos))
            return
        place = None if agent is None else agent.ref
        known = place in self._lists
        self._lists[place] = todos
        if place is not None and not known:
            place.watch(self._forget)

    def _forget(self, place: Ref) -> None:
        self._lists.pop(place, None)


def todo_write_tool(lists: TodoLists, *, several: bool, name: str = "todo_write") -> Tool:
    """The tool `todo_write`, which keeps the list of whoever calls it in `lists`. It returns what `TodoResult` spells.

    `several` says whether more than one entry may be in progress. It raises `ToolError` INVALID_ARGS, and the list is
    as before, for an entry that is blank, there twice or has members of its own, and for a second one in progress.
    """

    def write(args: Any) -> Any:
        _refuse_members(args)
        call: WriteTodos = accepted(name, args, ARGUMENTS.parse(args))
        todos = tuple(Todo(each.content, each.status) for each in call.todos)
        _check(todos, several)
        lists.write(current_actor(), todos)
        counts = {status: sum(todo.status == status for todo in todos) for status in TodoCounts.__struct_fields__}
        return msgspec.to_builtins(TodoResult(list(todos), TodoCounts(**counts)))

    return Tool(
        name,
        write,
        summary=SUMMARY,
        description=DESCRIPTION.format(limit="" if several else ONE),
        parameters=ARGUMENTS.advertised,
        handling=Handling(returns=TodoResult, render=_rendered),
    )


def _refuse_members(args: object) -> None:
    """A member that nobody reads would be lost without a word: a priority, say, or the entries beneath one."""
    todos = cast("dict[str, object]", args).get("todos") if isinstance(args, dict) else None
    for place, entry in enumerate(cast("list[object]", todos) if isinstance(todos, list) else ()):
        members = cast("dict[str, object]", entry) if isinstance(entry, dict) else {}
        others = sorted(set(members) - set(TodoEntry.__struct_fields__))
        if others:
            raise _malformed(place, f"has {', '.join(others)}; it has `content` and `status` and nothing else")


def _check(todos: tuple[Todo, ...], several: bool) -> None:
    said: set[str] = set()
    running: str | None = None
    for place, todo in enumerate(todos):
        content = todo.content.strip()
        if not content:
            raise _malformed(place, "is blank: say what is to be done")
        if content in said:
            raise _malformed(place, f"says {content!r} again: let each say something of its own")
        said.add(content)
        if todo.status == "in_progress" and not several:
            if running is not None:
                raise _malformed(place, f"is in progress, as is {running!r}: let one be pending")
            running = content


def _malformed(place: int, why: str) -> ToolError:
    return ToolError("INVALID_ARGS", f"The list is as before: its entry todos[{place}] {why}.", {"entry": place})


def _rendered(_arguments: Any, value: Any) -> str:
    marks = {"pending": " ", "in_progress": ">", "completed": "x"}
    lines = [f"[{marks[todo['status']]}] {todo['content']}" for todo in value["todos"]]
    return "\n".join(lines) or "Nothing is to be done."
