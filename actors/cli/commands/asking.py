"""`greenroom ask`: a form, and the wait for its answer."""

from __future__ import annotations

from typing import Annotated

import msgspec
from cyclopts import Parameter

from greenroom.actors.cli.files import read_object, spoken
from greenroom.actors.cli.leaving import race, until_signalled
from greenroom.actors.cli.options import DEFAULT_URL, JsonFile, Seconds, Url
from greenroom.actors.cli.printing import print_json
from greenroom.actors.cli.reach import reach
from greenroom.protocol.errors import ConfigError

__all__ = ["ask"]


async def ask(
    to: str,
    form: JsonFile,
    /,
    *,
    as_: Annotated[str | None, Parameter(name="--as")] = None,
    timeout: Seconds | None = None,
    durable: str | None = None,
    client_id: str | None = None,
    url: Url = DEFAULT_URL,
) -> int:
    """Ask a terminal a form, and print the answer as JSON.

    Waits until somebody has answered. Ctrl-C and SIGTERM take the form back, from every screen; not one that is
    durable: that waits on, also over a restart of a server with --data, and the same command finds it or its answer.

        greenroom ask reviewer examples/release-review.json --as release-agent --timeout 600

    Exits with 0 when it was answered, and 1 when it was refused, or nobody has answered in time.

    Parameters
    ----------
    to
        The terminal to ask.
    form
        A file with the form as JSON, or - for standard input.
    as_
        The name in which it is asked.
    timeout
        Seconds to wait for the answer; without it the terminal's own limit holds, and 0 means no limit.
    durable
        A name for this question, under which form and answer are recorded. It belongs to the client, so --client-id is
        needed.
    client_id
        Who asks it, the same each time: 8 to 64 letters, digits, - and _. Who guesses it finds the answers, too.
    """
    if durable is not None and client_id is None:
        raise ConfigError("CLIENT", "A durable ask is found again by its client's id: give one with --client-id.")
    schema = await read_object(form)
    if schema is None:
        raise ConfigError("FORM", f"{spoken(form)} holds no form: a form is a JSON object with the member `fields`.")
    limit = msgspec.UNSET if timeout is None else timeout or None

    async def put() -> int:
        async with reach(url, id=client_id) as client:
            print_json(await client.ask(to, schema, from_=as_, timeout=limit, durable=durable))
        return 0

    return await race(put, until_signalled)
