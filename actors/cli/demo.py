"""The demo: a release that needs a person's approval, played over a real WebSocket.

Each step does something and checks that it has happened; `--break STEP` sabotages one, and the demo must notice.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Annotated, Any, Final, final

import trio
from cyclopts import Parameter
from rich.console import Console as Screen
from rich.text import Text

from greenroom.actors.cli.drawing import draw, plain
from greenroom.actors.client import AttachedTerminal, Client, connect
from greenroom.actors.gateway import Gateway
from greenroom.actors.system import Runtime, open_runtime
from greenroom.protocol.errors import ConfigError, FormError, GreenroomError, TerminalDeadlock
from greenroom.protocol.forms import Form
from greenroom.protocol.rpc import FormAnswered, FormExpired, FormPending, FormWithdrawn, TerminalEvent
from greenroom.protocol.terminals import AnswerFailure, PendingForm
from greenroom.protocol.tree import ActorSnapshot, TreeSnapshot
from greenroom.runtime.actor import Actor, handles
from greenroom.runtime.messages import Request, Withdrawn
from greenroom.runtime.ref import Ref
from greenroom.runtime.reply import Reply

__all__ = ["STEPS", "demo", "play"]

PATIENCE = 5.0
"""Seconds that a step may take before it counts as failed."""

HASTY = {"publish": True, "reason": "ok", "notify": ["users", "press", "support"]}
"""Too short a reason, and one addressee too many."""

CONSIDERED = {
    "publish": True,
    "reason": "Read the changes and ran the checks once more.",
    "channel": "stable",
    "share": 25,
}

QUICK = {"label": "Still there?", "fields": [{"control": "confirm", "name": "there", "rule": {"required": True}}]}


class Failed(Exception):
    """A step has not happened as it should."""


def check(holds: object, what: str) -> None:
    if not holds:
        raise Failed(what)


class Release(Request[dict[str, Any]], frozen=True):
    """Ask the reviewer whether the release may go out."""

    form: Mapping[str, Any]
    timeout: float


@final
class ReleaseAgent(Actor):
    """Prepares a release and asks the reviewer before it publishes;

    it stops asking when nobody wants to know any more.
    """

    def __init__(self, runtime: Runtime) -> None:
        super().__init__()
        self.runtime = runtime
        self.asking: dict[Reply[Any], trio.CancelScope] = {}

    @handles(Release)
    def release(self, message: Release) -> None:
        reply = self.take_reply()
        self.asking[reply] = trio.CancelScope()
        self.start_soon(self._consult, reply, message)

    @handles(Withdrawn)
    def withdrawn(self, message: Withdrawn) -> None:
        if message.reply in self.asking:
            self.asking[message.reply].cancel()

    async def _consult(self, reply: Reply[Any], message: Release) -> None:
        terminals = self.runtime.terminals
        with self.asking[reply]:
            try:
                form = Form(message.form)
                reply.answer(await terminals.ask("release-agent", "reviewer", form, timeout=message.timeout))
            except GreenroomError as error:
                reply.fail(error)
        del self.asking[reply]


class Stage:
    """What the steps share, filled in as they go."""

    gateway: Gateway
    agent: Ref
    reviewer: Client
    terminal: AttachedTerminal
    form: PendingForm

    def __init__(
        self, screen: Screen, runtime: Runtime, nursery: trio.Nursery, stack: AsyncExitStack, broken: str | None
    ) -> None:
        self.screen = screen
        self.runtime = runtime
        self.nursery = nursery
        self.stack = stack
        """What the steps open, closed after the last one."""
        self.broken = broken
        self.step = ""
        self._ended, self._outcomes = trio.open_memory_channel[dict[str, Any] | GreenroomError](len(STEPS))
        """How the agent's asks ended."""

    @property
    def sabotaged(self) -> bool:
        """The step that runs now is the one to break."""
        return self.step == self.broken

    def say(self, text: str) -> None:
        self.screen.print(Text("   " + text, "dim"), soft_wrap=True)

    def ask(self, form: Mapping[str, Any], timeout: float = 60) -> trio.CancelScope:
        """Let the agent ask, beside the demo; the scope cancels it."""
        scope = trio.CancelScope()

        async def run() -> None:
            with scope:
                try:
                    values = await self.agent.ask(Release(form, timeout))
                    self._ended.send_nowait(values)
                except GreenroomError as error:
                    self._ended.send_nowait(error)

        self.nursery.start_soon(run)
        return scope

    async def event(self, kind: type[TerminalEvent]) -> Any:
        """What the reviewer's connection is told next; it must be of that kind."""
        with trio.move_on_after(PATIENCE):
            event = await anext(self.terminal)
            check(isinstance(event, kind), f"the reviewer was told {type(event).__name__}, not {kind.__name__}")
            return event
        raise Failed(f"the reviewer was never told {kind.__name__}")

    async def outcome(self) -> dict[str, Any] | GreenroomError:
        """How the agent's last ask ended."""
        with trio.move_on_after(PATIENCE):
            return await self._outcomes.receive()
        raise Failed("the agent still waits")


