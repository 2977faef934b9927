"""`greenroom chat`: an agent with tools, for the person who runs the command."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter
from cyclopts.validators import Number

from greenroom.actors.agent import Agent, AgentRegistry
from greenroom.actors.cli.attach import choose_prompts
from greenroom.actors.cli.chat import Chat
from greenroom.actors.cli.composing import model_settings, open_composition, read_settings
from greenroom.actors.cli.models import open_model
from greenroom.actors.cli.offering import named_files
from greenroom.actors.cli.options import JsonFile
from greenroom.actors.cli.subagents import offer_subagents
from greenroom.actors.config import Config, TerminalsTable, override
from greenroom.actors.system import Runtime
from greenroom.actors.toolbox.agent import agent_tool
from greenroom.actors.toolbox.ask import ask_tool
from greenroom.runtime.provider import Provider

__all__ = ["chat", "offer_people_and_agents"]

YOU: Final = "you"
"""The terminal of whoever runs the command."""

_SYSTEM: Final = (
    "You help the person at this terminal. What you have to know from them you ask by the tool `ask`, of `you`: one "
    "form for all that you need. Work that can be described in full you may give to another agent."
)


async def chat(
    *,
    config: Path | None = None,
    provider: str | None = None,
    model: str | None = None,
    base_url: str | None = None,
    script: JsonFile | None = None,
    system: str | None = None,
    session: str | None = None,
    data: Path | None = None,
    limit: Annotated[int | None, Parameter(validator=Number(gte=1))] = None,
    workspace: Annotated[list[Path] | None, Parameter(negative=())] = None,
    database: Annotated[list[str] | None, Parameter(negative=())] = None,
) -> int:
    """Talk with an agent that has tools, may ask you forms, and may give work to others like it.

    Ctrl-C stops what it does, with everything beneath it; where a line is to be typed, it leaves.

        greenroom chat --provider openai --model gpt-5 --workspace .

    Keys are read from OPENAI_API_KEY and ANTHROPIC_API_KEY. Without a provider a script answers, which needs neither
    network nor key.

    Parameters
    ----------
    config
        A TOML file that says all of this; flags win over it. `greenroom config explain` lists its keys.
    provider
        Who answers: `openai` and all that speak like it, `anthropic`, `scripted`, or what an installed package adds.
    model
        The name that the provider has for its model.
    base_url
        Where the model is reached, if not at the provider's own address.
    script
        A JSON list of what the scripted model says, a turn each: {"content": ..., "tools": [{"id", "name",
        "arguments"}]}.
    system
        What the agent is told to be, in place of what it usually is.
    session
        The session that the conversation is logged in, and goes on with; it is read by `greenroom log`.
    data
        The file that it is kept in, unless the configuration has another place for it.
    limit
        How many times the model may be asked in one turn (50).
    workspace
        A folder whose files the agent reads and changes; once for each.
    database
        A database and the file that keeps it, as in shop=shop.db; once for each.
    """
    prompts = choose_prompts()
    file = Config(terminals=TerminalsTable(timeout=0)) if config is None else await read_settings(config)
    coding = file.workspaces is not None and file.workspaces.tools == "files"
    settings = override(
        file,
        terminals={"names": list(dict.fromkeys((*file.terminals.names, YOU)))},
        questions={"terminal": YOU if coding and file.questions is None else None},
        approvals={"terminal": file.approvals.terminal or YOU},
        llm={"provider": provider, "model": model, "base_url": base_url, "script": script},
        agent_loop={"limit": limit, "system": system, "session": session},
        journal={"data": data},
        workspaces={"roots": workspace},
        databases={"files": None if database is None else named_files(database)},
    )
    async with open_model(settings.llm.provider, model_settings(settings)) as answering:
        async with open_composition(settings) as runtime:
            loop = settings.agent_loop
            log = None if loop.session is None else await runtime.sessions.open(loop.session)
            name = "chat" if log is None else log.id
            await offer_people_and_agents(runtime, answering, name, settings)
            agent = Agent(
                answering, id=name, system=loop.system or _SYSTEM, tools=runtime.tools, limit=loop.limit, session=log
            )
            return await Chat(runtime.agents.add(agent), runtime.terminals.add(YOU), prompts, sys.stdout).talk()


async def offer_people_and_agents(runtime: Runtime, provider: Provider, name: str, settings: Config) -> None:
    """Add the tools `ask` and `agent`, and those for sub-agents. Whoever is given work by `agent` has the same tools,
    but for those that give work to others."""
    runtime.tools.add(ask_tool(runtime.terminals, name))
    tools = {tool.name: tool for tool in runtime.tools.tools()}
    registry = AgentRegistry({"helper": provider}, tools=tools)
    if settings.subagents is not None:
        runtime.tools.add(await offer_subagents(runtime, provider, tools, settings.subagents))
    runtime.tools.add(agent_tool(registry, provider="helper", tools=tools))
