"""`docs/tools.md` and `docs/events.md`: what a runtime offers and announces, read from one that is booted offline."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Final

import trio

import greenroom.actors
import greenroom.runtime
from greenroom.actors import toolbox
from greenroom.actors.agent import AgentRegistry
from greenroom.actors.docs.events import EventUse, Scan, scan_events, sources
from greenroom.actors.system import Runtime, open_runtime
from greenroom.actors.toolbox import (
    TodoLists,
    agent_tool,
    answer_question_tool,
    answer_tool,
    ask_question_tool,
    ask_tool,
    ask_user_question_tool,
    bash_tool,
    database_tool,
    describe_tool,
    edit_tool,
    glob_tool,
    grep_tool,
    infer_tool,
    interrupt_agent_tool,
    job_kill_tool,
    job_list_tool,
    job_output_tool,
    list_agents_tool,
    read_tool,
    relation_tool,
    report_tool,
    send_message_tool,
    subagent_tool,
    todo_write_tool,
    workflow_tool,
    workspace_tool,
    write_tool,
)
from greenroom.actors.workspace import WorkspaceManager
from greenroom.protocol.errors import InvariantError
from greenroom.protocol.tools import ToolDefinition
from greenroom.protocol.workflows import WorkflowDefinition
from greenroom.runtime.tools import Tool

__all__ = ["TOOLS", "check_tools", "events_reference", "scan_code", "tools_reference"]

ROOMS: Final = (greenroom.runtime, greenroom.actors)
"""Where events are declared, dispatched and listened to."""


@lru_cache(maxsize=1)
def _workspaces(runtime: Runtime) -> WorkspaceManager:
    """The one manager that a runtime may have."""
    return WorkspaceManager(runtime.tree)


_NOTHING: Final = WorkflowDefinition(id="release", name="Release", phases=())

TOOLS: Final[dict[str, Callable[[Runtime], Tool]]] = {
    "describe": lambda runtime: describe_tool(runtime.tools),
    "ask": lambda runtime: ask_tool(runtime.terminals, "agent"),
    "ask_user_question": lambda runtime: ask_user_question_tool(runtime.terminals, "you"),
    "todo_write": lambda _: todo_write_tool(TodoLists(), several=False),
    "answer": lambda runtime: answer_tool(runtime.terminals, "agent"),
    "ask_question": lambda runtime: ask_question_tool(runtime.terminals, "agent", name="ask_question"),
    "answer_question": lambda runtime: answer_question_tool(runtime.terminals, "agent", name="answer_question"),
    "workflow": lambda runtime: workflow_tool(_NOTHING, runtime.workflows.runner),
    "agent": lambda _: agent_tool(AgentRegistry({})),
    "workspace": lambda runtime: workspace_tool(_workspaces(runtime)),
    "edit": lambda runtime: edit_tool(_workspaces(runtime)),
    "glob": lambda runtime: glob_tool(_workspaces(runtime)),
    "grep": lambda runtime: grep_tool(_workspaces(runtime)),
    "read": lambda runtime: read_tool(_workspaces(runtime)),
    "write": lambda runtime: write_tool(_workspaces(runtime)),
    "subagent": lambda runtime: subagent_tool(runtime.subagents, background=runtime.jobs),
    "send_message": lambda runtime: send_message_tool(runtime.subagents),
    "interrupt_agent": lambda runtime: interrupt_agent_tool(runtime.subagents),
    "list_agents": lambda runtime: list_agents_tool(runtime.subagents),
    "report": lambda runtime: report_tool(runtime.subagents),
    "database": lambda runtime: database_tool(runtime.tree),
    "relation": lambda _: relation_tool({}),
    "infer": lambda _: infer_tool(),
    "bash": lambda runtime: bash_tool(background=runtime.jobs),
    "job_list": lambda runtime: job_list_tool(runtime.jobs),
    "job_output": lambda runtime: job_output_tool(runtime.jobs),
    "job_kill": lambda runtime: job_kill_tool(runtime.jobs),
}
"""Every tool that a model can be given. (An endpoint tool is named by whoever makes it.)"""

OF_THE_READERS_OWN: Final = frozenset({"endpoint"})
"""Tools that have no name and no schema until somebody gives them one."""

OFFERED_BY: Final[dict[str, str]] = {
    "describe": "always offered",
    "infer": "always offered",
    "ask": "offered by `greenroom chat` and `greenroom mcp`",
    "agent": "offered by `greenroom chat`",
    "workspace": "`workspaces.roots`",
    **dict.fromkeys(("read", "write", "edit", "glob", "grep"), '`workspaces.roots` with `workspaces.tools = "files"`'),
    "ask_user_question": '`questions.terminal`; by `greenroom chat` also `workspaces.tools = "files"`',
    "todo_write": "`todos.several`",
    "database": "`databases.files`",
    "bash": "`bash.root`",
    "job_list": "`bash.root`",
    "job_output": "`bash.root`",
    "job_kill": "`bash.root`",
    "subagent": "`[subagents]`, by `greenroom chat`",
    "send_message": "`[subagents]`, with `subagents.continuable`, by `greenroom chat`",
    "interrupt_agent": "`[subagents]`, with `subagents.continuable`, by `greenroom chat`",
    "list_agents": "`[subagents]`, with `subagents.continuable`, by `greenroom chat`",
    "report": "given to each sub-agent",
}
"""What offers a tool where a configuration says what is offered, by the name of the tool."""

LEAVES: Final[dict[str, str]] = {
    "agent": "what the agent's own tools leave",
    "bash": "whatever its commands do",
    "database": "rows, where the database is kept",
    "edit": "files",
    "relation": "nothing: it reads",
    "subagent": "what the sub-agent's own tools leave, and its log",
    "todo_write": "an event in the agent's log, if it has one",
    "workflow": "its run in the journal, if there is one",
    "workspace": "files, in a folder",
    "write": "files",
}
"""What outlives a call and the process, by the name of the tool; of the others nothing does."""

_TOOLS_TOP: Final = """\
# Tools