async def serve(stage: Stage) -> None:
    """A server on a free port"""
    if stage.sabotaged:
        taken = await stage.runtime.serve(port=0)
        await stage.runtime.serve(port=taken.port)
    stage.gateway = await stage.runtime.serve(port=0)
    stage.say(stage.gateway.url)


async def attach(stage: Stage) -> None:
    """A reviewer attaches over a WebSocket"""
    stage.reviewer = await stage.stack.enter_async_context(connect(stage.gateway.url))
    name = "nobody" if stage.sabotaged else "reviewer"
    stage.terminal = await stage.stack.enter_async_context(stage.reviewer.attach(name))
    check(not stage.terminal.pending, "something is pending already")
    stage.say(f"terminals: {', '.join(terminal.name for terminal in await stage.reviewer.terminals())}")


async def ask(stage: Stage) -> None:
    """The release agent asks the reviewer the whole form"""
    form = json.loads(await trio.to_thread.run_sync(_release_review))
    if stage.sabotaged:
        form["fields"][0]["name"] = "__proto__"  # no form can have that
    stage.ask(form)
    if stage.sabotaged:
        check(isinstance(await stage.outcome(), dict), "the form has a fault and was refused before anybody saw it")
    event: FormPending = await stage.event(FormPending)
    stage.form = event.form
    check(event.form.from_ == "release-agent", "the form does not say who asks")
    stage.say(f"{len(event.form.schema.fields)} fields: {', '.join(field.name for field in event.form.schema.fields)}")


def _release_review() -> str:
    """The example form: installed beside this module, or in the folder of examples of a checkout."""
    here = Path(__file__).resolve()
    installed = here.with_name("release-review.json")
    return (installed if installed.is_file() else here.parents[2] / "examples" / installed.name).read_text("utf-8")


async def refuse(stage: Stage) -> None:
    """A hasty answer is refused, field by field"""
    result = await stage.terminal.answer(stage.form.id, CONSIDERED if stage.sabotaged else HASTY)
    if not isinstance(result, AnswerFailure) or not isinstance(result.error.errors, tuple):
        raise Failed("the hasty answer was accepted")
    for error in result.error.errors:
        stage.say(f"{error.field}: {error.message}")
    check({error.field for error in result.error.errors} == {"reason", "notify"}, "other fields were refused")
    check(stage.form.id in stage.terminal.pending, "the form no longer waits")


async def circle(stage: Stage) -> None:
    """The reviewer asks the agent back: a circle, refused at once with its path"""
    if stage.sabotaged:
        # Nobody waits for the reviewer any more, so there is no circle.
        await stage.terminal.withdraw(stage.form.id)
    try:
        with trio.move_on_after(1):
            await stage.reviewer.ask("release-agent", QUICK, from_="reviewer")
    except TerminalDeadlock as error:
        stage.say(" -> ".join(error.path))
        check(error.path == ["reviewer", "release-agent", "reviewer"], "the path is another one")
        return
    raise Failed("the circle was not seen")


async def accept(stage: Stage) -> None:
    """A considered answer is accepted, and reaches the agent"""
    result = await stage.terminal.answer(stage.form.id, HASTY if stage.sabotaged else CONSIDERED)
    check(result.success, "the considered answer was refused")
    await stage.event(FormAnswered)
    values = await stage.outcome()
    if not isinstance(values, dict):
        raise Failed(f"the agent's ask ended with {values.code}")
    check(values["channel"] == "stable", "the agent has another answer than was given")
    check(values["notify"] == ["support"], "a default is missing from the answer")
    stage.say(json.dumps(values))


