"""Running a workflow that one has at hand, and waiting for what it comes to."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any, Unpack, final

from greenroom.actors.workflow.drive import Drive
from greenroom.actors.workflow.events import RunEvents
from greenroom.actors.workflow.options import Bounds, BuildOptions, RunOptions, check_bounds
from greenroom.actors.workflow.owners import LetGo
from greenroom.actors.workflow.run import Run, RunActor
from greenroom.actors.workflow.slots import TaskErrand
from greenroom.actors.workflow.store import WorkflowStore
from greenroom.protocol.lineage import tag_workflow
from greenroom.protocol.workflows import Workflow, WorkflowResult, create_workflow
from greenroom.runtime.actor import Actor
from greenroom.runtime.context import current_node
from greenroom.runtime.lineage import beneath
from greenroom.runtime.ref import Ref
from greenroom.runtime.tree import Tree, free_place

__all__ = ["WorkflowRunner", "split"]


def _nobody_owns(owner: str, *, over: Callable[[str], bool] | None = None) -> None:
    """Where nothing outlasts the process there is nothing to let go of."""


@final
class Workflows(Actor):
    """Parent of every run that was not started beneath another actor."""


@final
class WorkflowRunner:
    """Runs workflows in a tree; any number at a time, also beneath each other. It keeps no register of them.

    `wall_clock` gives seconds since 1970; `chance`, from 0 to 1, decides within the jitter of a backoff. `let_go` is
    told of owners that are over for good: tasks and runs that are stored.
    """

    def __init__(
        self,
        tree: Tree,
        *,
        wall_clock: Callable[[], float] = time.time,
        chance: Callable[[], float] = random.random,
        let_go: LetGo = _nobody_owns,
    ) -> None:
        self.tree = tree
        self.wall_clock = wall_clock
        self._let_go = let_go
        self._chance = chance
        self._ref = _place_of_all(tree)

    async def execute(
        self, target: object, *, store: WorkflowStore | None = None, **options: Unpack[RunOptions]
    ) -> WorkflowResult:
        """Run `target`, a live `Workflow` or a definition, to its end.

        `BuildOptions` are for a definition that is to be built, `Bounds` are what may stop the run. `store` keeps it as
        it goes.

        The run is an actor beneath the one that calls, or at the top. However it ends is a result. Cancelled: the run
        is stopped, and its end stored, before this is over.

        Raises, before anything has happened, `WorkflowError` TRANSITION for a workflow that cannot be run, or was run
        before, MUTATION and RESTORE for what cannot be built, and `ToolError` DEPTH beneath a run of the same id, or
        beneath too many.
        """
        build, bounds = split(options)
        if not isinstance(target, Workflow):
            target = create_workflow(target, clock=self.wall_clock, **build)
        run = self.launch(target, store=store, **bounds)
        return await run.finish()

    def launch(
        self,
        workflow: Workflow,
        *,
        store: WorkflowStore | None = None,
        events: RunEvents | None = None,
        lasting: bool = False,
        **bounds: Unpack[Bounds],
    ) -> Run:
        """Claim the workflow and start its run, without waiting for it.

        A `lasting` one is at the top, and nobody's in particular. Raises `WorkflowError` TRANSITION if it cannot be
        run, MUTATION for bounds of the wrong type, and `ToolError` DEPTH if a run of its id is above, or too many are.
        """
        check_bounds(bounds)
        parent = self._ref if lasting else self._place()
        events = events or RunEvents(workflow.id)
        actor = RunActor(store, bounds)
        with beneath(tag_workflow(workflow.id)):
            workflow.claim()
            ref = self.tree.spawn(actor, free_place(parent, workflow.id), parent=parent)
        actor.drive = Drive(
            workflow, ref, events, outer=_outer(parent), lasting=lasting, let_go=self._let_go, chance=self._chance
        )
        return Run(workflow, events, actor.drive)

    def _place(self) -> Ref:
        """The actor that calls, if it is one of this tree; else the place of all runs."""
        node = current_node()
        place = None if node is None else node.place
        return self._ref if place is None or place.tree is not self.tree else place


def _place_of_all(tree: Tree) -> Ref:
    """`/workflows`, which all runners of a tree share."""
    place = (tree.root.children or {}).get("workflows")
    return place if place is not None and place.alive else tree.spawn(Workflows(), "workflows")


def split(options: RunOptions) -> tuple[BuildOptions, Bounds]:
    """The options of the workflow, and those of its run."""
    bounds: Any = {name: value for name, value in options.items() if name in Bounds.__annotations__}
    build: Any = {name: value for name, value in options.items() if name not in bounds}
    return build, bounds


def _outer(parent: Ref) -> Drive | None:
    """The run that has a task at this place or above."""
    return next((place.actor.drive for place in parent.upward() if isinstance(place.actor, TaskErrand)), None)
