"""The commands of `greenroom`."""

from __future__ import annotations

import json
import os
import signal
import ssl
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, cast

import msgspec
import trio
from cyclopts import App, Parameter
from rich.console import Console as Screen
from rich.table import Table
from rich.text import Text

from greenroom.actors.cli.attach import choose_prompts, drive
from greenroom.actors.cli.demo import STEPS, play
from greenroom.actors.cli.drawing import draw, plain
from greenroom.actors.cli.watching import watch
from greenroom.actors.client import Client, connect
from greenroom.actors.gateway import Access, GatewayLimits, read_tokens
from greenroom.actors.system import open_runtime
from greenroom.actors.toolbox.describe import describe_tool
from greenroom.protocol.errors import ConfigError, Deadlock, GreenroomError
from greenroom.protocol.terminals import AnswerFailure, PendingForm

__all__ = ["app", "main"]

PORT = 8642
DEFAULT_URL = f"ws://127.0.0.1:{PORT}/rpc"

Url = Annotated[str, Parameter(name="--url", env_var="GREENROOM_URL", help="The gateway to talk to.")]
AsJson = Annotated[
    bool, Parameter(name="--json", negative=(), help="Print JSON for a program instead of text for a person.")
]

JsonFile = Annotated[Path, Parameter(allow_leading_hyphen=True)]
"""A file, or - for standard input."""

app = App(
    name="greenroom",
    help="Agents, people and programs ask each other whole forms, and nobody waits in a circle.",
    version_flags=["--version"],
    result_action="return_value",
)


def main() -> None:
    """Run the command line; ends the process with 0, 1 (it was refused or failed), 2 (wrong usage) or 130 (Ctrl-C)."""
    try:
        code = app(sys.argv[1:], backend="trio")
    except KeyboardInterrupt:
        code = 130
    except BaseExceptionGroup as group:
        if group.split(KeyboardInterrupt)[1] is not None:
            raise
        code = 130
    except GreenroomError as error:
        _fail(error)
        code = 1
    except BrokenPipeError:
        sys.stderr.close()  # whoever read our output has gone, and nobody is left to tell
        code = 1
    sys.exit(code if isinstance(code, int) else 0)


def _fail(error: GreenroomError) -> None:
    screen = Screen(stderr=True, soft_wrap=True)
    screen.print(Text.assemble((error.code, "bold red"), "  ", plain(error.message)))
    if isinstance(error, Deadlock):
        screen.print(Text("  " + " -> ".join(plain(name) for name in error.path)))
    for problem in error.context.get("problems", ()):
        screen.print(Text(f"  {plain(_sentence(problem))}"))


def _sentence(problem: object) -> str:
    if isinstance(problem, Mapping):
        told = cast("Mapping[str, object]", problem)
        return ": ".join(str(part) for part in (told.get("field"), told.get("detail")) if part)
    return str(problem)


@asynccontextmanager
async def _gateway(url: str) -> AsyncGenerator[Client]:
    try:
        async with connect(url, token=os.environ.get("GREENROOM_TOKEN") or None) as client:
            yield client
    except GreenroomError as error:
        if error.code != "CONNECT":
            raise
        hint = "Start one with `greenroom serve`, or name another with --url or GREENROOM_URL."
        if error.context.get("status") == 401:
            hint = "Put the token into GREENROOM_TOKEN."
        raise type(error)(error.code, f"{error.message} {hint}", error.context) from None


# -------------------------------------------------------------------- serving