async def expire(stage: Stage) -> None:
    """Nobody answers the next one: it expires, and the agent learns why"""
    stage.ask(QUICK, timeout=60 if stage.sabotaged else 0.2)
    event: FormPending = await stage.event(FormPending)
    if stage.sabotaged:
        await stage.terminal.answer(event.form.id, {"there": True})
    expired: FormExpired = await stage.event(FormExpired)
    error = await stage.outcome()
    check(isinstance(error, FormError) and error.context["reason"] == "timeout", "the agent was told something else")
    check(expired.reason == "timeout", "the reviewer was told another reason")
    stage.say(str(error))


async def withdraw(stage: Stage) -> None:
    """The agent's ask is cancelled: the form leaves the reviewer's screen at once"""
    scope = stage.ask(QUICK)
    event: FormPending = await stage.event(FormPending)
    if stage.sabotaged:
        await stage.terminal.answer(event.form.id, {"there": True})
    else:
        scope.cancel()
    withdrawn: FormWithdrawn = await stage.event(FormWithdrawn)
    check(withdrawn.id == event.form.id, "another form was withdrawn")
    check(not stage.terminal.pending, "something is still pending")
    stage.say(f"{withdrawn.id} is gone")


async def tree(stage: Stage) -> None:
    """All that lives, and who waits for whom"""
    if not stage.sabotaged:
        stage.ask(QUICK)
        await stage.event(FormPending)
    snapshot = await stage.reviewer.tree()
    stage.screen.print(draw(snapshot))
    paths = {actor.path for actor in _actors(snapshot.root)}
    for path in ("/terminals/reviewer", "/terminals/release-agent", "/release-agent", "/gateway"):
        check(path in paths, f"{plain(path)} is not in the tree")
    check(_waits(snapshot), "nobody waits for the reviewer")


def _actors(actor: ActorSnapshot) -> list[ActorSnapshot]:
    return [actor, *(found for child in actor.children for found in _actors(child))]


def _waits(snapshot: TreeSnapshot) -> bool:
    return any(wait.to == "reviewer" for wait in snapshot.waits)


STEPS: Final[dict[str, Callable[[Stage], Awaitable[None]]]] = {
    "serve": serve,
    "attach": attach,
    "ask": ask,
    "refuse": refuse,
    "circle": circle,
    "accept": accept,
    "expire": expire,
    "withdraw": withdraw,
    "tree": tree,
}


async def play(screen: Screen, broken: str | None) -> int:
    """Play all steps, stopping at the first that fails. 0 if none does, else 1."""
    async with open_runtime(tune_gc=True) as runtime, trio.open_nursery() as nursery:
        async with AsyncExitStack() as stack:
            stage = Stage(screen, runtime, nursery, stack, broken)
            stage.agent = runtime.spawn(ReleaseAgent(runtime), "release-agent")
            runtime.terminals.add("reviewer")
            runtime.terminals.add("release-agent", operator=stage.agent)
            code = await _run(stage)
        nursery.cancel_scope.cancel()
    return code


async def _run(stage: Stage) -> int:
    for number, (stage.step, step) in enumerate(STEPS.items(), start=1):
        what = (step.__doc__ or "").strip()
        stage.screen.print(Text.assemble((f"{number}. ", "dim"), (what, "bold")))
        try:
            await step(stage)
        except (Failed, GreenroomError, OSError) as error:
            stage.screen.print(Text(f"   {stage.step} failed: {plain(str(error))}", "bold red"))
            return 1
    stage.screen.print(Text("Everything happened as it should.", "green"))
    return 0


async def demo(*, break_: Annotated[str | None, Parameter(name="--break")] = None) -> int:
    """Play a release that needs a person's approval, in a few seconds.

    A real server, real connections, and a check after each step: exits with 0 only if every one has really happened.

    Parameters
    ----------
    break_
        Sabotage this step, to see that it is noticed.
    """
    if break_ is not None and break_ not in STEPS:
        raise ConfigError("STEP", f"The demo has no step {break_}; its steps are {', '.join(STEPS)}.")
    return await play(Screen(), break_)
