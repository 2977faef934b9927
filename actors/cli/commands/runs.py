"""`greenroom runs`, `show`, `logs`, `signal` and `cancel`: which runs there are, how one does, and steering it."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number

from greenroom.actors.cli.files import parse_json
from greenroom.actors.cli.leaving import race, until_signalled
from greenroom.actors.cli.options import DEFAULT_URL, AsJson, Url
from greenroom.actors.cli.printing import print_json, screen
from greenroom.actors.cli.progress import draw_run
from greenroom.actors.cli.reach import reach
from greenroom.actors.cli.results import print_note, print_table
from greenroom.actors.cli.running import open_file, show_event
from greenroom.actors.workflow.picture import all_runs, counted, find_run, picture_of
from greenroom.protocol.errors import ConfigError
from greenroom.protocol.runs import RunInfo, RunPicture

__all__ = ["cancel", "logs", "runs", "show", "signal"]


async def runs(*, data: Path | None = None, json_: AsJson = False, url: Url = DEFAULT_URL) -> int:
    """List the runs of workflows, stored ones included.

    Those of the server at --url, or of a file that no server holds.

        greenroom runs --data release.db

    Parameters
    ----------
    data
        Look into this file instead of asking a server.
    """
    if data is None:
        async with reach(url) as client:
            listed = list(await client.runs())
    else:
        async with open_file(data) as runtime:
            listed = [await counted(runtime.workflows, run) for run in await all_runs(runtime.workflows)]
    if json_:
        print_json(listed)
    elif listed:
        print_table(("run", "name", "status", "tasks over", "changed"), (_row(run) for run in listed))
    else:
        print_note("There are no runs.")
    return 0


def _row(run: RunInfo) -> tuple[str, str, str, str, str]:
    cut_off = run.status in ("pending", "running") and not run.live
    status = f"{run.status}, to be resumed" if cut_off else run.status
    over = "" if run.tasks is msgspec.UNSET else f"{run.over} of {run.tasks}"
    changed = datetime.datetime.fromtimestamp(run.updated / 1000).strftime("%Y-%m-%d %H:%M:%S")
    return run.id, run.name, status, over, changed


async def show(id: str, /, *, data: Path | None = None, json_: AsJson = False, url: Url = DEFAULT_URL) -> int:
    """Draw a run as it stands.

    Its phases and tasks, in which attempt they are, what they tell of themselves and whom they wait for.

        greenroom show release-4.2

    Parameters
    ----------
    id
        The run, as `greenroom runs` lists it.
    data
        Look into this file instead of asking a server.
    """
    if data is None:
        async with reach(url) as client:
            picture = await client.show_run(id)
    else:
        async with open_file(data) as runtime:
            picture = picture_of(await find_run(runtime.workflows, id), runtime.snapshot())
    _print_picture(picture, json=json_)
    return 0


def _print_picture(picture: RunPicture, *, json: bool) -> None:
    if json:
        print_json(picture)
    else:
        screen().print(draw_run(picture))


async def logs(
    id: str,
    /,
    *,
    follow: Annotated[bool, Parameter(negative=())] = False,
    after: Annotated[int, Parameter(validator=Number(gte=0))] = 0,
    data: Path | None = None,
    json_: AsJson = False,
    url: Url = DEFAULT_URL,
) -> int:
    """Print what happened in a run, a line each, by number.

    With --follow it goes on until the run is over, or Ctrl-C; whoever comes back later goes on with --after and the
    number of the last line.

        greenroom logs release-4.2 --follow --after 12

    Parameters
    ----------
    id
        The run, as `greenroom runs` lists it.
    follow
        Go on with what happens from now on.
    after
        Begin behind the line with this number.
    data
        Read this file instead of asking a server.
    """
    out = screen()
    if data is not None:
        async with open_file(data) as runtime:
            async for event in (await find_run(runtime.workflows, id)).events(after):
                show_event(event, out, json=json_)
        return 0

    async def tell() -> int:
        async with reach(url) as client:
            last = (await client.show_run(id)).last
            if not follow and last <= after:
                return 0
            async with client.follow_run(id, after=after) as events:
                async for event in events:
                    show_event(event, out, json=json_)
                    if not follow and event.number >= last:
                        break
        return 0

    return await race(tell, until_signalled)


async def signal(
    id: str,
    name: str,
    value: Annotated[str, Parameter(allow_leading_hyphen=True)] = "null",
    /,
    *,
    url: Url = DEFAULT_URL,
) -> int:
    """Send a signal to the tasks of a run.

    Tasks that begin to wait for it later get it, too. It is stored when this ends.

        greenroom signal release-4.2 go '{"by": "ada"}'

    Parameters
    ----------
    id
        The run, as `greenroom runs` lists it.
    name
        The signal that its tasks wait for.
    value
        What to send with it, as JSON; a text is written '"so"'.
    """
    sent = _value(value)
    async with reach(url) as client:
        await client.signal_run(id, name, sent)
    return 0


def _value(spelled: str) -> Any:
    try:
        return parse_json(spelled)
    except (ValueError, RecursionError) as error:
        raise ConfigError("JSON", f"The value is no JSON: {error}. A text is written '\"so\"'.") from None


async def cancel(id: str, /, *, url: Url = DEFAULT_URL) -> int:
    """Stop a run of a server, with everything beneath it.

    Nothing of it is left when this ends.

        greenroom cancel release-4.2

    Parameters
    ----------
    id
        The run, as `greenroom runs` lists it.
    """
    async with reach(url) as client:
        print_json(await client.cancel_run(id))
    return 0
