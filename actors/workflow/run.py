"""A run: the actor, and what others see of it and can do with it."""

from __future__ import annotations

import logging
from typing import ClassVar, final

import trio

from greenroom.actors.workflow.attempt import Attempt
from greenroom.actors.workflow.drive import Drive
from greenroom.actors.workflow.events import EventFollower, RunEvents
from greenroom.actors.workflow.options import Bounds
from greenroom.actors.workflow.persistence import WorkflowPersistence
from greenroom.actors.workflow.store import RecordingStore, RunRecord, WorkflowStore
from greenroom.protocol.workflows import (
    Status,
    Workflow,
    WorkflowResult,
    WorkflowSnapshot,
)
from greenroom.runtime.actor import Actor, handles
from greenroom.runtime.deadlines import Due
from greenroom.runtime.ref import Ref

__all__ = ["Run", "RunActor"]

logger = logging.getLogger("greenroom.workflow")


@final
class Run:
    """One run, from its start on, also when it is over."""

    def __init__(self, workflow: Workflow, events: RunEvents, drive: Drive | None = None) -> None:
        self.workflow = workflow
        """The live workflow: its phases and tasks can be watched, paused, skipped and edited by it."""
        self._events = events
        self._drive = drive

    @property
    def id(self) -> str:
        return self.workflow.id

    @property
    def status(self) -> Status:
        return self.workflow.status

    @property
    def ref(self) -> Ref | None:
        """The actor that it is or was; `None` for one that was over before, and of which only the record was read."""
        return None if self._drive is None else self._drive.ref

    @property
    def over(self) -> bool:
        """Whether nothing of it runs any more, and nothing is left to be written."""
        return self._drive is None or self._drive.ref.state == "ended"

    @property
    def void(self) -> bool:
        """Whether it is over and nothing of it was stored, though it should have been: it has done nothing."""
        return self._drive is not None and self.over and self._drive.refusal is not None

    @property
    def last(self) -> int:
        """The number of its last event."""
        return self._events.last

    def snapshot(self) -> WorkflowSnapshot:
        """All of it, as it is now: what queries are answered from."""
        return self.workflow.snapshot()

    async def begun(self) -> None:
        """Wait, without a deadline, until it is stored. Raises what kept the store from it. Cancelled: it goes on."""
        if self._drive is None:
            await trio.lowlevel.checkpoint()
            return
        await self._drive.begun.wait()
        if (refusal := self._drive.refusal) is not None:
            raise refusal

    async def wait(self) -> WorkflowResult:
        """Wait, without a deadline, until it is over. Cancelled: the run goes on.

        Raises ActorDeadlock if a task of the run waits, over whatever steps, for the caller, and a fault of the
        scheduler, if there was one.
        """
        if self._drive is None:
            await trio.lowlevel.checkpoint()
            return WorkflowResult(
                workflow=self.workflow, status=self.status, results=self.workflow.results(), durable=True
            )
        await self._drive.ref.join()
        return self._drive.result()

    async def finish(self) -> WorkflowResult:
        """`wait` as whoever the run belongs to: cancelled, or refused, the run is stopped and its end stored first.

        A run beneath a task is suspended instead if the run of that task is.
        """
        try:
            return await self.wait()
        except trio.Cancelled:
            if self._drive is not None:
                await self._drive.abandon()
                with trio.CancelScope(shield=True):
                    await self._drive.ref.wait_ended()
            raise

    async def cancel(self) -> WorkflowResult:
        """Stop it, with everything beneath it: what runs is cancelled, what has not begun is skipped.

        When this returns, nothing of it is left. A caller within the run is cancelled with it. Cancelled: it ends all
        the same.
        """
        if self._drive is not None:
            self._drive.cancel()
            await self._drive.ref.wait_ended()
        return await self.wait()

    async def suspend(self) -> WorkflowSnapshot:
        """Cancel what runs as if it had not begun, store that, and end: `WorkflowManager.recover` takes it up again.

        Does nothing to a run that is over. Cancelled: it ends all the same.
        """
        if self._drive is not None:
            self.workflow.suspend()
            await self._drive.ref.wait_ended()
        return self.snapshot()

    async def signal(self, name: str, value: object = None) -> None:
        """Send a signal to its tasks, those to come included; `controller.signal` waits for it. Stored on return.

        Raises `WorkflowError` TRANSITION if the run is over, RESTORE for a value that is no JSON, and what keeps the
        store from keeping it. Cancelled: the signal was sent, and may not be stored yet.
        """
        self.workflow.signal(name, value)
        await self.begun()
        if self._drive is not None:
            await self._drive.stored()

    def events(self, after: int = 0) -> EventFollower:
        """What happened, and happens, in order, from the event behind number `after` on; see `RunEvents.follow`.

        A wait for the next event is none for the run itself, since other tasks may bring it about: so a task may follow
        its own run, but one that follows it to its end waits for itself, and nothing refuses that.
        """
        return self._events.follow(after)


@final
class RunActor(Actor):
    """The actor of a run. Its tasks are beneath it, and it ends when the run is over."""

    kind: ClassVar[str] = "run"

    def __init__(self, store: WorkflowStore | None, bounds: Bounds) -> None:
        super().__init__()
        self._store = store
        self._bounds = bounds
        self.drive: Drive
        """Set before it is started."""

    async def on_start(self) -> None:
        self.start_soon(self._run)

    @handles(Due)
    def due(self, message: Due) -> None:
        """A task was silent for as long as it said."""
        if isinstance(message.what, Attempt) and message.what.current:
            message.what.task.fall_silent()

    async def _run(self) -> None:
        drive = self.drive
        try:
            record = await self._record()
        except Exception as error:
            drive.error = drive.unstored = error
        else:
            try:
                await drive.run(record, **self._bounds)
            except Exception as error:  # the record could not be closed
                drive.error = drive.error or error
        finally:
            drive.begun.set()
            drive.events.close()
            self.end()
        if drive.error is not None and not self.ref.work.asked:
            logger.error("%s could not be run, and nobody waits to hear it", self.ref.path, exc_info=drive.error)

    async def _record(self) -> RunRecord | None:
        workflow = self.drive.workflow
        if self._store is None:
            return None
        if isinstance(self._store, RecordingStore):
            return await self._store.record(workflow, self.drive.events)
        persistence = WorkflowPersistence(workflow, self._store)
        self.start_soon(persistence.write)
        return persistence
