"""`greenroom attach`: the forms of one terminal, put to the person who runs the command, one after another."""

from __future__ import annotations

import sys
from typing import Final, TextIO, final

import trio
from msgspec import UNSET, structs

from greenroom.actors.cli.leaving import CTRL_C, race, until_signalled
from greenroom.actors.client import AttachedTerminal, Client
from greenroom.actors.console import Console, LinePrompts, LineReader, Prompts, wording
from greenroom.protocol.errors import ConfigError, FormError, RpcError, TerminalError
from greenroom.protocol.forms import FieldError, Form, FormField, FormSchema, Value, compute_defaults
from greenroom.protocol.rpc import FormAnswered, FormExpired, FormPending, FormWithdrawn
from greenroom.protocol.terminals import AnswerRefusal, AnswerResult, AnswerSuccess, PendingForm

__all__ = ["choose_prompts", "drive"]

_EXPIRED: Final = {
    "timeout": "Nobody has answered it in time.",
    "restarted": "It was taken away: its terminal was restarted.",
    "removed": "It was taken away: its terminal was removed.",
    "stopped": "It was taken away: its terminal was stopped.",
    "missed": "It went away while the connection was lost.",
}


def choose_prompts() -> Prompts:
    """Prompts where a person sits at a terminal, lines where the input comes from elsewhere.

    Raises ConfigError CONSOLE where questionary is missing, where nobody would see the prompts, or where the standard
    input or output is closed.
    """
    if sys.stdin is None:
        raise ConfigError(
            "CONSOLE", "There is nothing to read answers from: let standard input be a terminal, a file or a pipe."
        )
    if sys.stdout is None:
        raise ConfigError("CONSOLE", "There is nothing to show forms on: let standard output be open.")
    if not sys.stdin.isatty():
        return LinePrompts(LineReader(sys.stdin.fileno()), sys.stdout, strict=True, notes=sys.stderr)
    screen = next((stream for stream in (sys.stdout, sys.stderr) if stream is not None and stream.isatty()), None)
    if screen is None:
        raise ConfigError(
            "CONSOLE", "There is nothing to show forms on: let standard output or standard error be a terminal."
        )
    return _at_terminal(sys.stdin, screen)


def _at_terminal(stdin: TextIO, screen: TextIO) -> Prompts:
    try:
        from greenroom.actors.console.tty import TtyPrompts
    except ModuleNotFoundError as missing:
        if missing.name not in ("questionary", "prompt_toolkit"):
            raise
        raise ConfigError(
            "CONSOLE",
            "Forms at a terminal need the package questionary: run `pip install questionary`, or pipe the answers in, "
            "one a line.",
        ) from None
    return TtyPrompts(stdin, screen)


async def drive(client: Client, name: str, prompts: Prompts, *, once: bool = False) -> int:
    """Put the forms of a terminal to whoever is at the prompts, until they leave; the exit code.

    With `once` it ends as soon as no form waits that has not had its turn.

    0: they left, or it ended so. 1: the input ended and left a form unanswered. 130: Ctrl-C. 143 and 129: SIGTERM and
    SIGHUP. What was not answered stays parked. While the connection is lost the form at hand stays, and its answer
    waits. Raises what `Client.attach` raises, and RpcError CLOSED when the client gives up.
    """
    async with client.attach(name) as terminal:
        prompts.say(f"Attached to {wording.seen(name)}. What you do not answer stays; leave with Ctrl-C.", "help")
        sitting = _Sitting(client, terminal, prompts, once=once)
        try:
            return await race(sitting.hear, sitting.sit, until_signalled)
        except TerminalError as error:
            if error.code != "CANCEL":
                raise
            prompts.say(error.message)
            return CTRL_C


