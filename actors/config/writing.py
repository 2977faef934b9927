"""A configuration as the TOML file that spells it out, defaults included."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from datetime import date, datetime, time
from typing import Any, Final, cast

from msgspec import Struct

from greenroom.actors.config.tables import TABLES, Config, table_of

__all__ = ["config_toml"]

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def config_toml(config: Config, *, withheld: str = "") -> Iterator[str]:
    """The lines of a file that is read as the same configuration.

    A table that is not there, and a key that is not set, are comments: TOML has no null. What no eye sees in a text is
    spelled out. `withheld` is what stands in a name's place that must not be shown; it is said in comments too.
    """
    for name, struct in TABLES.items():
        table = table_of(config, name)
        yield f"[{name}]" if table is not None else f"# [{name}] is not there"
        for key in struct.__struct_fields__ if table is not None else ():
            value = getattr(table, key)
            if isinstance(value, Struct) or f"{name}.{key}" in TABLES:
                continue  # it has lines of its own
            yield f"# {key} is not set" if value is None else _line(key, value, withheld)
        yield ""


def _line(key: str, value: Any, withheld: str) -> str:
    if withheld and value == withheld:
        return f"# {key} = {withheld}"
    if withheld and isinstance(value, list | tuple) and withheld in value:
        names = cast("tuple[Any, ...]", value)
        shown = [each for each in names if each != withheld]
        return f"{key} = {_value(shown)}  # and {len(names) - len(shown)} of {withheld}"
    return f"{key} = {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return f"{{{', '.join(f'{_key(key)} = {_value(each)}' for key, each in members)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, cast('tuple[Any, ...]', value)))}]"
    return repr(value)  # a number


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    """A basic string (TOML 1.0, section String): JSON's, but for characters beyond the first 65,536."""
    return f'"{"".join(map(_character, text))}"'


def _character(each: str) -> str:
    if each.isprintable() and each not in '"\\':
        return each
    return json.dumps(each)[1:-1] if each < "\x7f" else f"\\U{ord(each):08x}"
