"""The relations between the tables of a database."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from greenroom.actors.database import Database, Session
from greenroom.actors.relation.loading import Loaded, Loading
from greenroom.actors.relation.model import Model
from greenroom.protocol.database import TableSchema
from greenroom.protocol.emitter import ErrorHandler
from greenroom.protocol.errors import RelationError
from greenroom.protocol.relations import Relations, ResolvedRelation, resolve_relation_map

__all__ = ["RelationManager"]


@final
class RelationManager:
    """Models over the tables of a database.

    ::

        shop = RelationManager(database, {
            "accounts": {
                "contacts": ["account"],                                    # many, by contacts.account
                "boss": belongs_to("owner", "contacts"),                    # by accounts.owner
                "tags": has_through("account_tags", "account", "tag"),      # linked by a table between
            },
        })
        ada = await shop.model("accounts").load("ada", {"contacts": True, "tags": True})

    Nothing is loaded that is not asked for, and no change reaches a related row. Every related table, and every table
    between, has to be declared in the database; column names are taken as they are, and a wrong one matches nothing.
    With `strict` they have to be there as well, the table of each entry too, and an include that names no relation is
    refused. `most` bounds how many related rows a call attaches (None: no bound); one that would attach more raises
    `RelationError` LIMIT. `error(exception, event)` hears what listeners raise.

    Raises `RelationError` INVALID, with `relation`, and `model` and `table` where one is at fault.
    """

    def __init__(
        self,
        database: Database,
        relations: Relations | None = None,
        *,
        strict: bool = False,
        most: int | None = None,
        error: ErrorHandler | None = None,
    ) -> None:
        self.database: Final = database
        self._relations: Final = resolve_relation_map({} if relations is None else relations)
        self._strict = strict
        self._most = most
        self._error = error
        self._models: dict[str, Model] = {}
        tables = database.schemas
        for model, named in self._relations.items():
            for relation in named.values():
                self._check(model, relation, tables, strict)

    @property
    def count(self) -> int:
        """How many tables have an entry."""
        return len(self._relations)

    def models(self) -> list[str]:
        """The tables that have an entry, if an empty one, in their order."""
        return list(self._relations)

    def has(self, name: str) -> bool:
        """Whether the table has an entry."""
        return name in self._relations

    def model(self, name: str) -> Model:
        """The model of a declared table, with an entry or without. Raises `DatabaseError` NOT_FOUND for another one."""
        found = self._models.get(name)
        if found is None:
            self.database.table(name)
            found = self._models[name] = Model(self, name, self._relations.get(name, {}), self._error)
        return found

    # ---------------------------------------------------------------- what its models use

    def loading(self, session: Session) -> Loading:
        """The loading of one call."""
        return Loading(session, self._relations, strict=self._strict, most=self._most)

    def announce(self, loaded: Iterable[Loaded]) -> None:
        """Tell the models' listeners what was loaded."""
        for table, relation, attached in loaded:
            model = self._models.get(table)  # one that nobody has made has no listeners
            if model is not None:
                model.emitter.emit("load", relation, attached)

    def _check(self, model: str, relation: ResolvedRelation, tables: dict[str, TableSchema], strict: bool) -> None:
        between = [relation.through] if relation.relationship == "through" else []
        for table in (relation.model, *between, *([model] if strict else [])):
            if table not in tables:
                known = ", ".join(sorted(tables)) or "none"
                raise _invalid(model, relation, table, f"there is no table {table!r}; there are: {known}")
        if strict:
            for table, column in _columns(model, relation):
                if tables[table].column(column) is None:
                    raise _invalid(model, relation, table, f"table {table!r} has no column {column!r}")
            if between and tables[relation.through].primary in (relation.source, relation.target):
                raise _invalid(
                    model, relation, relation.through, "its links have the key of one end, and would replace each other"
                )


def _columns(model: str, relation: ResolvedRelation) -> list[tuple[str, str]]:
    """The columns that a relation names, with their tables."""
    match relation.relationship:
        case "belongs":
            return [(model, relation.column)]
        case "many" | "one":
            return [(relation.model, relation.key)]
        case "through":
            return [(relation.through, relation.source), (relation.through, relation.target)]
        case "morph":
            return [(relation.model, relation.key), (relation.model, relation.tag)]


def _invalid(model: str, relation: ResolvedRelation, table: str, why: str) -> RelationError:
    return RelationError(
        "INVALID",
        f"the relation {relation.name!r} of {model!r}: {why}",
        {"model": model, "relation": relation.name, "table": table},
    )
