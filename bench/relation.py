"""Relations: how many statements it takes to load what belongs to a hundred rows. `data` declares the figure."""

from __future__ import annotations

from greenroom.actors.database import Database
from greenroom.actors.database.sqlite import SqliteStorage
from greenroom.actors.relation import RelationManager
from greenroom.protocol.relations import has_many
from greenroom.runtime.tree import run_tree

__all__ = ["two_levels"]

ACCOUNTS = 100
TABLES = {
    "accounts": {"columns": {"id": "string"}},
    "contacts": {"columns": {"id": "string", "account": "string"}},
    "notes": {"columns": {"id": "string", "contact": "string"}},
}
RELATIONS = {"accounts": {"contacts": has_many("account")}, "contacts": {"notes": has_many("contact")}}


async def two_levels() -> float:
    """Statements that read rows, for a hundred rows with their contacts and the notes of those."""
    statements: list[str] = []
    storage = SqliteStorage()
    async with run_tree() as tree:
        database = Database(tree, storage, TABLES, indexes={"contacts": [["account"]], "notes": [["contact"]]})
        await database.table("accounts").add([{"id": f"a{number:03}"} for number in range(ACCOUNTS)])
        contacts = [{"id": f"c{number:03}", "account": f"a{number // 3:03}"} for number in range(3 * ACCOUNTS)]
        await database.table("contacts").add(contacts)
        await database.table("notes").add(
            [{"id": f"n{number:04}", "contact": f"c{number // 2:03}"} for number in range(600)]
        )
        model = RelationManager(database, RELATIONS).model("accounts")
        storage.database.conn.set_trace_callback(statements.append)
        rows = await model.find({"contacts": {"notes": True}})
        storage.database.conn.set_trace_callback(None)
    assert sum(len(contact["notes"]) for row in rows for contact in row["contacts"]) == 600
    return sum(statement.startswith("SELECT") for statement in statements)