@final
class _Sitting:
    """One person at one terminal, and the form at hand."""

    def __init__(self, client: Client, terminal: AttachedTerminal, prompts: Prompts, *, once: bool) -> None:
        self._client = client
        self._terminal = terminal
        self._prompts = prompts
        self._console = Console(prompts)
        self._once = once
        self._news = trio.Event()
        self._done: set[str] = set()
        """Forms that have had their turn. One that was answered may be listed for a moment longer."""
        self._id: str | None = None
        self._form: Form | None = None
        """The copy of the form at hand that is being filled in."""
        self._fate = ""
        """What has become of the form at hand, if it does not wait any more."""

    async def hear(self) -> int:
        """Follow what happens at the terminal, and take the form at hand away with the one that it stands for."""
        async for event in self._terminal:
            if isinstance(event, FormPending):
                self._done.discard(event.form.id)  # a terminal that restarts may offer it again
                self._news.set()
            elif event.id == self._id:
                self._fate = _fate(event)
                if self._form is not None:
                    self._form.destroy()
        return 0

    async def sit(self) -> int:
        """Have the forms answered, one after another."""
        while (record := await self._next()) is not None:
            self._id, self._fate = record.id, ""
            try:
                if not await self._answer(record):
                    return 1
            finally:
                self._done.add(record.id)
                self._id = None
        return 0

    async def _next(self) -> PendingForm | None:
        """The form that has waited longest, as soon as there is one; None when the person has left, or was to answer
        once and has."""
        while True:
            self._news = trio.Event()
            for record in self._terminal.pending.values():
                if record.id not in self._done:
                    return record
            if self._once or not await race(self._hears_of_one, self._leaves):
                return None

    async def _hears_of_one(self) -> bool:
        await self._news.wait()
        return True

    async def _leaves(self) -> bool:
        await self._prompts.wait_left()
        return False

    async def _answer(self, record: PendingForm) -> bool:
        """Have a form filled in and send the answer, until it is accepted or gone. False: the input has ended."""
        self._introduce(record)
        if self._prompts.ended:
            return self._pass()
        schema = _without_rules_of_others(record.schema)
        form, only = Form(schema), None
        while not self._fate:
            try:
                values = await self._fill_in(form, only)
            except FormError:
                if not self._fate:
                    return self._pass()
                break
            result = await self._send(record.id, _entries(schema, values))
            if result is None:
                return True
            if isinstance(result, AnswerSuccess):
                self._prompts.say("Answered.", "heading")
                return True
            if result.error.reason != "rejected":
                self._fate = self._fate or "It does not wait any more."
                break
            form = Form(schema, values=values)
            only = self._refuse(form, result.error)
            if not only:
                return self._pass()
        self._prompts.say(self._fate, "failure")
        return True

    def _introduce(self, record: PendingForm) -> None:
        self._prompts.say("")
        self._prompts.say(wording.form_title(record.schema), "heading")
        if record.from_ is not UNSET and (asker := wording.seen(record.from_)):
            self._prompts.say(f"asked by {asker}", "help")
        if record.durable:
            self._prompts.say("durable: it stays if the server stops", "help")
        if help := wording.help_text(record.schema):
            self._prompts.say(help, "help")

    async def _fill_in(self, form: Form, only: set[str] | None) -> dict[str, Value]:
        self._form = form
        try:
            return await self._console.ask(form, only=only)
        finally:
            self._form = None

    async def _send(self, id: str, entries: dict[str, Value | None]) -> AnswerResult | None:
        """Send an answer, once. None: nobody knows whether it has arrived. Cancelled, it says that, too."""
        if not self._client.connected:
            self._prompts.say("There is no connection now; the answer goes out when there is one.", "failure")
        try:
            return await self._terminal.answer(id, entries)
        except trio.Cancelled:
            self._say_unknown()
            raise
        except RpcError as error:
            if error.code not in ("CLOSED", "OUTCOME"):
                raise
            self._say_unknown()
            if error.code == "CLOSED":
                raise
            return None

    def _say_unknown(self) -> None:
        self._prompts.say(
            "The answer was on its way, and may have arrived or not: `greenroom pending` shows what still waits.",
            "failure",
        )

    def _refuse(self, form: Form, refusal: AnswerRefusal) -> set[str]:
        """Put the server's messages to the fields that can be asked again, and say the others; the fields' names."""
        asked = {field.name for field in form.schema.fields if _is_asked(field)}
        messages: dict[str, list[str]] = {}
        for error in refusal.errors or ():
            messages.setdefault(error.field, []).append(error.message)
        for name, told in messages.items():
            if name in asked:
                form.invalidate(name, " ".join(told))
            else:
                failure = wording.failure_text(form.schema.fields, FieldError(name, " ".join(told)))
                self._prompts.say(failure, "failure")
        return asked & messages.keys()

    def _pass(self) -> bool:
        """Leave the form to others. False: the input has ended."""
        if self._prompts.ended:
            self._prompts.say("The input has ended before this form was answered; it still waits.", "failure")
            return False
        self._prompts.say("It cannot be answered here, and still waits for somebody else.", "failure")
        return True


def _fate(event: FormAnswered | FormExpired | FormWithdrawn) -> str:
    match event:
        case FormAnswered():
            return "Somebody else has answered it."
        case FormExpired():
            return _EXPIRED.get(event.reason, "It has expired.")
        case FormWithdrawn():
            return "It was withdrawn: nobody waits for the answer any more."


def _is_asked(field: FormField) -> bool:
    return not any(flag is True for flag in (field.hidden, field.locked, field.disabled))


def _without_rules_of_others(schema: FormSchema) -> FormSchema:
    """The schema without the rules of fields that are not asked.

    The server may hold answers to those that only it knows of, so it alone can judge them.
    """
    return structs.replace(
        schema,
        fields=tuple(field if _is_asked(field) else structs.replace(field, rule=UNSET) for field in schema.fields),
    )


def _entries(schema: FormSchema, values: dict[str, Value]) -> dict[str, Value | None]:
    """What to send: the answer to every field that was asked, None where its default was taken away."""
    opened = compute_defaults(schema)
    names = (field.name for field in schema.fields if _is_asked(field))
    return {name: values.get(name) for name in names if name in values or name in opened}
