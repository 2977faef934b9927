"""The agent: a model, what it has to go by, and runs of it, as an actor."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack, nullcontext
from contextvars import Context, copy_context
from functools import partial
from typing import Final, Literal, TypeAlias, Unpack, final

import trio
from msgspec import structs
from trio.lowlevel import enable_ki_protection

from greenroom.actors.agent.context import AgentContext
from greenroom.actors.agent.conversation import Conversation
from greenroom.actors.agent.conversations import ConversationManager
from greenroom.actors.agent.inbox import DEFAULT_INBOX_LIMIT, Inbox
from greenroom.actors.agent.left import tell_of_jobs
from greenroom.actors.agent.messages import LoggedMessages
from greenroom.actors.agent.run import RUN, AgentRun, RunOptions
from greenroom.actors.agent.settings import DEFAULT_AGENT_LIMIT, Settings
from greenroom.actors.agent.turns import Turns
from greenroom.actors.session import Session
from greenroom.actors.workspace import WorkspaceManager
from greenroom.protocol.agents import AgentResult, Budget, InstructionManager, Scope, Window
from greenroom.protocol.emitter import Emitter, ErrorHandler, Listener
from greenroom.protocol.errors import AgentError, GreenroomError
from greenroom.protocol.lineage import tag_agent
from greenroom.protocol.sessions import TurnEndReason
from greenroom.runtime.actor import Actor, handles
from greenroom.runtime.cancel import Cancel, CancelToken
from greenroom.runtime.lineage import LINEAGE, current_lineage
from greenroom.runtime.messages import Message, Request
from greenroom.runtime.patience import patient_scope
from greenroom.runtime.provider import Decides, Provider, Scheduler
from greenroom.runtime.tools import Tool, ToolManager

__all__ = ["AGENT_EVENTS", "Agent", "AgentStatus"]

AGENT_EVENTS: Final = (
    "start",
    "turn",
    "usage",
    "tool",
    "deny",
    "compactError",
    "progress",
    "abort",
    "exhaust",
    "finish",
    "error",
)

AgentStatus: TypeAlias = Literal["idle", "running", "done", "error"]


logger = logging.getLogger("greenroom.agents")


class Begin(Request[None], frozen=True):
    """Start a run, in the context of whoever asks: what was set there holds for it too."""

    run: AgentRun
    context: Context


class Wake(Message, frozen=True):
    """Something waits in the inbox: begin a run for it, unless there is one."""


@final
class Agent(Actor):
    """A model that runs with tools until it asks for nothing more. It lives in a tree, as every actor.

    ::

        agent = runtime.agents.add(Agent(provider, id="planner", tools=[ask_tool(...)]))
        agent.context.messages.add(MessageInput("user", "Plan the release."))
        result = await agent.generate()

    Each run is its work: its tool calls are its children, what they wait for it waits for, and stopping it ends them
    all. Runs may overlap unless they would share its window or budget.

    `limit` bounds the turns of a run; `timeout` its seconds (with `patience` they stand still while it waits for a
    person), `budget` its tokens, and `cancel` stops all of its runs. `scheduler` is waited for between turns;
    `authority` decides which calls may run. With a `window`, a conversation that can summarize is folded before it
    grows too large; what fails there is passed over, unless `strict`.

    With a `session` it goes by that one's id, and all that happens in its runs is written there; what a model is given
    is read out of it, so that an agent on a session which was opened again goes on where it was. One run has it at a
    time. Raises AgentError SESSION for an `id` that is another one.

    Others give it input by its `inbox`, which holds `inbox_limit` messages at most: it reads them while it runs, or is
    woken for them.

    Events of its `emitter`, after what they tell of: `start(id)`, `turn(number)`, `usage(usage)`, `tool(call, result)`,
    `deny(call, reason)`, `compactError(error)`, and at last one of `error(error)` and `finish(result)`, that after
    `abort(reason)` if the run was stopped, after `exhaust(limit)` if its turns were used up. `progress(progress)` tells
    of agents beneath it: what it has delegated, and what these have.
    """

    kind = "agent"
    at_once = True

    def __init__(
        self,
        provider: Provider,
        *,
        id: str | None = None,
        system: str | None = None,
        tools: ToolManager | Iterable[Tool] = (),
        instructions: InstructionManager | None = None,
        workspaces: WorkspaceManager | None = None,
        conversations: ConversationManager | None = None,
        scope: Scope | None = None,
        limit: int = DEFAULT_AGENT_LIMIT,
        timeout: float | None = None,
        patience: bool = False,
        budget: Budget | None = None,
        scheduler: Scheduler | None = None,
        cancel: CancelToken | None = None,
        authority: Decides | None = None,
        window: Window | None = None,
        strict: bool = False,
        session: Session | None = None,
        inbox_limit: int = DEFAULT_INBOX_LIMIT,
        on: Mapping[str, Listener] | None = None,
        error: ErrorHandler | None = None,
    ) -> None:
        super().__init__()
        self.id: Final = _id(id, session)
        self.session: Final = session
        self.provider: Final = provider
        self._logged: Conversation | None = None
        if session is not None:
            conversations = conversations or ConversationManager()
            self._logged = conversations.add(session.id, log=LoggedMessages(session))
            conversations.switch(session.id)
        self.context: Final = AgentContext(
            system=system,
            tools=tools,
            instructions=instructions,
            workspaces=workspaces,
            conversations=conversations,
            scope=scope,
        )
        self.window: Final = window
        self.strict: Final = strict
        self.inbox: Final = Inbox(self, inbox_limit)
        self.emitter: Final = Emitter(AGENT_EVENTS, on=on, error=error)
        self._defaults = Settings(
            limit=limit,
            timeout=timeout,
            patience=patience,
            budget=budget,
            cancel=() if cancel is None else (cancel,),
            scheduler=scheduler,
            authority=authority,
        )
        self._runs: dict[AgentRun, None] = {}
        self._status: AgentStatus = "idle"

    def __repr__(self) -> str:
        return f"<Agent {self.id}>"

    @property
    def conversation(self) -> Conversation:
        """What a run goes by: its session's, or else the active one."""
        return self.context.messages if self._logged is None else self._logged

    @property
    def status(self) -> AgentStatus:
        """`running` while any run is; else how the last one ended (`done` also if it was stopped), `idle` before it."""
        return "running" if self._runs else self._status

    @property
    def draining(self) -> bool:
        """Its runs were told to stop, and have not ended yet."""
        return bool(self._runs) and all(run.stopped for run in self._runs)

    def stream(self, **options: Unpack[RunOptions]) -> AgentRun:
        """A run to be started by `async with`; see `AgentRun`."""
        return AgentRun(self, self._settings(options))

    async def generate(self, **options: Unpack[RunOptions]) -> AgentResult:
        """A run from its start to its end, which has no deadline but its own; what it comes to.

        Raises as `AgentRun` does, and what the run fails with. Cancelled: the run is stopped first.
        """
        self.require_place()
        run = AgentRun(self, self._settings(options), keep=False)
        awaiting = run.expect()  # from before it starts, so that it is the later wait that closes a circle
        try:
            async with run:
                await awaiting.wait()
                return run.outcome()
        finally:
            awaiting.withdraw()

    def abort(self, reason: str | None = None, *, keep_inbox: bool = False) -> None:
        """Stop all runs that there are, without waiting for their end, and discard what waits in the inbox unless
        `keep_inbox`. What is kept, or comes in meanwhile, is read after that, and wakes it then. While it is idle this
        does nothing.
        """
        runs = tuple(self._runs)
        try:
            if runs and not keep_inbox:
                self.inbox.clear(reason or "aborted")
        finally:  # a log may refuse the one, and not the other
            for run in runs:
                run.abort(reason)

    # ---------------------------------------------------------------- one run

    async def begin(self, run: AgentRun) -> None:
        """Start a run. Cancelled: it was not started."""
        self.require_place()
        context = copy_context()
        context.run(LINEAGE.set, self.ref.lineage.joined(current_lineage()).extended(tag_agent(self.id)))
        context.run(RUN.set, run)
        await self.ref.ask(Begin(run, context))

    @handles(Begin)
    @enable_ki_protection
    def _begin(self, message: Begin) -> None:
        run = message.run
        own = self._defaults.budget
        shared = (
            "session"
            if self.session is not None
            else "window"
            if self.window is not None
            else "budget"
            if own is not None
            else None
        )
        if self._runs and (shared in ("session", "window") or (shared == "budget" and run.settings.budget is own)):
            raise AgentError(
                "CONCURRENCY",
                f"The agent {self.id} runs already, and both runs would share its {shared}: wait for the other, or "
                "give the task to another agent.",
                {"agent": self.id, "shared": shared},
            )
        self._launch(run, message.context)

    def _launch(self, run: AgentRun, context: Context) -> None:
        context.run(lambda: self.start_soon(self._carry_out, run, name=f"{self.ref.path} run"))
        self._runs[run] = None

    def wake(self) -> None:
        """Begin a run for what waits in the inbox, unless there is one, which comes back to it when it ends."""
        if not self._runs:
            self.ref.notice(Wake())

    @handles(Wake)
    @enable_ki_protection
    def _woken(self, _message: Wake) -> None:
        if not self._runs and (self.inbox.wakes or self.inbox.full):
            run = AgentRun(self, self._defaults, keep=False, woken=True)
            context = copy_context()
            context.run(RUN.set, run)
            self._launch(run, context)

    async def on_start(self) -> None:
        if self.session is not None:
            try:
                tell_of_jobs(self.session, self.inbox)
            except GreenroomError as error:
                logger.warning("%s is not told of the jobs that were left: %s", self.ref.path, error)
        if self.inbox.wakes:  # its session has kept it
            self.wake()

    def on_end(self, reason: str) -> None:
        self.inbox.close(reason)

    def require_place(self) -> None:
        """Raises AgentError PLACE if it lives nowhere yet."""
        if not hasattr(self, "ref"):
            raise AgentError(
                "PLACE",
                f"The agent {self.id} lives nowhere yet: give it to `runtime.agents.add` or to `spawn` first.",
                {"agent": self.id},
            )

    async def _carry_out(self, run: AgentRun) -> None:
        """The task of a run."""
        turns = Turns(self, run)
        outcome: AgentResult | Exception | None = None
        try:
            run.log.open()
            if run.woken and not run.stopped:
                turns.open()  # first: whatever becomes of this run, what has woken it wakes no other
                LINEAGE.set(self.ref.lineage.extended(tag_agent(self.id)))
            with ExitStack() as closing:
                self._arm(run, closing)
                self.emitter.emit("start", self.id)
                with run.scope, _deadline(run.settings) as run.deadline:
                    try:
                        outcome = await turns.take()
                    except BaseExceptionGroup as group:
                        # A nursery, of the provider's or a tool's, raises the stop together with what failed by it.
                        _, stop = group.split(Exception)
                        if stop is None or not run.stopped:
                            raise
                        raise stop from None
            if outcome is None:
                outcome = turns.partial()
        except Exception as error:
            outcome = error
        finally:
            self._settle(run, outcome, turns)

    def _arm(self, run: AgentRun, closing: ExitStack) -> None:
        """Let everything stop the run that is to stop it, until `closing`."""
        for token in run.settings.cancel:
            closing.callback(self._join(run, token))
        if run.settings.budget is not None:
            closing.callback(run.settings.budget.start(partial(run.abort, "budget")))

    def _join(self, run: AgentRun, token: CancelToken) -> Callable[[], None]:
        if isinstance(token, Cancel):
            return token.listen(lambda: run.abort(token.reason))
        watching = trio.CancelScope()
        if token.is_set():
            run.abort(getattr(token, "reason", None))
        else:
            self.start_soon(_watch, token, run, watching)
        return watching.cancel

    @enable_ki_protection
    def _settle(self, run: AgentRun, outcome: AgentResult | Exception | None, turns: Turns) -> None:
        """The end of a run. Without a checkpoint: `outcome` is `None` where the agent itself is being ended."""
        del self._runs[run]
        try:
            run.log.close(*self._ending(run, outcome))
        except Exception as error:
            logger.error("The turn of %s could not be logged to its end: %s", self.ref.path, error)
            outcome = error if outcome is not None else None
        self._tell(run, outcome, turns)
        unread = run.woken and not (turns.opened or run.stopped)  # what kept it from that would keep the next from it
        if (self.inbox.wakes or self.inbox.full) and not unread:
            self.wake()

    def _tell(self, run: AgentRun, outcome: AgentResult | Exception | None, turns: Turns) -> None:
        if isinstance(outcome, Exception):
            self._status = "error"
            run.settle(outcome)
            if run.woken and not self.emitter.hears("error"):  # nobody awaits it either
                logger.warning("%s was woken by its inbox, and its run has failed: %s", self.ref.path, outcome)
            self.emitter.emit("error", outcome)
            return
        self._status = "done"
        result = turns.partial() if outcome is None else outcome
        run.settle(self.ref.stopped() if outcome is None else result)
        if outcome is None:
            self.emitter.emit("abort", "stopped")
        elif result.partial and run.stopped:
            self.emitter.emit("abort", self._cause(run))
        elif result.partial:
            self.emitter.emit("exhaust", run.settings.limit)
        self.emitter.emit("finish", result)

    def _ending(
        self, run: AgentRun, outcome: AgentResult | Exception | None
    ) -> tuple[TurnEndReason, str | None, Exception | None]:
        """How its log says that the turn has ended."""
        if isinstance(outcome, Exception):
            return "error", None, outcome
        if outcome is None:
            return "aborted", "stopped", None
        if not outcome.partial:
            return "completed", None, None
        return "aborted", self._cause(run) if run.stopped else "limit", None

    def _cause(self, run: AgentRun) -> str | None:
        return run.cancel.reason if run.cancel.is_set() else "timeout"

    def _settings(self, options: RunOptions) -> Settings:
        """The agent's own, with what a run was given in their place."""
        given = {name: value for name, value in options.items() if value is not None}
        if (token := options.get("cancel")) is not None:
            given["cancel"] = (*self._defaults.cancel, token)
        return structs.replace(self._defaults, **given) if given else self._defaults


def _id(id: str | None, session: Session | None) -> str:
    if session is None:
        return str(uuid.uuid4()) if id is None else id
    if id not in (None, session.id):
        raise AgentError(
            "SESSION",
            f"The session {session.id} is the log of the agent {session.id}, not of {id}: open one of its own for it.",
            {"agent": id, "session": session.id},
        )
    return session.id


def _deadline(settings: Settings) -> AbstractContextManager[trio.CancelScope | None]:
    if settings.timeout is None:
        return nullcontext()
    within = patient_scope if settings.patience else trio.move_on_after
    return within(settings.timeout)


async def _watch(token: CancelToken, run: AgentRun, watching: trio.CancelScope) -> None:
    """Stop the run when a token is set that calls nobody."""
    with watching:
        await token.wait()
        run.abort(getattr(token, "reason", None))
