"""Driving a workflow: its phases one after another, what ends it early, and what is stored of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import nullcontext
from math import inf
from typing import Any, Final, final

import trio
from msgspec import UNSET, UnsetType

from greenroom.actors.workflow.attempt import Attempt
from greenroom.actors.workflow.events import RunEvents
from greenroom.actors.workflow.failures import said
from greenroom.actors.workflow.owners import LetGo, is_over, owner_of_run
from greenroom.actors.workflow.slots import PhaseDrive
from greenroom.actors.workflow.store import RunRecord
from greenroom.protocol.agents import Budget
from greenroom.protocol.workflows import (
    MAX_TIMER_MS,
    Checkpoint,
    Node,
    PersistenceFault,
    Phase,
    Task,
    TaskActivity,
    TaskResult,
    Workflow,
    WorkflowEvent,
    WorkflowResult,
)
from greenroom.runtime.cancel import CancelToken
from greenroom.runtime.patience import patient_scope
from greenroom.runtime.ref import Ref

__all__ = ["LAST_WRITES", "Drive"]

LAST_WRITES: Final = 5.0
"""How many seconds the store has, once a run was cancelled, for everything that is still to be written."""

_RINGING: Final = frozenset({"resume", "complete", "fail", "skip", "stop", "suspend", "signal"})
"""Events of workflow and phases that whoever waits in an attempt is to look at."""


@final
class Drive:
    """A claimed workflow from its first task to its end. `ref` is the actor that is the run.

    A `lasting` one belongs to nobody who waits for it: when the tree ends around it, it is suspended instead of
    stopped.
    """

    def __init__(
        self,
        workflow: Workflow,
        ref: Ref,
        events: RunEvents,
        *,
        outer: Drive | None,
        lasting: bool,
        let_go: LetGo,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.workflow = workflow
        self.ref = ref
        self.events = events
        self.outer = outer
        """The run that a task of started this one."""
        self.lasting = lasting
        self.let_go = let_go
        """Told of every task that is over, and of the run, once that is stored."""
        self.chance = chance
        self.attempts: dict[Task, Attempt] = {}
        """What is being attempted."""
        self.begun = trio.Event()
        """Set once the first checkpoint is stored, or cannot be."""
        self.ending = False
        """Whether nothing may begin any more, and nothing that still runs is of interest."""
        self._record: RunRecord | None = None
        self._durable: bool | UnsetType = UNSET
        self._fault: PersistenceFault | UnsetType = UNSET
        self.error: Exception | None = None
        """A fault that is no task's, if there was one."""
        self.unstored: Exception | None = None
        """What kept its first checkpoint from being stored, if anything did. Then nothing of it has begun."""
        self._torn = False
        self._phase: PhaseDrive | None = None
        self._bell = trio.Event()
        self._limit = inf
        self._writes: set[trio.CancelScope] = set()
        self.nursery: trio.Nursery
        """Where its tasks run."""

    # ---------------------------------------------------------------- from the first task to the end

    async def run(
        self,
        record: RunRecord | None,
        *,
        cancel: CancelToken | None = None,
        timeout: float | None = None,
        patience: bool = False,
        budget: Budget | None = None,
    ) -> None:
        """Drive it to its end; `result` tells what that is. Raises nothing but cancellation; it is over then, too."""
        self._record = record
        if record is not None:  # it may have been cut off before it could
            self.let_go(owner_of_run(self.workflow.id), over=lambda owner: is_over(owner, self.workflow))
        unwatch = self.workflow.watch(self._heard)
        self.workflow.on_cancel = self.cancel
        forget: Callable[[], None] | None = None
        limited = timeout is not None and 0 < timeout <= MAX_TIMER_MS / 1000
        seconds = timeout if limited else None
        try:
            forget = budget.start(self.cancel) if budget is not None else None
            with patient_scope(seconds) if patience and seconds is not None else nullcontext() as limit:
                async with trio.open_nursery() as self.nursery:
                    if cancel is not None:
                        if cancel.is_set():
                            self.cancel()
                        self.nursery.start_soon(self._cancel_when, cancel)
                    if seconds is not None and limit is None:
                        self.nursery.start_soon(self._cancel_after, seconds)
                    try:
                        await self._phases()
                        if self._torn:
                            await trio.sleep_forever()
                    except Exception as error:
                        self.fail(error)
                    except BaseException:
                        if limit is not None and limit.cancel_called:
                            self._end()
                        else:
                            self.tear()
                            await self.abandon()
                        raise
                    if self.nursery.child_tasks:  # those that would have cancelled it
                        self.nursery.cancel_scope.cancel()
        except Exception as error:  # of what is to end it: a token or a budget of somebody else's making
            self.fail(error)
        finally:
            if forget is not None:
                forget()
            unwatch()
            self.workflow.on_cancel = None
            await self._finish()

    def result(self) -> WorkflowResult:
        """What it came to, once it is over. Raises the fault of the scheduler, if there was one."""
        if self.error is not None:
            raise self.error
        return WorkflowResult(
            workflow=self.workflow,
            status=self.workflow.status,
            results=self.workflow.results(),
            durable=self._durable,
            fault=self._fault,
        )

    async def _phases(self) -> None:
        workflow = self.workflow
        stored = await self.required("initial")
        self.begun.set()
        if not stored:
            self._end()
            return
        visited: set[Phase] = set()
        yielded = True
        while not self.ending:
            if workflow.terminal or workflow.suspended:
                break
            if workflow.paused:
                await self._bell.wait()
                continue
            phase = next((each for each in workflow.phases if each not in visited), None)
            if phase is None:
                break
            if not yielded:  # between phases; anything may have changed by then
                await trio.lowlevel.checkpoint()
                yielded = True
                continue
            yielded = False
            visited.add(phase)
            if not phase.terminal:
                self._phase = PhaseDrive(self, phase)
                await self._phase.run()
                if self._torn:
                    return
            self._skip(phase)
            if phase.status == "failed" and phase.bail:
                break
        if self._torn:
            return
        for phase in workflow.phases:
            self._skip(phase)
        if not workflow.terminal and not any(phase.tasks for phase in workflow.phases):
            workflow.complete()

    async def _finish(self) -> None:
        """The last write, whatever has happened, and nobody is listening any more."""
        if self._record is None:
            return
        try:
            try:
                self._durable = await self.required("final")
            except trio.Cancelled:
                self._hurry()
                with trio.CancelScope(shield=True):
                    self._durable = await self.required("final")
                raise
        finally:
            if self._durable is True and self.workflow.terminal:
                self.let_go(owner_of_run(self.workflow.id))
            with trio.CancelScope(shield=True):
                await self._record.close()

    # ---------------------------------------------------------------- ending early

    def cancel(self) -> None:
        """Stop the workflow and skip every task that is not over. Nothing happens if it is ending already."""
        if not self.ending:
            self._end()

    def fail(self, error: Exception) -> None:
        """End it because of a fault that is no task's."""
        self.error = self.error or error
        self._end()

    def tear(self) -> None:
        """The tree ends what runs. Nothing begins any more; what that means for the run is `abandon`'s to say."""
        self._torn = True
        self._leave()

    async def abandon(self) -> None:
        """Nobody drives it any more, or waits for it: stop it, or suspend it to go on another time."""
        outer = self.outer
        with trio.CancelScope(shield=True):
            while outer is not None:  # they are being torn in this very step, and say first what it means
                await trio.lowlevel.checkpoint()
                outer = outer.outer
        if self._goes_on():
            self.workflow.suspend()
        else:
            self._end()

    def _goes_on(self) -> bool:
        outer, leaving = self.outer, not self.ref.tree.root.alive
        if outer is None:
            return self.lasting and (leaving or self.ref.alive)
        if outer.ending and not outer._torn:
            return outer.workflow.suspended
        return outer.workflow.suspended or (leaving and outer._goes_on())

    def _leave(self) -> None:
        self.ending = True
        self._hurry()

    def _end(self) -> None:
        self._leave()
        # Before any task: else the workflow would follow from its tasks, and be skipped.
        self.workflow.stop()
        for phase in self.workflow.phases:
            self._skip(phase)
        self._ring()

    def _skip(self, phase: Phase) -> None:
        """Skip whatever of the phase is not over."""
        if self.workflow.suspended or (phase.terminal and phase.override is UNSET):
            return
        for task in phase.tasks:
            if not task.terminal:
                task.skip()

    async def _cancel_when(self, token: CancelToken) -> None:
        await token.wait()
        self.cancel()

    async def _cancel_after(self, seconds: float) -> None:
        await trio.sleep(seconds)
        self.cancel()

    # ---------------------------------------------------------------- what is stored

    @property
    def storing(self) -> bool:
        """Whether there is anybody to store it."""
        return self._record is not None

    async def required(self, checkpoint: Checkpoint, task: Task | None = None, attempt: int | None = None) -> bool:
        """Wait, without a deadline until the run is cancelled, until everything so far is stored.

        False: it is not, and the first such fault is part of the result. True at once if nothing is stored at all.
        """
        if self._record is None:
            return True
        message = ""
        with trio.CancelScope(deadline=self._limit) as scope:
            self._writes.add(scope)
            try:
                await self._record.required(checkpoint, task)
                return True
            except Exception as error:
                message = said(error) or type(error).__name__
                if checkpoint == "initial":
                    self.unstored = error
            finally:
                self._writes.discard(scope)
        if self._fault is UNSET:
            self._fault = PersistenceFault(
                checkpoint=checkpoint,
                message=message or f"The store took longer than {LAST_WRITES:g} s after the run was cancelled.",
                task=UNSET if task is None else task.id,
                attempt=UNSET if attempt is None else attempt,
            )
        return False

    @property
    def refusal(self) -> Exception | None:
        """What keeps it from being stored, if nothing of it is, not even that it was stopped because of that."""
        return None if self._durable is True else self.unstored

    async def stored(self) -> None:
        """Wait, without a deadline, until everything so far is stored. Raises what keeps the store from it."""
        if self._record is not None:
            await self._record.required(None, None)
        elif self.error is not None:
            raise self.error

    def _hurry(self) -> None:
        if self._limit == inf:
            self._limit = trio.current_time() + LAST_WRITES
            for scope in self._writes:
                scope.deadline = min(scope.deadline, self._limit)

    # ---------------------------------------------------------------- what happens

    def happened(self, node: Node, event: str, **details: Any) -> None:
        """Number an event, tell it to whoever follows the run, and have it stored."""
        task = node if type(node) is Task else None
        phase = node if type(node) is Phase else None if task is None else task.phase
        told = WorkflowEvent(
            number=self.events.last + 1,
            time=self.workflow.shared.now(),
            event=event,
            phase=UNSET if phase is None else phase.id,
            task=UNSET if task is None else task.id,
            **details,
        )
        self.events.append(told)
        if self._record is not None:
            self._record.note(told, node)

    def _heard(self, node: Node, event: str, arguments: tuple[Any, ...]) -> None:
        self.happened(node, event, **_details(node, event, arguments))
        if type(node) is Task:
            self._heard_of_task(node, event)
        elif event in _RINGING:
            if event == "suspend" and node is self.workflow:
                self._leave()
            self._ring()
        elif event == "add" and self._phase is not None and node is self._phase.phase:
            self._phase.add(arguments[0])

    def _heard_of_task(self, task: Task, event: str) -> None:
        if event == "fail" and self._phase is not None and task.phase is self._phase.phase:
            self._phase.failed()
        attempt = self.attempts.get(task)
        if attempt is not None and event in ("report", "pulse"):
            attempt.beat()
            self.listen(attempt)
        elif attempt is not None and event == "resume":
            attempt.ring()

    def listen(self, attempt: Attempt) -> None:
        """From now on, tell of a task that nothing is heard of for as long as it said."""
        silence = attempt.task.silence
        if silence is not None:
            self.ref.tree.deadlines.arm(trio.current_time() + silence, self.ref, attempt)

    def _ring(self) -> None:
        """Let everybody look again at what they wait for."""
        bell, self._bell = self._bell, trio.Event()
        bell.set()
        if self._phase is not None:
            self._phase.look()
        for attempt in tuple(self.attempts.values()):
            attempt.ring()
            if attempt.halted and not attempt.dispatched:
                attempt.scope.cancel()


def _details(node: Node, event: str, arguments: tuple[Any, ...]) -> dict[str, Any]:
    """What an event says beyond its name: see `WorkflowEvent`."""
    if event == "start":
        return {"attempt": node.attempts} if type(node) is Task else {}
    details: dict[str, Any] = {}
    for argument in arguments:
        if isinstance(argument, TaskResult):
            details["result"] = argument
        elif isinstance(argument, TaskActivity):
            details["frame"] = argument
        elif isinstance(argument, Node):
            details["name"] = argument.id
        elif "name" not in details:
            details["name"] = argument
        else:
            details["value"] = argument
    return details
