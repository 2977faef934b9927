"""A conversation with an agent at the terminal: what it says as it comes, and its questions among it."""

from __future__ import annotations

import json
import math
import signal
from collections.abc import Awaitable, Callable
from typing import Final, Literal, TextIO, final

import trio

from greenroom.actors.agent import Agent, AgentRun
from greenroom.actors.cli.drawing import plain
from greenroom.actors.cli.leaving import CTRL_C, race, until_signalled
from greenroom.actors.console import Console, Prompts, wording
from greenroom.actors.terminal import Terminal
from greenroom.protocol.agents import AgentChunk, AgentResult, MessageInput, Progress, TokenChunk, ToolChunk
from greenroom.protocol.errors import AgentError, FormError, GreenroomError, TerminalError
from greenroom.protocol.forms import Form
from greenroom.protocol.terminals import PendingForm
from greenroom.protocol.tools import ToolCall, ToolResult, ToolSuccess
from greenroom.runtime.pipeline.outcomes import error_text

__all__ = ["Chat"]

_LINE: Final = {"fields": [{"control": "text", "name": "text", "label": "You"}]}


@final
class Chat:
    """One agent and one person, who takes turns with it and answers for the terminal that its questions go to.

    Only one thing at a time is on the screen: what the agent says while a form is being answered is shown after it.

    The agent may also be at work by itself, woken by a job or a sub-agent of its own. What it says then is shown before
    the next line is read; a line that comes meanwhile waits for its end, and the person is there for it as in a turn.
    """

    def __init__(self, agent: Agent, terminal: Terminal, prompts: Prompts, out: TextIO) -> None:
        self._agent = agent
        self._terminal = terminal
        self._prompts = prompts
        self._console = Console(prompts)
        self._out = out
        self._screen = trio.Lock()
        self._in_line = False
        """Something is on the last line of the screen."""
        self._code = 0
        """Why the conversation is to end, if it is."""
        self._news = trio.Event()
        self._own = False
        """A turn of the conversation is under way."""
        self._said: list[tuple[str, Literal["help", "failure"]]] = []
        """What the agent has come to by itself, and is not shown yet."""
        self._over = trio.Event()
        """A run has ended since it was looked at."""
        self._form: tuple[str, Form] | None = None
        """The form at hand: the id of its ticket, and the copy that is being filled in."""
        self._progress, self._heard = trio.open_memory_channel[Progress](math.inf)

    async def talk(self) -> int:
        """Take turns until the person leaves; the exit code.

        0: the input has ended. 1: it ended in the middle of a form. 130: Ctrl-C where a line was to be typed; 143 and
        129: SIGTERM and SIGHUP. During a turn Ctrl-C stops the turn, with everything beneath it, and nothing else.
        """
        closing = [
            self._terminal.emitter.on("pending", self._hear),
            self._terminal.emitter.on("expire", self._take_away),
            self._terminal.emitter.on("withdraw", self._take_away),
            self._agent.emitter.on("progress", self._progress.send_nowait),
            self._agent.emitter.on("finish", self._finished),
            self._agent.emitter.on("error", self._failed),
        ]
        try:
            self._prompts.say("Ctrl-C stops a turn, and leaves where a line is to be typed.", "help")
            while not self._code:
                self._show_said()
                text = await race(self._read, until_signalled)
                if isinstance(text, int):
                    return text
                if text:
                    await self._take_turn(text)
            return self._code
        finally:
            for close in closing:
                close()

    async def _read(self) -> str | int:
        """The next line, or the code to leave with."""
        try:
            values = await self._console.ask(Form(_LINE))
        except FormError:
            return 0
        except TerminalError as error:
            if error.code != "CANCEL":
                raise
            return CTRL_C
        return str(values.get("text", ""))

    # ---------------------------------------------------------------- a turn

    async def _take_turn(self, text: str) -> None:
        if self._at_work:
            self._say("It is at work by itself, and comes to this afterwards.")
        while self._at_work and not self._code:
            self._over = trio.Event()
            await self._attend(self._over.wait, self._show_said)
        self._show_said()
        if self._code:
            return
        self._agent.context.messages.add(MessageInput("user", text))
        self._own = True
        try:
            async with self._agent.stream() as run:
                await self._attend(lambda: self._show(run), lambda: self._print_rest(run))
        except AgentError as error:  # it has just begun something by itself, in which it reads this
            self._say(f"{error.code}  {plain(error.message)}", "failure")
        finally:
            self._own = False

    async def _attend(self, work: Callable[[], Awaitable[None]], show: Callable[[], None]) -> None:
        """Await what the agent does, with the person at hand for its forms, and to stop it. `show` shows what it has
        said by now."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._stop_when_signalled)
            nursery.start_soon(self._answer_forms, show)
            nursery.start_soon(self._show_progress)
            await work()
            nursery.cancel_scope.cancel()

    @property
    def _at_work(self) -> bool:
        """It runs, or is about to: what waits in its inbox wakes it, unless that has failed."""
        status = self._agent.status
        return status == "running" or (status != "error" and self._agent.inbox.wakes)

    async def _stop_when_signalled(self) -> None:
        with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            async for number in signals:
                self._stop()
                if number != signal.SIGINT:
                    self._code = 128 + number

    def _stop(self) -> None:
        self._agent.abort("interrupted", keep_inbox=True)

    def _finished(self, result: AgentResult) -> None:
        self._over.set()
        if not self._own and result.content:
            self._said.append((result.content, "help"))

    def _failed(self, error: Exception) -> None:
        self._over.set()
        if not self._own:
            self._said.append((error_text(error), "failure"))

    def _show_said(self) -> None:
        said, self._said = self._said, []
        for text, tone in said:
            for line in text.split("\n"):
                self._say(plain(line), tone)

    async def _show(self, run: AgentRun) -> None:
        """What comes of a run, up to its end."""
        while True:
            async with self._screen:
                self._print_rest(run)
            if run.settled:
                break
            await run.changed()
        try:
            partial = run.outcome().partial
        except GreenroomError as error:
            self._say(f"{error.code}  {plain(error.message)}", "failure")
            return
        if partial:
            self._say("Stopped." if run.stopped else "It has used up its turns.", "failure")
        self._end_line()

    def _print_rest(self, run: AgentRun) -> None:
        """What was said already, so that no question comes in the middle of it."""
        while (chunk := run.take()) is not None:
            self._print(chunk)

    def _print(self, chunk: AgentChunk) -> None:
        if isinstance(chunk, TokenChunk):
            text = "\n".join(plain(line) for line in chunk.content.expandtabs(4).split("\n"))
            self._in_line = not text.endswith("\n") if text else self._in_line
            self._out.write(text)
            self._out.flush()
        elif isinstance(chunk, ToolChunk):
            self._say(_called(chunk.call, chunk.result))

    async def _show_progress(self) -> None:
        async for progress in self._heard:
            if progress.event != "turn":
                async with self._screen:
                    self._say(
                        f"  {plain(progress.agent)} {progress.event} {wording.shortened(progress.detail)}".rstrip()
                    )

    def _say(self, text: str, tone: Literal["help", "failure"] = "help") -> None:
        self._end_line()
        self._prompts.say(text, tone)

    def _end_line(self) -> None:
        if self._in_line:
            self._out.write("\n")
            self._out.flush()
            self._in_line = False

    # ---------------------------------------------------------------- its questions

    async def _answer_forms(self, show: Callable[[], None]) -> None:
        """Put what is asked to the person, one form after another, until they stop the turn at one of them."""
        while True:
            self._news = trio.Event()
            for record in self._terminal.pending():
                async with self._screen:
                    show()
                    answered = await self._answer(record)
                if not answered:
                    self._stop()
                    return
                break
            else:
                await self._news.wait()

    async def _answer(self, record: PendingForm) -> bool:
        """Have a form filled in, and answer it. False: the person has left it."""
        self._say(wording.form_title(record.schema))
        form = Form(record.schema)
        self._form = record.id, form
        try:
            values = await self._console.ask(form)
        except FormError:
            if self._prompts.ended:
                self._code = 1
                return False
            self._prompts.say("Nobody waits for the answer any more.", "failure")
            return True
        except TerminalError as error:
            if error.code != "CANCEL":
                raise
            return False
        finally:
            self._form = None
        await self._terminal.answer(record.id, values)
        return True

    def _hear(self, _record: PendingForm) -> None:
        self._news.set()

    def _take_away(self, id: str) -> None:
        if self._form is not None and self._form[0] == id:
            self._form[1].destroy()


def _called(call: ToolCall, result: ToolResult) -> str:
    came = json.dumps(result.value, ensure_ascii=False) if isinstance(result, ToolSuccess) else result.error
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return f"  {plain(call.name)} {wording.shortened(arguments)}: {wording.shortened(came)}"
