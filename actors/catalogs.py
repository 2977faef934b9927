"""`docs/tools.md` and `docs/events.md`: what a runtime offers and announces, read from one that is booted offline."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final

import trio

from greenroom.actors.agent import AgentRegistry
from greenroom.actors.system import Runtime, open_runtime
from greenroom.actors.toolbox import (
    agent_tool,
    answer_tool,
    ask_tool,
    ask_user_question_tool,
    database_tool,
    describe_tool,
    edit_tool,
    glob_tool,
    grep_tool,
    infer_tool,
    read_tool,
    relation_tool,
    workflow_tool,
    workspace_tool,
    write_tool,
)
from greenroom.actors.workspace import WorkspaceManager
from greenroom.protocol.tools import ToolDefinition
from greenroom.protocol.workflows import WorkflowDefinition
from greenroom.runtime.tools import Tool

__all__ = ["TOOLS", "events_reference", "tools_reference"]


@lru_cache(maxsize=1)
def _workspaces(runtime: Runtime) -> WorkspaceManager:
    """The one manager that a runtime may have."""
    return WorkspaceManager(runtime.tree)


_NOTHING: Final = WorkflowDefinition(id="release", name="Release", phases=())

TOOLS: Final[dict[str, Callable[[Runtime], Tool]]] = {
    "describe": lambda runtime: describe_tool(runtime.tools),
    "ask": lambda runtime: ask_tool(runtime.terminals, "agent"),
    "ask_user_question": lambda runtime: ask_user_question_tool(runtime.terminals, "you"),
    "answer": lambda runtime: answer_tool(runtime.terminals, "agent"),
    "workflow": lambda runtime: workflow_tool(_NOTHING, runtime.workflows.runner),
    "agent": lambda _: agent_tool(AgentRegistry({})),
    "workspace": lambda runtime: workspace_tool(_workspaces(runtime)),
    "edit": lambda runtime: edit_tool(_workspaces(runtime)),
    "glob": lambda runtime: glob_tool(_workspaces(runtime)),
    "grep": lambda runtime: grep_tool(_workspaces(runtime)),
    "read": lambda runtime: read_tool(_workspaces(runtime)),
    "write": lambda runtime: write_tool(_workspaces(runtime)),
    "database": lambda runtime: database_tool(runtime.tree),
    "relation": lambda _: relation_tool({}),
    "infer": lambda _: infer_tool(),
}
"""Every tool that a model can be given. (An endpoint tool is named by whoever makes it.)"""

_TOOLS_TOP: Final = """\
# Tools

*Made from the code by `python -m greenroom.docs`: from the registry of a runtime that is booted offline.*

What a model can be given, each as it is shown to it: the summary, and the schema of its arguments. The whole text,
which the model reads by `describe`, stands beneath. `endpoint_tool` makes tools of the reader's own besides these.
"""

_EVENTS_TOP: Final = """\
# Events

*Made from the code by `python -m greenroom.docs`: from the bus of a runtime that is booted offline.*

`runtime.bus.on(name, listener)` hears them. Listeners of `emit` are plain functions of the payload; those of
`waterfall` are async functions of the payload and of `next`, which runs all that is beneath: see
[policies.md](policies.md).

| event | mode | payload | declared in | what it tells |
| --- | --- | --- | --- | --- |
"""


def tools_reference() -> str:
    """The whole document."""
    return _TOOLS_TOP + "".join(trio.run(_tools))


def events_reference() -> str:
    """The whole document."""
    return _EVENTS_TOP + "".join(f"{line}\n" for line in trio.run(_events))


async def _tools() -> list[str]:
    async with open_runtime() as runtime:
        runtime.tools.add(make(runtime) for make in TOOLS.values())
        whole = [tool.description or "" for tool in runtime.tools.tools()]
        return [
            "\n".join(_section(shown, text)) for shown, text in zip(runtime.tools.definitions(), whole, strict=True)
        ]


def _section(shown: ToolDefinition, whole: str) -> Iterator[str]:
    yield f"\n## `{shown.name}`\n"
    yield f"{shown.description}\n"
    yield f"Made by `greenroom.{shown.name}_tool`.\n"
    yield f"```json\n{json.dumps(shown.parameters, indent=2, ensure_ascii=False)}\n```\n"
    yield f"<details><summary>the whole text</summary>\n\n```text\n{whole.rstrip()}\n```\n\n</details>\n"


async def _events() -> list[str]:
    async with open_runtime() as runtime:
        rows = [(event.name, event.mode, event.payload) for event in runtime.bus.events()]
    return [
        f"| `{name}` | {mode} | `{payload.__name__}` | `{payload.__module__}` | {_first_sentence(payload)} |"
        for name, mode, payload in rows
    ]


def _first_sentence(payload: type) -> str:
    text = " ".join(inspect.cleandoc(payload.__doc__ or "").split())
    first = text.split(". ")[0]
    return (first if first.endswith((".", "?")) else f"{first}.").replace("|", "\\|")
