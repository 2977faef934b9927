"""Loading related rows: a fixed number of queries for each relation, however many rows there are."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar, final

from greenroom.actors.database import Session
from greenroom.protocol.database import (
    Cell,
    Comparison,
    Condition,
    Layout,
    Row,
    among,
    compile_conditions,
    is_mapping,
)
from greenroom.protocol.errors import RelationError
from greenroom.protocol.relations import Include, ResolvedRelation

__all__ = ["Loaded", "Loading", "RelationMap", "unknown_relation"]

R = TypeVar("R", bound=Mapping[str, Any])

RelationMap: TypeAlias = Mapping[str, Mapping[str, ResolvedRelation]]

Branch: TypeAlias = dict[str, Any]
"""A row together with what was attached to it."""


class Loaded(NamedTuple):
    """One relation was loaded for all rows of a level: whose it is, and how many rows were attached."""

    table: str
    relation: str
    attached: int


@final
class Loading:
    """Attaches related rows, in one session and so of one state.

    With `strict`, a relation that is not declared is refused; otherwise it is passed over. `most` bounds how many rows
    are attached in all (None: no bound): more of them raise `RelationError` LIMIT.
    """

    def __init__(self, session: Session, relations: RelationMap, *, strict: bool, most: int | None) -> None:
        self._session = session
        self._relations = relations
        self._strict = strict
        self._most = most
        self._attached = 0
        self.loaded: list[Loaded] = []
        """What was loaded, in order."""

    def by_key(self, table: str, keys: Iterable[Any], include: Include) -> list[Branch | None]:
        """The rows of these keys with what belongs to them, `None` where there is none. A key may come twice."""
        layout = self._session.layout(table)
        wanted = [layout.lookup(key) for key in keys]
        found = self._among(layout, layout.schema.primary, wanted)
        keys = [row[layout.schema.primary] for row in found]
        branches = _Branches(zip(keys, self.attach(table, found, include), strict=True))
        return [branches.get(key) for key in wanted]

    def attach(self, table: str, rows: Sequence[Row], include: Include) -> list[Branch]:
        """The rows, each with what belongs to it. A relation takes the place of a column of its name."""
        branches: list[Branch] = [dict(row) for row in rows]
        declared = self._relations.get(table, {})
        for name, below in include.items():
            if below is False:
                continue
            relation = declared.get(name)
            if relation is None:
                if self._strict:
                    raise unknown_relation(table, name, declared)
                continue
            attached = self._related(table, rows, relation, below if is_mapping(below) else {})
            count = 0
            for branch, related in zip(branches, attached, strict=True):
                if relation.relationship in ("belongs", "one"):
                    branch.pop(name, None)
                    if related:
                        branch[name] = related[0]
                else:
                    branch[name] = related
                count += len(related)
            self.loaded.append(Loaded(table, name, count))
            self._count(count)
        return branches

    def _related(
        self, table: str, rows: Sequence[Row], relation: ResolvedRelation, below: Include
    ) -> list[list[Branch]]:
        """For each row what belongs to it.

        Related rows get their own relations first. One of those that has the name of the very column by which the rows
        are found takes its place, and then they belong nowhere: such a relation wants another name.
        """
        layout = self._session.layout(relation.model)
        primary = self._session.layout(table).schema.primary
        if relation.relationship == "belongs":
            pairs = [(row.get(relation.column),) for row in rows]
            return self._by_primary(layout, pairs, below)
        keys = [row[primary] for row in rows]
        if relation.relationship == "through":
            junction = self._session.layout(relation.through)
            links = self._among(junction, relation.source, keys)
            linked = _grouped(links, relation.source)
            targets = [[link.get(relation.target) for link in linked.get(key, ())] for key in keys]
            return self._by_primary(layout, targets, below)
        also: tuple[Condition, ...] = ()
        if relation.relationship == "morph":
            also = (Condition(relation.tag, "equals", [relation.label]),)
        found = self._among(layout, relation.key, keys, also)
        if relation.relationship == "one":
            found = [group[0] for group in _grouped(found, relation.key).values()]
        grouped = _grouped(self.attach(relation.model, found, below), relation.key)
        return [grouped.get(key, []) for key in keys]

    def _by_primary(
        self, layout: Layout, wanted: Sequence[Sequence[Cell | None]], below: Include
    ) -> list[list[Branch]]:
        """For each list of keys the rows that there are of them, in its order."""
        found = self._among(layout, layout.schema.primary, (key for keys in wanted for key in keys))
        attached = self.attach(layout.name, found, below)
        branches = _Branches((branch.get(layout.schema.primary), branch) for branch in attached)
        return [[branch for key in keys if (branch := branches.get(key)) is not None] for keys in wanted]

    def _among(
        self, layout: Layout, column: str, values: Iterable[Cell | None], also: Sequence[Condition] = ()
    ) -> list[Row]:
        """The rows of a table whose cell is one of the values, by key. Without a value that it could be, nothing is
        asked."""
        condition = among(column, values, layout)
        if not condition.values:
            return []
        conditions: list[Comparison] = [condition, *compile_conditions(list(also), layout)]
        return self._session.select(layout, conditions)

    def _count(self, count: int) -> None:
        self._attached += count
        if self._most is not None and self._attached > self._most:
            raise RelationError(
                "LIMIT",
                f"more than {self._most} related rows would be attached; load fewer rows, or fewer relations",
                {"limit": self._most},
            )


class _Branches:
    """Rows with what belongs to them, by key. One that hangs in several places is another object in each."""

    def __init__(self, branches: Iterable[tuple[Any, Branch]]) -> None:
        self._branches = {key: branch for key, branch in branches if isinstance(key, Cell)}
        self._given: set[Cell] = set()

    def get(self, key: Cell | None) -> Branch | None:
        branch = None if key is None else self._branches.get(key)
        if branch is None or key is None:
            return None
        if key in self._given:
            return copy.deepcopy(branch)
        self._given.add(key)
        return branch


def unknown_relation(table: str, name: str, known: Iterable[str]) -> RelationError:
    """`RelationError` UNKNOWN_RELATION."""
    declared = ", ".join(sorted(known)) or "none"
    return RelationError(
        "UNKNOWN_RELATION",
        f"{table!r} has no relation {name!r}; it has {declared}",
        {"model": table, "relation": name},
    )


def _grouped(rows: Iterable[R], column: str) -> dict[Cell, list[R]]:
    """The rows by the cell of a column; those that have none there are left out."""
    groups: dict[Cell, list[R]] = {}
    for row in rows:
        cell = row.get(column)
        if isinstance(cell, Cell):
            groups.setdefault(cell, []).append(row)
    return groups