@app.command
async def serve(
    *,
    terminal: Annotated[list[str] | None, Parameter(negative=())] = None,
    host: str = "127.0.0.1",
    port: int = PORT,
    timeout: float = 300.0,
    grace: float = 30.0,
    tokens: Path | None = None,
    trusted_host: Annotated[list[str] | None, Parameter(negative=())] = None,
    cert: Path | None = None,
    key: Path | None = None,
) -> int:
    """Serve terminals to people and programs until Ctrl-C or SIGTERM. SIGHUP reads the tokens again.

    Without tokens every program of this machine may do everything, and no other machine reaches the gateway. A token
    is named in the file by the environment variable that holds it, or by its SHA-256; clients find theirs in
    GREENROOM_TOKEN.

    Parameters
    ----------
    terminal
        A terminal that can be asked; give it once for each.
    host
        The address to listen on. Without access tokens only this machine's own addresses are allowed.
    port
        The port to listen on; 0 takes a free one and prints it.
    timeout
        Seconds until an unanswered form expires, where its ask says nothing else; 0 means never.
    grace
        Seconds that a client which lost its connection may be away before its forms are withdrawn.
    tokens
        A TOML file of access tokens, a table for each: `token_env` or `token_sha256`, `expires`, and what it grants
        (`attach`, `answer`, `ask`, `ask_as`, `tools`: lists of names; `tree`, `admin`: true).
    trusted_host
        A further name, such as greenroom.example:8443, under which the gateway may be called; once for each.
    cert
        The certificate chain for TLS, as PEM.
    key
        The key of the certificate, as PEM.
    """
    access = None if tokens is None else Access(await trio.to_thread.run_sync(read_tokens, tokens))
    tls = None if cert is None and key is None else await trio.to_thread.run_sync(_server_tls, cert, key)
    screen = Screen(stderr=True)
    async with open_runtime(timeout=timeout or None, tune_gc=True) as runtime:
        for name in terminal or ():
            runtime.terminals.add(name)
        runtime.tools.add(describe_tool(runtime.tools))
        try:
            gateway = await runtime.serve(
                host=host,
                port=port,
                trusted_hosts=trusted_host or (),
                limits=GatewayLimits(grace=grace),
                access=access,
                tls=tls,
            )
        except OSError as error:
            where = f"{host}:{port}"
            raise ConfigError("BIND", f"Nothing can listen at {where}: {error.strerror}. Try --port 0.") from None
        print(gateway.url, flush=True)
        screen.print("Stop with Ctrl-C.", style="dim")
        await _until_stopped(tokens, access, screen)
        screen.print("Stopping.", style="dim")
    return 0


def _server_tls(cert: Path | None, key: Path | None) -> ssl.SSLContext:
    if cert is None or key is None:
        raise ConfigError("TLS", "TLS needs a certificate and its key: give both --cert and --key.")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(cert, key)
    except OSError as error:  # ssl.SSLError is one
        raise ConfigError("TLS", f"{cert} and {key} are no certificate and its key: {error}.") from None
    return context


async def _until_stopped(tokens: Path | None, access: Access | None, screen: Screen) -> None:
    """Wait for SIGINT or SIGTERM, reading the tokens again at each SIGHUP.

    Stopping takes a second or two, whatever clients do; further SIGTERMs change nothing, a second Ctrl-C ends the
    process at once.
    """
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
        async for number in signals:
            if number != signal.SIGHUP:
                break
            if tokens is not None and access is not None:
                try:
                    access.replace(await trio.to_thread.run_sync(read_tokens, tokens))
                    screen.print("The tokens were read again.", style="dim")
                except ConfigError as error:  # those there are stay
                    _fail(error)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


# -------------------------------------------------------------------- asking and answering


@app.command
async def ask(
    to: str,
    form: JsonFile,
    /,
    *,
    as_: Annotated[str | None, Parameter(name="--as")] = None,
    timeout: float | None = None,
    url: Url = DEFAULT_URL,
) -> int:
    """Ask a terminal a form, wait for the answer and print it as JSON. Ctrl-C withdraws the form.

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
    """
    schema = await _read_object(form)
    if schema is None:
        raise ConfigError("FORM", f"{form} holds no form: a form is a JSON object with the member `fields`.")
    limit = msgspec.UNSET if timeout is None else timeout or None
    async with _gateway(url) as client:
        _print_json(await client.ask(to, schema, from_=as_, timeout=limit))
    return 0


@app.command
async def pending(terminal: str | None = None, /, *, json_: AsJson = False, url: Url = DEFAULT_URL) -> int:
    """List the forms that wait for an answer.

    Parameters
    ----------
    terminal
        The terminal to look at; all of them without it.
    """
    async with _gateway(url) as client:
        forms = await client.pending(terminal)
    if json_:
        _print_json(forms)
        return 0
    table = Table("id", "at", "asked by", "form", "fields", box=None, header_style="dim")
    for record in forms:
        table.add_row(*(Text(plain(text)) for text in _row(record)))
    Screen().print(table if forms else Text("Nothing is pending.", "dim"), soft_wrap=True)
    return 0


