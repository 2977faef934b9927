"""The ordered parts of a node, unique by id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar, final

from greenroom.protocol.errors import WorkflowError
from greenroom.protocol.workflows.node import Node

__all__ = ["Children"]

N = TypeVar("N", bound=Node)


@final
class Children(Generic[N]):
    """Phases of a workflow, or tasks of a phase. `noun` is what one is called, `place` what they belong to.

    Every refusal is a `WorkflowError` MUTATION.
    """

    __slots__ = ("_by_id", "_listed", "_noun", "_place")

    def __init__(self, noun: str, place: str, children: Iterable[N] = ()) -> None:
        self._noun = noun
        self._place = place
        self._listed: list[N] = []
        self._by_id: dict[str, N] = {}
        for child in children:
            self.insert(child, len(self._listed))

    def __len__(self) -> int:
        return len(self._listed)

    def __iter__(self) -> Iterator[N]:
        """Over a copy: whoever iterates may edit."""
        return iter(tuple(self._listed))

    def get(self, child_id: str) -> N | None:
        return self._by_id.get(child_id)

    def index(self, child_id: str) -> int:
        """Where the child stands; raises for an id that is not there."""
        child = self._by_id.get(child_id)
        if child is not None:
            return self._listed.index(child)
        known = [child.id for child in self._listed]
        raise WorkflowError(
            "MUTATION",
            f"There is no {self._noun} {child_id!r} in {self._place}; there are: {', '.join(known) or 'none'}.",
            {self._noun: child_id, "known": known},
        )

    def __getitem__(self, index: int) -> N:
        return self._listed[index]

    def require_new(self, child_id: str) -> None:
        """Raises for an id that is taken."""
        if child_id in self._by_id:
            raise WorkflowError(
                "MUTATION",
                f"There is a {self._noun} {child_id!r} in {self._place} already: choose another id.",
                {self._noun: child_id},
            )

    def position(self, index: int | None, *, first: int, last: int) -> int:
        """The index to put a child at, `last` for none; raises for one that is not from `first` to `last`."""
        if index is None:
            index = last
        if not first <= index <= last:
            room = f"between {first} and {last}" if first < last else f"at {first}" if first == last else "nowhere"
            raise WorkflowError(
                "MUTATION",
                f"A {self._noun} of {self._place} cannot stand at {index}: {room} there is room for it.",
                {"index": index, "first": first, "last": last},
            )
        return index

    def insert(self, child: N, index: int) -> None:
        self.require_new(child.id)
        self._listed.insert(index, child)
        self._by_id[child.id] = child

    def pop(self, index: int) -> N:
        child = self._listed.pop(index)
        del self._by_id[child.id]
        return child