*Made from the code by `python -m greenroom.docs`: from the registry of a runtime that is booted offline.*

What a model can be given, each as it is shown to it: the summary, and the schema of its arguments. The whole text,
which the model reads by `describe`, stands beneath. `endpoint_tool` makes tools of the reader's own besides these, and
installed packages add further ones by the seam `tools`, see [config.md](config.md).
"""

_EVENTS_TOP: Final = """\
# Events

*Made from the code by `python -m greenroom.docs`: from the bus of a runtime that is booted offline.*

`runtime.bus.on(name, listener)` hears them. Listeners of `emit` are plain functions of the payload; those of
`waterfall` are async functions of the payload and of `next`, which runs all that is beneath: see
[policies.md](policies.md).

Who dispatches and who listens is read from the code. A runtime that does nothing has no listener by itself: those named
here are registered where they are wanted.

| event | mode | payload | declared in | dispatched by | listened to by | what it tells |
| --- | --- | --- | --- | --- | --- | --- |
"""


def tools_reference() -> str:
    """The whole document."""
    return _TOOLS_TOP + "".join(trio.run(_tools))


def events_reference() -> str:
    """The whole document."""
    return _EVENTS_TOP + "".join(f"{line}\n" for line in trio.run(_events))


async def _tools() -> list[str]:
    async with open_runtime() as runtime:
        made = {name: make(runtime) for name, make in TOOLS.items()}
        faults = check_tools(made)
        if faults:
            raise InvariantError("CATALOG", "The tools cannot be catalogued. " + " ".join(faults), {"faults": faults})
        runtime.tools.add(made.values())
        shown = runtime.tools.definitions()
        return [
            "\n".join(_section(name, each, tool.description or ""))
            for (name, tool), each in zip(made.items(), shown, strict=True)
        ]


def check_tools(made: Mapping[str, Tool], modules: Iterable[str] | None = None) -> list[str]:
    """What is wrong with the tools of a catalog, by the name that each should have, a sentence each.

    Every module of the toolbox (`modules`, by name) has to make one of them, or to have to do with one that does.
    """
    faults = [f"{name} is called {tool.name}." for name, tool in made.items() if tool.name != name]
    names = [tool.name for tool in made.values()]
    faults += [f"{name} is the name of several tools." for name in sorted({n for n in names if names.count(n) > 1})]
    faults += [f"{name} has no description." for name, tool in made.items() if not (tool.description or "").strip()]
    faults += [f"{name} has no schema of its arguments." for name, tool in made.items() if tool.parameters is None]
    checked = _toolbox() if modules is None else list(modules)
    imports = {module: _imported(module) for module in {*_toolbox(), *checked}}
    for module in checked:
        made_here = {name for name, each in vars(import_module(module)).items() if _makes_tools(name, each, module)}
        of_use = any(module in imports[other] or other in imports[module] for other in _toolbox())
        if not of_use and not {name.removesuffix("_tool") for name in made_here} & {*made, *OF_THE_READERS_OWN}:
            what = (
                f"makes {', '.join(sorted(made_here))}, which is not in the catalog" if made_here else "makes no tool"
            )
            faults.append(f"{module} {what}, and has nothing to do with a module that makes one.")
    return faults


def _toolbox() -> list[str]:
    """The modules of the toolbox."""
    return [f"{toolbox.__name__}.{found.name}" for found in iter_modules(toolbox.__path__)]


def _makes_tools(name: str, thing: object, module: str) -> bool:
    return name.endswith("_tool") and inspect.isfunction(thing) and thing.__module__ == module and name[0] != "_"


def _imported(module: str) -> set[str]:
    found = find_spec(module)
    assert found is not None, "it is there"
    assert found.origin is not None, "it has a file"
    tree = ast.parse(Path(found.origin).read_text("utf-8"))
    return {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}


def _section(name: str, shown: ToolDefinition, whole: str) -> Iterator[str]:
    factory = getattr(toolbox, f"{name}_tool")
    yield f"\n## `{name}`\n"
    yield f"{shown.description}\n"
    yield f"Made by `greenroom.{name}_tool{_needed(factory)}`. {_offered(name)} "
    yield f"Leaves behind: {LEAVES.get(name, 'nothing')}.\n"
    yield f"```json\n{json.dumps(shown.parameters, indent=2, ensure_ascii=False)}\n```\n"
    yield f"<details><summary>the whole text</summary>\n\n```text\n{whole.rstrip()}\n```\n\n</details>\n"


def _needed(factory: Callable[..., Tool]) -> str:
    """What a tool has to be made with, as its signature says it."""
    needed = [
        f"{each.name}: {each.annotation}"
        for each in inspect.signature(factory).parameters.values()
        if each.default is each.empty and each.kind is not each.VAR_KEYWORD
    ]
    return f"({', '.join(needed)})"


def _offered(name: str) -> str:
    key = OFFERED_BY.get(name)
    return "A program offers it." if key is None else f"In a configuration: {key}."


async def _events() -> list[str]:
    async with open_runtime() as runtime:
        events = runtime.bus.events()
    scan = scan_code()
    faults = list(scan.faults)
    unbooted = sorted(scan.events.keys() - {event.name for event in events})
    faults += [f"{name} is declared, but not by a runtime that has just been opened." for name in unbooted]
    if faults:
        raise InvariantError("CATALOG", "The events cannot be catalogued. " + " ".join(faults), {"faults": faults})
    return [_row(event.name, event.mode, event.payload, scan.events[event.name]) for event in events]


def _row(name: str, mode: str, payload: type, use: EventUse) -> str:
    cells = [
        f"`{name}`",
        mode,
        f"`{payload.__name__}`",
        f"`{use.declared_in.removeprefix('greenroom.')}`",
        _modules(use.dispatched_by),
        _modules(use.heard_by),
        _first_sentence(payload),
    ]
    return f"| {' | '.join(cells)} |"


def _modules(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name.removeprefix('greenroom.')}`" for name in names)


@cache
def scan_code() -> Scan:
    """The events of greenroom's own code, as it was when it was first scanned."""
    return scan_events(sources({f"greenroom.{room.__name__.split('.')[1]}": Path(room.__path__[0]) for room in ROOMS}))


def _first_sentence(payload: type) -> str:
    text = " ".join(inspect.cleandoc(payload.__doc__ or "").split())
    first = text.split(". ")[0]
    return (first if first.endswith((".", "?")) else f"{first}.").replace("|", "\\|")