def _row(record: PendingForm) -> tuple[str, ...]:
    schema = record.schema
    title = schema.label if schema.label is not msgspec.UNSET else schema.name
    return (
        record.id,
        "" if record.to is msgspec.UNSET else record.to,
        "" if record.from_ is msgspec.UNSET else record.from_,
        "" if title is msgspec.UNSET else title,
        ", ".join(field.name for field in schema.fields),
    )


@app.command
async def answer(terminal: str, id: str, values: JsonFile, /, *, url: Url = DEFAULT_URL) -> int:
    """Answer a pending form. All of the values are accepted, or none and each field at fault is named.

    Parameters
    ----------
    terminal
        The terminal at which the form waits.
    id
        The form's id, as `greenroom pending` lists it, or its first characters.
    values
        A file with the values as a JSON object, or - for standard input.
    """
    given = await _read_object(values)
    if given is None:
        raise ConfigError("VALUES", f"{values} holds no values: they are a JSON object, field names to answers.")
    async with _gateway(url) as client:
        result = await client.answer(terminal, await _whole_id(client, terminal, id), given)
    if not isinstance(result, AnswerFailure):
        _print_json(result.value)
        return 0
    screen = Screen(stderr=True, soft_wrap=True)
    refusal = result.error
    if refusal.reason == "rejected" and refusal.errors is not msgspec.UNSET:
        screen.print(Text("The answer was refused; the form still waits.", "bold red"))
        for error in refusal.errors:
            screen.print(Text(f"  {plain(error.field)}: {plain(error.message)}"))
    elif refusal.reason == "target":
        screen.print(Text(f"There is no terminal {plain(terminal)}.", "bold red"))
    else:
        screen.print(Text(f"No form {plain(id)} waits at {plain(terminal)} (any more).", "bold red"))
    return 1


async def _whole_id(client: Client, terminal: str, id: str) -> str:
    """The id that begins so, if there is just one; else what was given."""
    if len(id) < 4:
        return id
    found = [record.id for record in await client.pending(terminal) if record.id.startswith(id)]
    return found[0] if len(found) == 1 else id


@app.command
async def attach(name: str, /, *, url: Url = DEFAULT_URL) -> int:
    """Answer the forms that are asked of a terminal, one after another. Ctrl-C leaves; what is not answered stays.

    At a terminal every field is a prompt. Where the input is piped in, every field takes a line of it.

    Parameters
    ----------
    name
        The terminal to attach to.
    """
    prompts = choose_prompts()
    async with _gateway(url) as client:
        return await drive(client, name, prompts)


# -------------------------------------------------------------------- looking


@app.command
async def tree(
    *,
    watch_: Annotated[bool, Parameter(name="--watch", negative=())] = False,
    json_: AsJson = False,
    url: Url = DEFAULT_URL,
) -> int:
    """Draw every actor of a running gateway, and who waits for whom.

    Parameters
    ----------
    watch_
        Draw it again and again, until q or Ctrl-C.
    """
    async with _gateway(url) as client:
        if watch_:
            return await watch(client, Screen(), json=json_)
        snapshot = await client.tree()
    if json_:
        _print_json(snapshot)
    else:
        Screen().print(draw(snapshot), soft_wrap=True)
    return 0


@app.command
async def demo(*, break_: Annotated[str | None, Parameter(name="--break")] = None) -> int:
    """Play a release that needs a person's approval, on a real server and in a few seconds.

    Exits with 0 only if every step has really happened.

    Parameters
    ----------
    break_
        Sabotage this step, to see that it is noticed.
    """
    if break_ is not None and break_ not in STEPS:
        raise ConfigError("STEP", f"The demo has no step {break_}; its steps are {', '.join(STEPS)}.")
    return await play(Screen(), break_)


# -------------------------------------------------------------------- files


async def _read_object(path: Path) -> dict[str, Any] | None:
    """The JSON object in the file; None if it holds some other JSON. Raises ConfigError FILE or JSON."""
    try:
        text = (
            await trio.to_thread.run_sync(sys.stdin.read)
            if str(path) == "-"
            else await trio.Path(path).read_text("utf-8")
        )
        value = json.loads(text)
    except OSError as error:
        raise ConfigError("FILE", f"{path} cannot be read: {error.strerror}.", {"file": str(path)}) from None
    except (ValueError, RecursionError) as error:
        raise ConfigError("JSON", f"{path} is no JSON: {error}.", {"file": str(path)}) from None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def _print_json(value: object) -> None:
    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())
