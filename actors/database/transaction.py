"""A transaction: several calls that all come to stay, or none of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar, final

import outcome
import trio
from trio.lowlevel import Task, current_task

from greenroom.actors.database.job import Job, Work, closed, in_thread
from greenroom.actors.database.session import Happening, Session
from greenroom.actors.database.table import Table
from greenroom.protocol.database import unknown_table
from greenroom.protocol.errors import DatabaseError
from greenroom.runtime.context import CURRENT
from greenroom.runtime.waits import Node, Wait

if TYPE_CHECKING:
    from greenroom.actors.database.actor import DatabaseActor
    from greenroom.runtime.ref import Ref

__all__ = ["Transaction", "misuse"]

R = TypeVar("R")


class Holding(Wait):
    """A wait for a transaction's end: of the database's actor for it, and of its owner."""

    __slots__ = ()

    @property
    def kind(self) -> str:
        return "transaction"


@final
class Held(Node):
    """The party of one transaction: where the waits of its block start, and what the database waits for meanwhile.

    It is apart from its owner, who may run other work that has nothing to do with the transaction, and need not be in
    the tree at all.
    """

    __slots__ = ("owner",)

    def __init__(self, name: str, owner: Node | None) -> None:
        super().__init__(name)
        self.owner = owner

    @property
    def label(self) -> str:
        return self.name if self.owner is None else self.owner.label

    @property
    def place(self) -> Ref | None:
        return None if self.owner is None else self.owner.place


@final
class Transaction:
    """A transaction that is open, with tables that are bound to it. Made by `Database.transaction`."""

    def __init__(self, name: str, actor: DatabaseActor, announce: Callable[[Iterable[Happening]], None]) -> None:
        self._name = name
        self._actor = actor
        self._announce = announce
        owner = CURRENT.get()
        self._node = Held(f"transaction on {actor.ref.path}", owner)
        self._waits: tuple[Wait, ...] = ()
        """The actor's for it, since others wait for the actor, and its owner's."""
        self._task = current_task()
        self._nurseries = frozenset(self._task.child_nurseries)
        self._ended = trio.Event()
        self._lost = False
        self._running: Job[Any] | None = None
        self._happened: list[Happening] = []
        self._tables: dict[str, Table] = {}
        self.failure: Exception | None = None
        """What the first of its calls that failed raised. None of it can be committed any more."""

    @property
    def ended(self) -> bool:
        """Whether it was committed or rolled back."""
        return self._ended.is_set()

    def needs(self, task: Task) -> bool:
        """Whether it cannot end before the task does: its own one, or one in a nursery that was opened within it."""
        while task is not self._task:
            nursery = task.parent_nursery
            if nursery is None or nursery in self._nurseries:
                return False
            task = nursery.parent_task
        return True

    def table(self, name: str) -> Table:
        """The table of that name, bound to this transaction. Raises `DatabaseError` NOT_FOUND, CONFLICT or CLOSED."""
        self._check()
        found = self._tables.get(name)
        if found is None:
            if name not in self._actor.layouts:
                raise unknown_table(name, self._actor.layouts)
            found = self._tables[name] = Table(self._actor.layouts[name], self.perform)
        return found

    async def perform(self, work: Work[R]) -> R:
        """Do a piece of work within the transaction, as `Database.perform` does it by itself.

        A failure spoils the transaction, and so does a cancellation. Raises `DatabaseError` CONFLICT once it has ended.
        """
        self._check()
        job = Job(work)
        try:
            result = await in_thread(lambda: self._work(job), self._actor.limiter)
            match result:
                case outcome.Error(DatabaseError(code="ABORTED")):
                    await trio.lowlevel.checkpoint_if_cancelled()  # then it is this that has ended the work
                case _:
                    pass
            return result.unwrap()
        except Exception as error:
            self.failure = self.failure or error
            if self._lost:
                raise closed(self._name) from None
            raise
        except BaseException:
            self.failure = self.failure or misuse(self._name, "a call within the transaction was cancelled half done")
            raise

    def begin(self) -> None:
        """See `Holder.begin`."""
        node, owner = self._node, self._node.owner
        actors = Holding(self._actor.ref, node)
        self._waits = (actors,) if owner is None else (actors, Holding(owner, node))

    async def wait_ended(self) -> None:
        """Until it is committed or rolled back."""
        await self._ended.wait()

    def lose(self) -> None:
        """See `Holder.lose`."""
        self._let_go()
        if not self.ended:
            self._lost = True
            if self._running is not None:
                self._running.stop.request()

    # ---------------------------------------------------------------- its block and its end, by `Database.transaction`

    def enter(self) -> None:
        """What its block waits for, and what is started there, waits as the transaction from now on."""
        CURRENT.set(self._node)

    def leave(self) -> None:
        """The running task waits as the owner again, or for itself: its block is over, or was never the task's."""
        if CURRENT.get() is self._node:
            CURRENT.set(self._node.owner)

    async def commit(self) -> None:
        """Let all come to stay. Raises what spoiled it, or what the storage raises; then nothing does."""
        await trio.lowlevel.checkpoint_if_cancelled()
        failure = closed(self._name) if self._lost else self.failure
        if failure is None:
            try:
                await self._finish(self._actor.commit)
            except DatabaseError as error:
                failure = error
        if failure is not None:
            await self.rollback(failure)
            raise failure
        self._end()
        self._announce([*self._happened, Happening(None, "commit")])

    async def rollback(self, error: BaseException) -> None:
        """Let nothing of it stay. It never raises: where a rollback fails, the storage has done so by itself."""
        if not self._lost:
            try:
                await self._finish(self._actor.rollback)
            except DatabaseError as failed:
                error.add_note(f"and the rollback failed: {failed}")
        self._end()
        self._announce([Happening(None, "rollback", (error,))])

    def _end(self) -> None:
        self._let_go()
        self._ended.set()

    def _let_go(self) -> None:
        waits, self._waits = self._waits, ()
        for wait in waits:
            wait.release()

    async def _finish(self, function: Callable[[], None]) -> None:
        # Without a deadline, as a thread cannot be abandoned: a commit's outcome has to be known.
        with trio.CancelScope(shield=True):
            await trio.to_thread.run_sync(function, limiter=self._actor.limiter)

    def _work(self, job: Job[R]) -> R:
        """In the worker thread, where no other call of this transaction runs."""
        if self._lost:
            raise closed(self._name)
        self._running = job
        session: Session = self._actor.session(job.stop, bound=True)
        try:
            return job.work(session)
        finally:
            self._running = None
            self._happened += session.happened

    def _check(self) -> None:
        if self._lost:
            raise closed(self._name)
        if self.ended:
            raise misuse(self._name, "the transaction has ended; begin another one")


def misuse(name: str, how: str) -> DatabaseError:
    """`DatabaseError` CONFLICT for a transaction that is used as none can be."""
    return DatabaseError("CONFLICT", f"database {name!r}: {how}", {"database": name})
