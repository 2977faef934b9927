"""One table and its relations, as the program that owns the manager sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar, final, overload

from msgspec import UNSET

from greenroom.actors.database import Session
from greenroom.actors.relation.loading import Branch, Loading, unknown_relation
from greenroom.protocol.database import Comparison, Condition, Direction, Key, Layout, Order, Query, compile_conditions
from greenroom.protocol.emitter import Emitter, ErrorHandler
from greenroom.protocol.errors import RelationError
from greenroom.protocol.relations import Include, ResolvedRelation

if TYPE_CHECKING:
    from greenroom.actors.relation.manager import RelationManager

__all__ = ["MODEL_EVENTS", "Model"]

K = TypeVar("K", bound=Key)

MODEL_EVENTS: Final = ("load", "link", "unlink")


@final
class Model:
    """A table with its relations. Made by `RelationManager.model`.

    Every call is one message to the database's actor, and all its queries see one state. It raises `DatabaseError` as
    the tables of the database do; for its cancellation see there too.

    Events of its `emitter`, afterwards: `load(relation, count)`, with how many rows were attached in all, once for each
    relation and level; `link(key, relation)` and `unlink(key, relation)`.
    """

    def __init__(
        self,
        manager: RelationManager,
        name: str,
        relations: Mapping[str, ResolvedRelation],
        error: ErrorHandler | None,
    ) -> None:
        self._manager = manager
        self.name: Final = name
        """Of the model, which is that of its table."""
        self.relations: Final = relations
        self.emitter: Final = Emitter(MODEL_EVENTS, error=error)
        """Where its events can be listened to."""

    def __repr__(self) -> str:
        return f"<Model {self.name}>"

    @property
    def table(self) -> str:
        """The name of its table."""
        return self.name

    @overload
    async def load(self, key: Key, include: Include | None = None) -> Branch | None: ...
    @overload
    async def load(self, key: list[K], include: Include | None = None) -> list[Branch | None]: ...
    async def load(self, key: Key | list[K], include: Include | None = None) -> Branch | list[Branch | None] | None:
        """The row of a key with what belongs to it, or `None`; for a list, one of them for each key.

        `include` is `{relation: True, False or the include of its rows}`. A relation that takes one row is left out
        where there is none, one that takes many is a list then, and either takes the place of a column of its name.
        """
        keys = key if isinstance(key, list) else [key]

        def work(session: Session) -> tuple[list[Branch | None], Loading]:
            loading = self._manager.loading(session)
            with session.reading():
                return loading.by_key(self.table, keys, include or {}), loading

        rows, loading = await self._manager.database.perform(work)
        self._manager.announce(loading.loaded)
        return rows if isinstance(key, list) else rows[0]

    async def find(
        self,
        include: Include | None = None,
        *,
        limit: int | None = None,
        offset: int = 0,
        sort: str | None = None,
        direction: Direction = "ascending",
    ) -> list[Branch]:
        """A page of rows, each with what belongs to it. Without `sort` they come by key, whatever the `direction`."""
        order = [] if sort is None else [Order(sort, direction)]
        query = Query([], order, UNSET if limit is None else limit, offset)

        def work(session: Session) -> tuple[list[Branch], Loading]:
            loading = self._manager.loading(session)
            with session.reading():
                return loading.attach(self.table, session.records(self.table, query), include or {}), loading

        rows, loading = await self._manager.database.perform(work)
        self._manager.announce(loading.loaded)
        return rows

    async def link(self, key: Key, relation: str, target: Key) -> bool:
        """Link a row to a related one, unless they are linked; whether they were not.

        Neither row has to be there. Raises `RelationError`: UNKNOWN_RELATION, or NOT_THROUGH for a relation without a
        table of its own for links; `DatabaseError` VALIDATION if that table needs more than the two keys.
        """
        through = self._through(relation)

        def work(session: Session) -> bool:
            layout, pair = _pair(session, through, key, target)
            with session.writing(atomic=True):
                if session.select(layout, pair, limit=1):
                    return False
                session.add(through.through, [{through.source: key, through.target: target}])
                return True

        linked = await self._manager.database.perform(work)
        if linked:
            self.emitter.emit("link", key, relation)
        return linked

    async def unlink(self, key: Key, relation: str, target: Key) -> int:
        """Remove every link of a row to a related one; how many there were. Raises as `link` does."""
        through = self._through(relation)

        def work(session: Session) -> int:
            layout, pair = _pair(session, through, key, target)
            with session.writing(atomic=True):
                links = [row[layout.schema.primary] for row in session.select(layout, pair)]
                return sum(session.remove(through.through, links))

        unlinked = await self._manager.database.perform(work)
        self.emitter.emit("unlink", key, relation)
        return unlinked

    async def links(self, key: Key, relation: str) -> list[Key]:
        """The keys that a row is linked to, in the order of the links' own keys. Raises as `link` does."""
        through = self._through(relation)
        own = Condition(through.source, "equals", [key])

        def work(session: Session) -> list[Any]:
            layout = session.layout(through.through)
            rows = session.select(layout, compile_conditions([own], layout))
            return [row[through.target] for row in rows if through.target in row]

        return await self._manager.database.perform(work)

    def _through(self, name: str) -> ResolvedRelation:
        relation = self.relations.get(name)
        if relation is None:
            raise unknown_relation(self.name, name, self.relations)
        if relation.relationship != "through":
            raise RelationError(
                "NOT_THROUGH",
                f"the relation {name!r} of {self.name!r} is {relation.relationship}; one through a table has links",
                {"model": self.name, "relation": name},
            )
        return relation


def _pair(session: Session, through: ResolvedRelation, key: Key, target: Key) -> tuple[Layout, Sequence[Comparison]]:
    """The links between two rows."""
    layout = session.layout(through.through)
    ends = [Condition(through.source, "equals", [key]), Condition(through.target, "equals", [target])]
    return layout, compile_conditions(ends, layout)
