"""What an agent does with data: a schema from samples, rows with what belongs to them, and a note in a file.
`python examples/data.py`"""

import tempfile

import trio

import greenroom

TABLES = {
    "products": {"columns": {"id": "string", "name": "string", "price": "number"}},
    "reviews": {"columns": {"id": "string", "product": "string", "stars": "integer"}},
}
RELATIONS = {"products": {"reviews": greenroom.has_many("product")}}


async def main() -> None:
    async with greenroom.open_runtime() as runtime:
        with tempfile.TemporaryDirectory() as folder:
            shop = greenroom.Database(runtime.tree, greenroom.sqlite_driver(f"{folder}/shop.db"), TABLES)
            workspaces = greenroom.WorkspaceManager(runtime.tree)
            await workspaces.mount(folder, "notes")
            runtime.tools.add(
                [
                    greenroom.infer_tool(),
                    greenroom.database_tool(runtime.tree, databases={"shop": shop}),
                    greenroom.relation_tool({"shop": greenroom.RelationManager(shop, RELATIONS)}),
                    greenroom.workspace_tool(workspaces),
                ]
            )
            await use(runtime)
            await shop.close()


async def use(runtime: greenroom.Runtime) -> None:
    """Call each tool as a model does."""
    rows = [{"id": "w1", "name": "Widget", "price": 25}, {"id": "w2", "name": "Gadget", "price": 99.5}]
    schema = await runtime.tools.run("infer", {"samples": rows})
    print(schema["properties"]["price"])

    add = {"operation": "add", "id": "shop"}
    await runtime.tools.run("database", {**add, "table": "products", "row": rows})
    await runtime.tools.run("database", {**add, "table": "reviews", "row": {"id": "r1", "product": "w1", "stars": 5}})

    loaded = await runtime.tools.run(
        "relation", {"operation": "load", "model": "products", "key": "w1", "include": ["reviews"]}
    )
    print(loaded["row"])

    await runtime.tools.run("workspace", {"operation": "write", "path": "notes.md", "content": "Widget has 5 stars.\n"})
    print(await runtime.tools.run("workspace", {"operation": "search", "query": "stars"}))


trio.run(main)
