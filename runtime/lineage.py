"""Lineage: the runs and agents that the running code is beneath, and how deep they may be nested.

::

    with beneath(tag_workflow(definition.id)):  # DEPTH is raised here, before anything is started or stored
        run = tree.spawn(RunActor(...), name)   # the actor keeps the lineage, whoever tells it something later

The tags are `workflow:<id>` and `agent:<id>`, the outermost first, each once, in any order: an agent may stand beneath
an agent. (The `lineage=` of the tools knows workflows and agents in turn only; see `greenroom.protocol.lineage`.)
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, NamedTuple

from greenroom.protocol.errors import ToolError
from greenroom.protocol.lineage import MAX_WORKFLOW_CHAIN

__all__ = ["LINEAGE", "MAX_DELEGATIONS", "Lineage", "beneath", "current_lineage", "within"]

MAX_DELEGATIONS: Final = 8
"""How many agents may be nested beneath the root, where nobody says less."""


class Lineage(NamedTuple):
    """Who runs above, and the bounds in force: the smallest that anybody above has set."""

    tags: tuple[str, ...] = ()
    max_chain: int = MAX_WORKFLOW_CHAIN
    max_delegations: int = MAX_DELEGATIONS
    unnamed: int = 0
    """How many agents are nested above that no tag names."""

    @classmethod
    def of(cls, tags: Iterable[str]) -> Lineage:
        """Beneath these, the outermost first, each once. Raises `ToolError` TOOL for what is no tag."""
        unique = tuple(dict.fromkeys(tags))
        for tag in unique:
            _kind(tag)
        return cls(unique)

    @property
    def chain(self) -> int:
        """How many workflows are nested beneath the outermost one."""
        return max(0, sum(tag.startswith("workflow:") for tag in self.tags) - 1)

    @property
    def delegations(self) -> int:
        """How many agents are nested beneath the root, which is the first tag, be it an agent or not."""
        return self.unnamed + sum(tag.startswith("agent:") for tag in self.tags[1:])

    @property
    def delegated(self) -> bool:
        """Whether the innermost agent works for another one."""
        return self.unnamed + sum(tag.startswith("agent:") for tag in self.tags) > 1

    def bounded(self, *, max_chain: int | None = None, max_delegations: int | None = None) -> Lineage:
        """With these bounds where they are smaller. 0 allows nothing beneath; None leaves a bound as it is."""
        return self._replace(
            max_chain=self.max_chain if max_chain is None else min(self.max_chain, max_chain),
            max_delegations=self.max_delegations
            if max_delegations is None
            else min(self.max_delegations, max_delegations),
        )

    def joined(self, other: Lineage) -> Lineage:
        """With the tags of the other behind its own, each once, and the smaller bounds of both."""
        tags = tuple(dict.fromkeys((*self.tags, *other.tags)))
        both = self._replace(tags=tags, unnamed=max(self.unnamed, other.unnamed))
        return both.bounded(max_chain=other.max_chain, max_delegations=other.max_delegations)

    def extended(self, tag: str) -> Lineage:
        """With `tag` as the innermost.

        Raises `ToolError`: TOOL for what is no tag, DEPTH for one that is above already (context `tag`, `lineage`) and
        for one too many (context `tag`, `depth`, `max`).
        """
        kind = _kind(tag)
        if tag in self.tags:
            raise ToolError(
                "DEPTH",
                f"{tag!r} is at work already above ({' > '.join(self.tags)}) and cannot wait for itself: give the work "
                "to another one.",
                {"tag": tag, "lineage": list(self.tags)},
            )
        inside = self._replace(tags=(*self.tags, tag))
        depth, most = (
            (inside.chain, self.max_chain) if kind == "workflow" else (inside.delegations, self.max_delegations)
        )
        if depth > most:
            raise ToolError(
                "DEPTH",
                f"{tag!r} would run {depth} {'workflows' if kind == 'workflow' else 'agents'} deep, and {most} are "
                "allowed: do the work here instead of nesting it further.",
                {"tag": tag, "depth": depth, "max": most},
            )
        return inside


def _kind(tag: str) -> str:
    kind, _, name = tag.partition(":")
    if kind not in ("workflow", "agent") or not name:
        raise ToolError("TOOL", f"{tag!r} is no tag: it must be 'workflow:' or 'agent:' and an id.", {"tag": tag})
    return kind


LINEAGE: ContextVar[Lineage] = ContextVar("greenroom_lineage", default=Lineage())  # noqa: B039  # it is immutable
"""Set by `beneath`, and by the runtime for each actor's own task."""


def current_lineage() -> Lineage:
    """What the running code is beneath. In an actor's handlers: what the actor was spawned beneath."""
    return LINEAGE.get()


@contextmanager
def beneath(tag: str, *, max_chain: int | None = None, max_delegations: int | None = None) -> Generator[Lineage]:
    """Let what the block does, starts and spawns be beneath `tag`; gives that lineage.

    The bounds hold for what is beneath, the tag itself included, and only where they are smaller than those in force.
    Raises `ToolError` as `Lineage.extended`, before the block begins.
    """
    before = LINEAGE.get().bounded(max_chain=max_chain, max_delegations=max_delegations)
    with within(before.extended(tag)) as inside:
        yield inside


@contextmanager
def within(lineage: Lineage) -> Generator[Lineage]:
    """Let what the block does, starts and spawns be beneath what `lineage` says, and nothing else."""
    token = LINEAGE.set(lineage)
    try:
        yield lineage
    finally:
        LINEAGE.reset(token)
