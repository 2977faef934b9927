"""One run of an agent, as whoever started it holds it: its pieces as they come, its result, its end."""

from __future__ import annotations

from collections import deque
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypedDict, final

import trio
from trio.lowlevel import (
    Abort,
    Task,
    cancel_shielded_checkpoint,
    checkpoint,
    current_task,
    reschedule,
    wait_task_rescheduled,
)

from greenroom.actors.agent.log import TurnLog
from greenroom.actors.agent.settings import Settings
from greenroom.protocol.agents import AgentChunk, AgentResult, Budget
from greenroom.protocol.schemas import Schema
from greenroom.runtime.cancel import Cancel, CancelToken
from greenroom.runtime.context import current_node
from greenroom.runtime.ref import circle
from greenroom.runtime.waits import Node, Wait, find_circle

if TYPE_CHECKING:
    from greenroom.actors.agent.agent import Agent

__all__ = ["RUN", "AgentRun", "RunEvents", "RunOptions", "current_agent", "current_run"]

RUN: ContextVar[AgentRun | None] = ContextVar("greenroom_agent_run", default=None)
"""Set by the agent, for the run's own task and so for all that is started in it."""


def current_run() -> AgentRun | None:
    """The innermost run of an agent that the code is part of, over calls, nested workflows and their tasks."""
    return RUN.get()


def current_agent() -> Agent | None:
    """The agent in whose run the code is; see `current_run`."""
    run = RUN.get()
    return None if run is None else run.agent


class RunOptions(TypedDict, total=False):
    """What one run has in place of what its agent was made with. `None` and what is left out is the agent's."""

    think: bool | None
    """Whether the model is to reason first."""
    schema: Schema | None
    """The JSON Schema that its answer is to follow."""
    limit: int | None
    """How many turns at most."""
    timeout: float | None
    """Seconds."""
    patience: bool | None
    """Let the timeout's clock stand still while the run waits for a person."""
    budget: Budget | None
    cancel: CancelToken | None
    """Stops the run too, beside the agent's own."""


