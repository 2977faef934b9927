"""The jobs of a runtime: who may start them, who may touch them, and by which names."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from functools import partial
from typing import final

from greenroom.actors.agent import Agent
from greenroom.actors.job.job import OUTPUT, Job
from greenroom.actors.job.jobs import Begin, Jobs, Run
from greenroom.actors.job.notices import Notices
from greenroom.protocol.errors import JobError
from greenroom.runtime.actor import Actor
from greenroom.runtime.background import Work
from greenroom.runtime.context import AROUND, as_nobody, current_node
from greenroom.runtime.tree import Tree, free_place

__all__ = ["JobManager", "job_owner"]


def job_owner() -> Agent | None:
    """Whose jobs the running code starts and may touch: those of the nearest agent that it is, or is beneath. None:
    those that are nobody's."""
    node = current_node()
    if node is None or node.place is None:
        return None
    return next((place.actor for place in node.place.upward() if isinstance(place.actor, Agent)), None)


@final
class JobManager:
    """Work in the background, by id.

    ::

        job = await runtime.jobs.start("build", "Build the release", build, owner=agent)
        ...
        print((await job.wait(60)).status, job.read())

    A job is beneath its owner in the tree and ends with it; one without an owner ends with the runtime. An agent that
    owns one is told of its end by its inbox, once, unless it was seen by a `read` or a `wait`, or came by a `kill`.
    """

    def __init__(self, tree: Tree, *, wall_clock: Callable[[], float] = time.time) -> None:
        self.now = wall_clock
        """Dates jobs, in seconds since 1970."""
        self._tree = tree
        self._jobs: dict[str, Job] = {}
        self._numbers: Counter[str] = Counter()

    async def start(
        self,
        kind: str,
        label: str,
        run: Run,
        *,
        owner: Actor | None = None,
        quiet: bool = False,
        output_limit_bytes: int = OUTPUT,
    ) -> Job:
        """Start a job: `run(job)` is called once, and what it gives is awaited as the work of the job.

        What that returns is its output, unless it writes while it goes on (`job.write`); what it raises is its failure.
        `job.note` says how it ends, `job.on_kill` how it is killed. Of the output so many bytes are kept, the last.
        `quiet`: its end wakes nobody.

        Raises JobError, before `run` is called and an id is used: OWNER if the owner does not live, LIMIT if ten jobs
        of this owner run; and what calling `run` raises, which leaves nothing. Cancelled: the job is killed, if it was
        started.
        """
        place = self._place(owner)
        path = None if owner is None else owner.ref.path
        job = Job(kind, label, owner=path, quiet=quiet, output=output_limit_bytes, now=self.now())
        context = copy_context()
        context.run(AROUND.set, ())  # nobody's deadline is about it
        return await place.ref.ask(Begin(job, run, context))

    async def begin(self, kind: str, label: str, run: Callable[[Work], Awaitable[str | None]]) -> str:
        """`start` for whoever calls a tool (`job_owner`); the id."""
        return (await self.start(kind, label, run, owner=job_owner())).id

    def find(self, id: str, *, by: Actor | None) -> Job:
        """The job of that id, for `by`, who may touch its own jobs and those that are nobody's; `None` only the latter.

        Raises JobError: UNKNOWN if there is no such job any more, FOREIGN if it is another's.
        """
        job = self._jobs.get(id)
        if job is None:
            known = [each.id for each in self.of(by)]
            raise JobError(
                "UNKNOWN",
                f"There is no job {id}; there are: {', '.join(known) or 'none'}. A job is forgotten with its owner.",
                {"job": id, "known": known},
            )
        if not _may_touch(by, job):
            raise JobError(
                "FOREIGN",
                f"The job {id} is another agent's: only those can be touched that job_list shows.",
                {"job": id},
            )
        return job

    def of(self, by: Actor | None) -> list[Job]:
        """What `by` may touch, in order of their start."""
        return [job for job in self._jobs.values() if _may_touch(by, job)]

    def jobs(self) -> list[Job]:
        """All of them, whosever they are, in order of their start."""
        return list(self._jobs.values())

    # ---------------------------------------------------------------- for `Jobs`

    def enter(self, job: Job, last: int) -> None:
        """Give a job its id, by which it can be found from now on. Its number is behind `last` in any case."""
        self._numbers[job.kind] = max(self._numbers[job.kind], last) + 1
        job.id = f"{job.kind}-{self._numbers[job.kind]}"
        self._jobs[job.id] = job

    def forget(self, job: Job) -> None:
        """Let a job be an unknown one."""
        self._jobs.pop(job.id, None)

    def _place(self, owner: Actor | None) -> Jobs:
        if owner is not None and not (hasattr(owner, "ref") and owner.ref.alive):
            path = owner.ref.path if hasattr(owner, "ref") else repr(owner)
            raise JobError(
                "OWNER", f"{path} does not live: a job needs an owner that does, or none at all.", {"owner": path}
            )
        parent = self._tree.root if owner is None else owner.ref
        for child in (parent.children or {}).values():
            if isinstance(child.actor, Jobs) and child.alive:
                return child.actor
        notices = Notices(owner) if isinstance(owner, Agent) else None
        place = Jobs(self, notices)
        as_nobody(partial(parent.tree.spawn, place, free_place(parent, "jobs"), parent=parent))
        if notices is not None:
            place.ref.watch(notices.close)
        return place


def _may_touch(by: Actor | None, job: Job) -> bool:
    return job.owner is None or (by is not None and by.ref.path == job.owner)
