"""The workflows of a runtime by id: those that were built or opened, and their runs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, Unpack, final, get_args

import msgspec
import trio

from greenroom.actors.workflow.events import RunEvents
from greenroom.actors.workflow.options import Bounds, BuildOptions, RunOptions
from greenroom.actors.workflow.run import Run
from greenroom.actors.workflow.runner import WorkflowRunner, split
from greenroom.actors.workflow.store import RecordingStore, StoredRun, WorkflowStore
from greenroom.protocol.emitter import ErrorHandler
from greenroom.protocol.errors import WorkflowError
from greenroom.protocol.schemas.gates import encodable
from greenroom.protocol.workflows import (
    DEFAULT_RECOVERIES,
    Status,
    Workflow,
    WorkflowResult,
    WorkflowSnapshot,
    check_definition,
    create_recovered_workflow,
    create_restored_workflow,
    create_workflow,
    definition_hash,
    fork_snapshot,
    is_terminal,
    read_snapshot,
)

__all__ = ["RUNS_KEPT", "Recovered", "WorkflowManager"]

RUNS_KEPT: Final = 256
"""How many runs that are over stay in memory."""


class Recovered(NamedTuple):
    """What `recover_all` has taken up again, and what it could not, with the reason, by id."""

    runs: tuple[Run, ...]
    refused: Mapping[str, Exception]


class _Opening:
    """A read of the store that several may wait for."""

    def __init__(self) -> None:
        self.lock = trio.Lock()
        self.done = False
        self.void = False


@final
class WorkflowManager:
    """Workflows by id, and their runs. `store` keeps them, `functions` are the behaviours that all may use.

    ::

        result = await runtime.workflows.run(definition, functions={"build": build})
        run = await runtime.workflows.start(definition)  # and not wait for it

    A start is idempotent: the same definition under the same id is the same run, whether it is under way, is over or
    was cut off when its process died. The last runs that are over are remembered, with a store all of them.
    """

    def __init__(
        self,
        runner: WorkflowRunner,
        *,
        store: WorkflowStore | None = None,
        functions: Mapping[str, object] | None = None,
        error: ErrorHandler | None = None,
    ) -> None:
        self.runner = runner
        self.store = store
        self.functions: dict[str, object] = dict(functions or {})
        self._error = error
        self._workflows: dict[str, Workflow] = {}
        self._runs: dict[str, Run] = {}
        self._over: deque[Run] = deque()
        self._opening: dict[str, _Opening] = {}
        self._saving = trio.Lock()

    # ---------------------------------------------------------------- the registry

    @property
    def count(self) -> int:
        """How many workflows there are."""
        return len(self._workflows)

    def get(self, id: str) -> Workflow | None:
        """The workflow of that id, if it was added, opened or started."""
        return self._workflows.get(id)

    def workflows(self) -> list[Workflow]:
        """All of them, in order of adding."""
        return list(self._workflows.values())

    def add(self, definition: object, **options: Unpack[BuildOptions]) -> Workflow:
        """Build a workflow, in place of any other of its id; it does not run yet. See `create_workflow`.

        `functions` come on top of those of all.
        """
        workflow = self._built(definition, options)
        self._workflows[workflow.id] = workflow
        return workflow

    async def open(self, id: str) -> Workflow | None:
        """The workflow of that id: the one there is, or the stored one, restored as it is.

        `None` if it is neither, or was removed while it was being read. Raises `WorkflowError` RESTORE for a row that
        is no snapshot, and what the store raises. Several who open it at the same time share one read.
        """
        found = self._workflows.get(id)
        if found is not None or self.store is None:
            await trio.lowlevel.checkpoint()
            return found
        opening = self._opening.setdefault(id, _Opening())
        async with opening.lock:
            if not (opening.done or opening.void or id in self._workflows):
                snapshot = await self._stored(id)
                opening.done = True
                if not opening.void:
                    del self._opening[id]
                    if snapshot is not None and id not in self._workflows:  # what was added meanwhile wins
                        self._workflows[id] = self._restored(snapshot)
        return None if opening.void else self._workflows.get(id)

    async def save(self, id: str) -> bool:
        """Store the workflow as it is at the time of the call, after earlier saves.

        False without a store or such a workflow. Raises what the store raises.
        """
        workflow = self._workflows.get(id)
        if workflow is None or self.store is None:
            await trio.lowlevel.checkpoint()
            return False
        snapshot = workflow.snapshot()
        async with self._saving:
            await self.store.set(snapshot)
        return True

    def remove(self, ids: str | Iterable[str]) -> bool:
        """Forget one workflow or several. True if at least one was there.

        What is stored stays, and so does a run that is under way.
        """
        removed = False
        for id in [ids] if isinstance(ids, str) else list(ids):
            if (opening := self._opening.pop(id, None)) is not None:
                opening.void = True
            removed |= self._workflows.pop(id, None) is not None
            if (run := self._runs.get(id)) is not None and run.over:
                self._forget(run)
        return removed

    def clear(self) -> None:
        """Forget all of them."""
        self.remove([*self._workflows, *self._opening])

    # ---------------------------------------------------------------- runs

    def runs(self) -> list[Run]:
        """The runs that are under way or remembered, in the order in which they were started."""
        return list(self._runs.values())

    def find(self, id: str) -> Run:
        """The run of that id. Raises `WorkflowError` UNKNOWN that names those there are."""
        run = self._runs.get(id)
        if run is None:
            known = list(self._runs)
            raise WorkflowError(
                "UNKNOWN",
                f"There is no run {id!r} here; there are: {', '.join(known[:20]) or 'none'}. A stored one has to"
                " be taken up first.",
                {"id": id, "known": known},
            )
        return run

    async def look(self, id: str) -> Run:
        """The run of that id, or the record of a stored one, which is not taken up by that.

        Raises `WorkflowError` UNKNOWN if it is neither here nor stored, RESTORE for a row that is no snapshot.
        """
        run = self._runs.get(id)
        if run is not None:
            await trio.lowlevel.checkpoint()
            return run
        snapshot = await self._stored(id)
        return self.find(id) if snapshot is None else Run(self._restored(snapshot), await self._past_events(id))

    async def run(self, target: object, **options: Unpack[RunOptions]) -> WorkflowResult:
        """Start a workflow and wait, without a deadline but `timeout`, for what it comes to. See `start`.

        A run that this call has begun belongs to it: it is beneath the actor that calls, and is stopped, and its end
        stored, if the call is cancelled. One that was joined goes on.
        """
        run, begun = await self._begin(target, options, lasting=False)
        return await (run.finish() if begun else run.wait())

    async def start(self, target: object, **options: Unpack[RunOptions]) -> Run:
        """Start a workflow, a definition or one that was added, and leave it to itself.

        The same definition under the same id is the same run: one that is under way is returned as it is, one that is
        over, here or in the store, as its record, and one that was cut off is recovered.

        When this returns, it is stored. It ends with the runtime at the latest: then it is suspended, and can be
        recovered. Raises `WorkflowError`
        TRANSITION for another definition under an id that is taken, and for a workflow that cannot be run; MUTATION
        and RESTORE for what cannot be built; and what keeps the store from it: nothing of the run has begun then, and
        its id stays free. Cancelled: it was started or not, and a further call tells.
        """
        run, _ = await self._begin(target, options, lasting=True)
        await run.begun()
        return run

    async def recover(
        self, id: str, *, functions: Mapping[str, object] | None = None, recoveries: int = DEFAULT_RECOVERIES
    ) -> Run:
        """Take up a stored run that was cut off or suspended; what is recorded of it never runs again.

        A run that is under way is returned as it is, one that was over as its record, as it is stored. Raises
        `WorkflowError` UNKNOWN for an id that is not stored, and RESTORE as `create_recovered_workflow` does.
        """
        run = self._runs.get(id)
        if run is not None and not _cut_off(run):
            await trio.lowlevel.checkpoint()
            return run
        snapshot = await self._stored(id)
        if snapshot is None:
            return self.find(id)
        if is_terminal(snapshot.status) and snapshot.override is msgspec.UNSET:
            return await self._record(snapshot)
        return await self._resume(snapshot, functions, Bounds(), recoveries=recoveries, lasting=True)

    async def recover_all(self, *, recoveries: int = DEFAULT_RECOVERIES) -> Recovered:
        """Take up every stored run that is not over. One that cannot be keeps no other from it."""
        runs: list[Run] = []
        refused: dict[str, Exception] = {}
        for stored in await self.list(status=("pending", "running")):
            try:
                runs.append(await self.recover(stored.id, recoveries=recoveries))
            except Exception as error:
                refused[stored.id] = error
        return Recovered(tuple(runs), refused)

    async def rerun(self, id: str, new_id: str, *, phase: str, functions: Mapping[str, object] | None = None) -> Run:
        """Run a workflow again from `phase` on, as `new_id`, with the results of the phases ahead of it.

        The old run stays what it is. Raises `WorkflowError` UNKNOWN for an id that is neither here nor stored,
        TRANSITION for a new one that is taken, and RESTORE for one that is no plain text, and as `fork_snapshot` does.
        """
        _check_id(new_id)
        snapshot = (await self.look(id)).snapshot()
        taken = await self._stored(new_id)
        if taken is not None or new_id in self._runs:
            raise WorkflowError(
                "TRANSITION", f"There is a run {new_id!r} already: choose another id for the new one.", {"id": new_id}
            )
        forked = fork_snapshot(snapshot, new_id, phase=phase, now=max(0, int(self.runner.wall_clock() * 1000)))
        return self._launch(self._restored(forked, functions), Bounds(), self._new_events(new_id), lasting=True)

    # ---------------------------------------------------------------- what is stored

    async def list(self, *, status: Status | Iterable[Status] | None = None) -> list[StoredRun]:
        """The stored runs in short, the least recently changed first; none without a store.

        Those of one status or of several, if any are given. Raises `WorkflowError` MUTATION for what is no status.
        """
        wanted = None if status is None else _statuses(status)
        if self.store is None:
            await trio.lowlevel.checkpoint()
            return []
        return [*await self.store.list(status=wanted)]

    async def prune(self, *, older_than: float) -> int:
        """Forget stored runs that are over and were last changed so many seconds ago; how many those were."""
        if self.store is None:
            await trio.lowlevel.checkpoint()
            return 0
        return await self.store.prune(older_than=older_than)

    async def _stored(self, id: str) -> WorkflowSnapshot | None:
        snapshot = None if self.store is None else await self.store.get(id)
        if snapshot is None or isinstance(self.store, RecordingStore):
            return snapshot
        return read_snapshot(snapshot, key=id)

    def _new_events(self, id: str, *, last: int = 0) -> RunEvents:
        """The events of a run; those that are not in memory are read from the store."""
        store = self.store
        if not isinstance(store, RecordingStore):
            return RunEvents(id)
        return RunEvents(id, last=last, older=lambda after, limit: store.events(id, after=after, limit=limit))

    async def _past_events(self, id: str, *, over: bool = True) -> RunEvents:
        """Those of a stored run."""
        last = await self.store.last_event(id) if isinstance(self.store, RecordingStore) else 0
        events = self._new_events(id, last=last)
        if over:
            events.close()
        return events

    # ---------------------------------------------------------------- how a run begins

    async def _begin(self, target: object, options: RunOptions, *, lasting: bool) -> tuple[Run, bool]:
        """The run, and whether this call has begun it."""
        build, bounds = split(options)
        if isinstance(target, Workflow):
            workflow = target
        else:
            definition = check_definition(target)
            found = await self._found(definition.id, definition_hash(definition))
            if isinstance(found, Run):
                return found, False
            if found is not None:
                return await self._resume(found, build.get("functions"), bounds, lasting=lasting), True
            workflow = self._built(definition, build)
        return self._launch(workflow, bounds, self._new_events(workflow.id), lasting=lasting), True

    async def _found(self, id: str, fingerprint: str) -> Run | WorkflowSnapshot | None:
        """The run of that id as it is, or the snapshot that it goes on from, or `None` if there is none.

        Raises `WorkflowError` TRANSITION if it is that of another definition.
        """
        run = self._runs.get(id)
        snapshot = None
        if run is None or _cut_off(run):
            snapshot = await self._stored(id)
            if snapshot is None and run is not None:
                snapshot = run.snapshot()
            run = None if self._runs.get(id) is run else self._runs.get(id)
        hash = run.workflow.hash if run is not None else snapshot.hash if snapshot is not None else fingerprint
        if hash != fingerprint:
            raise WorkflowError(
                "TRANSITION",
                f"There is a run {id!r} of another definition: choose another id, or remove that one.",
                {"id": id},
            )
        if run is None and snapshot is not None and is_terminal(snapshot.status):
            return await self._record(snapshot)
        return run or snapshot

    async def _record(self, snapshot: WorkflowSnapshot) -> Run:
        """A stored run that is over."""
        run = Run(self._restored(snapshot), await self._past_events(snapshot.id))
        return self._runs.get(snapshot.id, run)

    async def _resume(
        self,
        snapshot: WorkflowSnapshot,
        functions: Mapping[str, object] | None,
        bounds: Bounds,
        *,
        lasting: bool,
        recoveries: int = DEFAULT_RECOVERIES,
    ) -> Run:
        workflow = create_recovered_workflow(
            snapshot,
            functions=self._behaviours(functions),
            recoveries=recoveries,
            error=self._error,
            clock=self.runner.wall_clock,
        )
        events = await self._past_events(snapshot.id, over=workflow.terminal)
        if workflow.terminal and self.store is not None:
            await self.store.set(workflow.snapshot())
        known = self._runs.get(snapshot.id)
        if known is not None and not _cut_off(known):  # somebody else was quicker
            return known
        if workflow.terminal:
            return Run(workflow, events)
        return self._launch(workflow, bounds, events, lasting=lasting)

    def _launch(self, workflow: Workflow, bounds: Bounds, events: RunEvents, *, lasting: bool) -> Run:
        known = self._runs.get(workflow.id)
        if known is not None and not known.over:
            raise WorkflowError(
                "TRANSITION",
                f"There is a run {workflow.id!r} under way: wait for it, or choose another id.",
                {"id": workflow.id, "status": known.status},
            )
        run = self.runner.launch(workflow, store=self.store, events=events, lasting=lasting, **bounds)
        self._workflows[workflow.id] = workflow
        self._runs[workflow.id] = run
        if run.ref is not None:
            run.ref.watch(lambda _ended: self._ended(run))
        return run

    def _ended(self, run: Run) -> None:
        if run.void:  # its id is free again
            self._forget(run)
            return
        self._over.append(run)
        while len(self._over) > RUNS_KEPT:
            self._forget(self._over[0])

    def _forget(self, run: Run) -> None:
        if run in self._over:
            self._over.remove(run)
        if self._runs.get(run.id) is run:
            del self._runs[run.id]
        if self._workflows.get(run.id) is run.workflow:
            del self._workflows[run.id]

    def _built(self, definition: object, options: BuildOptions) -> Workflow:
        given = options.copy()
        given["functions"] = self._behaviours(options.get("functions"))
        given["error"] = options.get("error") or self._error
        return create_workflow(definition, clock=self.runner.wall_clock, **given)

    def _restored(self, snapshot: WorkflowSnapshot, functions: Mapping[str, object] | None = None) -> Workflow:
        return create_restored_workflow(
            snapshot, functions=self._behaviours(functions), error=self._error, clock=self.runner.wall_clock
        )

    def _behaviours(self, functions: Mapping[str, object] | None) -> dict[str, object]:
        return {**self.functions, **(functions or {})}


def _check_id(id: object) -> None:
    if not isinstance(id, str) or not encodable(id):
        raise WorkflowError("RESTORE", f"The id of a run is text without lone surrogates, and not {id!a:.50}.")


def _statuses(status: Status | Iterable[Status]) -> frozenset[Status]:
    wanted: frozenset[Any] = frozenset([status] if isinstance(status, str) else status)
    known: frozenset[Any] = frozenset(get_args(Status))
    if not wanted <= known:
        unknown = ", ".join(sorted(repr(each) for each in wanted - known))
        raise WorkflowError(
            "MUTATION",
            f"There is no status {unknown}; there are: {', '.join(sorted(known))}.",
            {"known": sorted(known)},
        )
    return wanted


def _cut_off(run: Run) -> bool:
    """Whether it is over without having come to an end: it was suspended."""
    return run.over and run.workflow.suspended