@final
class AgentRun:
    """A run, for the length of an `async with` block: it starts with it, whether anybody reads its events or not.

    ::

        async with agent.stream() as run:
            async for chunk in run.events:
                ...
            result = await run.result()

    Leaving the block stops a run that goes on and waits, without a deadline, until it has settled; so does a caller's
    cancellation, which is raised after that. A stopped run is no failure: its result is `partial`. If the agent itself
    is stopped, ActorError STOPPED is raised where its result is awaited.

    Starting it raises AgentError CONCURRENCY if the agent runs already and two runs would share its window or its
    budget, PLACE if the agent lives nowhere; ActorError STOPPED; ToolError DEPTH if the agent is at work already above
    the caller, or too many are. Nothing was started then. An agent that waits for the caller, over whatever steps,
    cannot be waited for: ActorDeadlock, with the path.
    """

    def __init__(self, agent: Agent, settings: Settings, *, keep: bool = True, woken: bool = False) -> None:
        self.agent = agent
        self.settings = settings
        self.woken = woken
        """Begun by the agent itself, for what is in its inbox. Nobody awaits it."""
        self.log = TurnLog(agent.session)
        self.cancel = Cancel()
        """What the provider sees of a stop."""
        self.scope = trio.CancelScope()
        """Around all that the run does but its settling."""
        self.deadline: trio.CancelScope | None = None
        """Within it, if the run has a timeout."""
        self.events = RunEvents(self)
        """What comes of it: text, reasoning, usage, calls. For one reader; nothing is lost while nobody reads."""
        self._chunks: deque[AgentChunk] | None = deque() if keep else None
        self._result: AgentResult | None = None
        self._error: Exception | None = None
        self._waits: list[Awaiting] = []
        self._begun = woken

    async def __aenter__(self) -> AgentRun:
        if self._begun:
            raise RuntimeError("a run is started once; ask the agent for another one")
        self._begun = True
        try:
            await self.agent.begin(self)
        except BaseException:
            self._begun = False
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.settled:
            return
        self.abort("cancelled" if isinstance(error, trio.Cancelled) else "left")
        await self._settling()

    @property
    def settled(self) -> bool:
        """It is over: nothing more comes of it."""
        return self._result is not None or self._error is not None

    @property
    def stopped(self) -> bool:
        """It was told to stop, or its time is up."""
        return self.scope.cancel_called or (self.deadline is not None and self.deadline.cancel_called)

    def abort(self, reason: str | None = None) -> None:
        """Stop it, without waiting for its end. Does nothing if it was stopped before or is over."""
        if not self.settled and not self.stopped:
            self.cancel.set(reason)
            self.scope.cancel()

    async def result(self) -> AgentResult:
        """Wait, without a deadline of its own, for what it comes to. Raises what it failed with.

        Cancelled: the run goes on, and its block ends it.
        """
        while not self.settled:
            await self.changed()
        return self.outcome()

    # ---------------------------------------------------------------- for its events

    def take(self) -> AgentChunk | None:
        """The next piece, if there is one yet."""
        return self._chunks.popleft() if self._chunks else None

    async def changed(self) -> None:
        """Wait for a piece, or for the end."""
        if not self._begun:
            raise RuntimeError("this run was not started: use it within `async with`")
        await self.expect().wait()

    def expect(self) -> Awaiting:
        """A wait for what `changed` waits for, in the graph from this step on. To be withdrawn if it is given up.

        Raises ActorDeadlock if what the agent does waits, over whatever steps, for the caller.
        """
        waiter = current_node()
        if waiter is not None and (path := find_circle((waiter,), (self.agent.ref.work,))):
            raise circle(path)
        return self._expect(waiter)

    def outcome(self) -> AgentResult:
        """The result of a settled run, or the raise of what it failed with: every time the same exception."""
        if self._error is not None:
            raise self._error
        assert self._result is not None, "only what has settled has an outcome"
        return self._result

    async def leave(self) -> None:
        """Stop it if it goes on, and wait until it has settled."""
        self.abort("left")
        await self._settling()

    async def _settling(self) -> None:
        # No deadline: as with a nursery, what a run has started is waited for, and all of it has been cancelled.
        with trio.CancelScope(shield=True):
            while not self.settled:
                await self._expect(None).wait()

    def _expect(self, waiter: Node | None) -> Awaiting:
        awaiting = Awaiting(waiter, self.agent.ref.work)
        self._waits.append(awaiting)
        return awaiting

    # ---------------------------------------------------------------- for the agent

    def put(self, chunk: AgentChunk) -> None:
        """Give out a piece."""
        if self._chunks is not None:
            self._chunks.append(chunk)
            if self._waits:
                self._wake()

    def settle(self, outcome: AgentResult | Exception) -> None:
        """The end: whoever waits goes on."""
        if isinstance(outcome, AgentResult):
            self._result = outcome
        else:
            self._error = outcome
        self._wake()

    def _wake(self) -> None:
        waits, self._waits = self._waits, []
        for awaiting in waits:
            awaiting.end()


@final
class RunEvents:
    """The pieces of one run, as an async iterator. Ends with the run, raising what it failed with.

    `aclose` stops a run that goes on and waits for its end (`contextlib.aclosing` calls it).
    """

    __slots__ = ("_run",)

    def __init__(self, run: AgentRun) -> None:
        self._run = run

    def __aiter__(self) -> RunEvents:
        return self

    async def __anext__(self) -> AgentChunk:
        run = self._run
        await checkpoint()
        while (chunk := run.take()) is None:
            if run.settled:
                run.outcome()
                raise StopAsyncIteration
            await run.changed()
        return chunk

    async def aclose(self) -> None:
        """Stop the run, if it goes on, and wait until it has settled."""
        await self._run.leave()


@final
class Awaiting(Wait):
    """A wait for something that an agent does beside its mailbox, from when it is made until it ends or is given up."""

    __slots__ = ("_over", "_task")

    def __init__(self, waiter: Node | None, target: Node) -> None:
        self._over = False
        self._task: Task | None = None
        super().__init__(waiter, target)

    @property
    def kind(self) -> str:
        return "generation"

    async def wait(self) -> None:
        """Until `end` is called, also before. Cancelled: the wait is over."""
        if self._over:
            await cancel_shielded_checkpoint()
        else:
            self._task = current_task()
            await wait_task_rescheduled(self._abort)

    def end(self) -> None:
        """Let the waiter go on."""
        task = self._task
        self.withdraw()
        if task is not None:
            reschedule(task)

    def withdraw(self) -> None:
        """Take it out of the graph, unless it is over."""
        self._task = None
        if not self._over:
            self._over = True
            self.release()

    def _abort(self, _raise_cancel: Any) -> Abort:
        self.withdraw()
        return Abort.SUCCEEDED
