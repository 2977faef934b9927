"""`greenroom run` and `resume`: workflows, run in this process or taken up again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from greenroom.actors.cli.files import read_object
from greenroom.actors.cli.options import DEFAULT_URL, AsJson, JsonFile, Names, Url
from greenroom.actors.cli.printing import print_json
from greenroom.actors.cli.reach import reach
from greenroom.actors.cli.running import Place, check_file, run_at
from greenroom.actors.system import Runtime
from greenroom.actors.workflow import Run
from greenroom.actors.workflow.picture import find_run
from greenroom.protocol.errors import ConfigError, ToolError
from greenroom.protocol.workflows import (
    WorkflowDefinition,
    author_workflow,
    check_definition,
    is_definition,
)

__all__ = ["resume", "run"]


async def run(
    file: JsonFile,
    /,
    *,
    functions: str | None = None,
    data: Path | None = None,
    terminal: Names = None,
    port: Annotated[int | None, Parameter(validator=Number(gte=0, lte=65_535))] = None,
    json_: AsJson = False,
) -> int:
    """Run a workflow in this process, and show how it does.

    With --data it is recorded as it goes, and starting it again goes on where it was: after Ctrl-C, which suspends it,
    and after a kill or a power cut. Nothing that is recorded is done twice. Without --data Ctrl-C stops it.

        greenroom run release.json --functions release --data release.db --terminal reviewer

    With --terminal or --port it is served meanwhile, so that people can answer and watch: on its page at
    http://127.0.0.1:8642, or with `greenroom attach reviewer` in another shell.

    Exits with 0 when the run completed, 1 when it failed or was stopped, and 130 after Ctrl-C.

    Parameters
    ----------
    file
        A file with the workflow as JSON, or - for standard input.
    functions
        A module of the current folder: its public functions, or what it calls `functions`, are the behaviours.
    data
        The file in which the run is recorded; it is made if there is none.
    terminal
        A terminal that the run may ask; give it once for each.
    port
        The port to listen on while it runs; 0 takes a free one. Without it, and with --terminal, 8642.
    """
    definition = await _definition(file)
    place = Place(functions, data, terminal or (), port)
    return await run_at(place, lambda runtime: runtime.workflows.start(definition), json=json_)


async def _definition(file: Path) -> WorkflowDefinition:
    document = await read_object(file)
    if not document:
        raise ConfigError("WORKFLOW", f"{file} holds no workflow: a JSON object with `phases`, or with `steps`.")
    if is_definition(document):
        return check_definition(document)
    try:
        authored = author_workflow(document, WorkflowDefinition(id="workflow", name="workflow", phases=()))
    except ToolError as error:
        raise ConfigError("WORKFLOW", f"{file} holds no workflow. {error.message}", {"file": str(file)}) from None
    if authored.ignored:
        members = ", ".join(authored.ignored)
        raise ConfigError("WORKFLOW", f"{file} has members that mean nothing: {members}.", {"file": str(file)})
    return authored.definition


async def resume(
    id: str,
    /,
    *,
    data: Path | None = None,
    functions: str | None = None,
    terminal: Names = None,
    port: Annotated[int | None, Parameter(validator=Number(gte=0, lte=65_535))] = None,
    json_: AsJson = False,
    url: Url = DEFAULT_URL,
) -> int:
    """Take up a run that was suspended, or cut off by a kill.

    With --data it goes on in this process, as `greenroom run` does; otherwise the server at --url is told to take it
    up. Nothing that is recorded of it is done again.

        greenroom resume release-4.2 --data release.db --functions release --terminal reviewer

    Exits with 0 when it completed (at a server: when it was taken up), 1 when it did not, and 130 after Ctrl-C.

    Parameters
    ----------
    id
        The run, as `greenroom runs` lists it.
    data
        The file in which it is recorded.
    functions
        A module of the current folder with the behaviours.
    terminal
        A terminal that the run may ask; give it once for each.
    port
        The port to listen on while it runs; 0 takes a free one. Without it, and with --terminal, 8642.
    """
    if data is None:
        async with reach(url) as client:
            print_json(await client.resume_run(id))
        return 0
    await check_file(data)
    place = Place(functions, data, terminal or (), port)

    async def take_up(runtime: Runtime) -> Run:
        await find_run(runtime.workflows, id)  # an unknown one is told with those there are
        return await runtime.workflows.recover(id)

    return await run_at(place, take_up, json=json_)
