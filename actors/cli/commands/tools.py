"""`greenroom tools`, `call` and `infer`: which tools there are, calling one, and the schema of samples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.text import Text

from greenroom.actors.cli.composing import open_composition, read_settings
from greenroom.actors.cli.drawing import plain
from greenroom.actors.cli.files import parse_json, read_json, read_object
from greenroom.actors.cli.leaving import race, until_signalled
from greenroom.actors.cli.options import DEFAULT_URL, AsJson, JsonFile, Url
from greenroom.actors.cli.printing import print_json, screen
from greenroom.actors.cli.reach import reach
from greenroom.actors.cli.results import print_note, print_result, print_table
from greenroom.actors.toolbox.infer import infer_tool
from greenroom.protocol.errors import ConfigError, ToolError
from greenroom.protocol.tools import ToolDefinition, ToolFailure

__all__ = ["call", "infer", "tools"]


async def tools(
    name: str | None = None, /, *, config: Path | None = None, json_: AsJson = False, url: Url = DEFAULT_URL
) -> int:
    """List the tools that can be called, or show what one of them takes.

    They are called with `greenroom call`.

        greenroom tools workspace

    Parameters
    ----------
    name
        The tool to show; all of them are listed without it.
    config
        List what `greenroom serve --config` with this file would offer, instead of asking a gateway.
    """
    if config is not None:
        async with open_composition(await read_settings(config), recorded=False) as runtime:
            listed = tuple(runtime.tools.definitions())
    else:
        async with reach(url) as client:
            listed = await client.tools()
    if name is None:
        if json_:
            print_json(listed)
        elif listed:
            print_table(("tool", "what it does"), ((tool.name, tool.description or "") for tool in listed))
        else:
            print_note("There are no tools that may be called.")
        return 0
    tool = next((tool for tool in listed if tool.name == name), None)
    if tool is None:
        known = ", ".join(each.name for each in listed) or "none"
        raise ConfigError("TOOL", f"There is no tool {name} that may be called; there are: {known}.", {"tool": name})
    if json_:
        print_json(tool)
    else:
        _show(tool)
    return 0


def _show(tool: ToolDefinition) -> None:
    screen().print(Text.assemble((plain(tool.name), "bold"), "  ", plain(tool.description or "")))
    schema = tool.parameters or {}
    rows: list[tuple[str, str, str, str]] = []
    for name, part in schema.get("properties", {}).items():
        first, *more = str(part.get("description", "")).split("\n")
        rows.append((name, _type(part), "yes" if name in schema.get("required", ()) else "", first))
        rows += [("", "", "", line) for line in more]
    print_table(("argument", "type", "needed", "what it is"), rows)


def _type(schema: dict[str, Any]) -> str:
    """A schema in a word or two."""
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_type(each) for each in schema["anyOf"]))
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}" if schema.get("items") else "list"
    if "enum" in schema and "type" not in schema:
        return " | ".join(json.dumps(member, ensure_ascii=False) for member in schema["enum"])
    return str(schema.get("type", "anything"))


async def call(
    name: str,
    arguments: Annotated[str, Parameter(allow_leading_hyphen=True)] = "{}",
    /,
    *,
    json_: AsJson = False,
    url: Url = DEFAULT_URL,
) -> int:
    """Call a tool and print what it returns.

    Rows are printed as a table, text as it is, everything else as JSON. Ctrl-C and SIGTERM cancel the call.

        greenroom call describe '{"name": "describe"}'

    Exits with 0 when it succeeded, and 1 when it failed.

    Parameters
    ----------
    name
        The tool, as `greenroom tools` lists it.
    arguments
        Its arguments: a JSON object, or a file with one, or - for standard input.
    """
    given = await _arguments(arguments)

    async def run() -> int:
        async with reach(url) as client:
            result = await client.call_tool(name, given)
        if isinstance(result, ToolFailure):
            raise ToolError("TOOL", result.error)
        if json_:
            print_json(result.value)
        else:
            print_result(result.value)
        return 0

    return await race(run, until_signalled)


async def _arguments(spelled: str) -> dict[str, Any]:
    if not spelled.lstrip().startswith("{"):
        given = await read_object(Path(spelled))
    else:
        try:
            given = parse_json(spelled)
        except (ValueError, RecursionError) as error:
            raise ConfigError("JSON", f"The arguments are no JSON: {error}.") from None
    if given is None:
        raise ConfigError("ARGUMENTS", f"{spelled} holds no arguments: they are a JSON object, names to values.")
    return given


async def infer(
    samples: JsonFile,
    /,
    *,
    format: Annotated[bool, Parameter(negative=())] = False,
    enum: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Print the JSON Schema that samples have in common.

    It needs no gateway.

        echo '[{"a": 1}, {"a": 2, "b": null}]' | greenroom infer -

    Parameters
    ----------
    samples
        A file with a JSON list of at least one sample, or - for standard input.
    format
        Name the format of texts that all look alike.
    enum
        List the values of members that repeat few of them.
    """
    given = await read_json(samples)
    if not isinstance(given, list):
        raise ConfigError("SAMPLES", f"{samples} holds no samples: they are a JSON list, one sample an entry.")
    print_json(await infer_tool().execute({"samples": given, "format": format, "enum": enum}))
    return 0
