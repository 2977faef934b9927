"""Reading the file: everything that is wrong with it at once, and for each the key that was probably meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from greenroom.actors.config.tables import TABLES, Config
from greenroom.actors.config.toml import read_toml
from greenroom.protocol.errors import ConfigError

__all__ = ["load_config", "override", "read_config"]

_NEAR: Final = 3
"""How many letters a key may differ from the one that was meant."""


def load_config(path: Path) -> Config:
    """The configuration in a TOML file. Raises ConfigError FILE, TOML, and what `read_config` raises."""
    return read_config(read_toml(path, what=f"The configuration {path}", code="TOML"))


def read_config(document: Mapping[str, Any]) -> Config:
    """The configuration that the tables of a document spell; what is not given has its default.

    Raises ConfigError CONFIG_UNKNOWN_KEY with every unknown table and key (context `keys`: where each stands, and the
    `nearest` one if any is near), CONFIG_VALUE for a value that a key cannot have, and CONFIG_CONFLICT for two keys
    that do not fit.
    """
    unknown = list(_unknown(document))
    if unknown:
        told = [f"{path} (did you mean {near}?)" if near is not None else path for path, near in unknown]
        raise ConfigError(
            "CONFIG_UNKNOWN_KEY",
            f"There is no {', no '.join(told)}. `greenroom config explain` lists what there is.",
            {"keys": [{"key": path, "nearest": near} for path, near in unknown]},
        )
    try:
        config = msgspec.convert(dict(document), Config)
    except msgspec.ValidationError as error:
        raise ConfigError("CONFIG_VALUE", f"The configuration cannot be used: {_said(error)}.") from None
    _check(config)
    return config


def override(config: Config, **tables: Mapping[str, object]) -> Config:
    """The configuration with these keys of these tables in place of its own; None leaves a key as it is.

    Raises what `read_config` raises.
    """
    document: dict[str, Any] = msgspec.to_builtins(config)
    for name, keys in tables.items():
        given = {key: _plain(value) for key, value in keys.items() if value is not None}
        if given:
            document[name] = {**(document[name] or {}), **given}
    return read_config(document)


def _plain(value: object) -> object:
    """What was given at a command line, as a file would spell it."""
    if isinstance(value, Path):
        return str(value)
    return [str(each) for each in cast("list[object]", value)] if isinstance(value, list) else value


def _unknown(document: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Every table and key that does not exist, with the nearest one that does."""
    for name, table in document.items():
        struct = TABLES.get(name)
        if struct is None:
            yield f"[{name}]", _bracketed(_nearest(name, TABLES))
        elif isinstance(table, dict):
            keys = _keys_of(struct)
            for key in cast("dict[str, Any]", table):
                if key not in keys:
                    near = _nearest(key, keys)
                    yield f"{name}.{key}", None if near is None else f"{name}.{near}"


def _keys_of(struct: type[Struct]) -> list[str]:
    """The keys of a table."""
    return [field.encode_name for field in msgspec.structs.fields(struct)]


def _nearest(word: str, known: Mapping[str, object] | list[str]) -> str | None:
    """The known word that differs in the fewest letters, if in no more than three."""
    near = [(distance, each) for each in known if (distance := _distance(word, each)) <= _NEAR]
    return min(near)[1] if near else None


def _distance(one: str, other: str) -> int:
    """How many letters to insert, delete or replace (Levenshtein); more than is near, for words of other lengths."""
    if abs(len(one) - len(other)) > _NEAR:
        return _NEAR + 1
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, 1):
        before, row[0] = row[0], number
        for place, against in enumerate(other, 1):
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, before + (letter != against))
    return row[-1]


def _bracketed(name: str | None) -> str | None:
    return None if name is None else f"[{name}]"


def _said(error: msgspec.ValidationError) -> str:
    """msgspec's words with the key as the file has it: `gateway.port` for `$.gateway.port`."""
    what, _, where = str(error).partition(" - at `")
    place = where.removesuffix("`").removeprefix("$").removeprefix(".")
    return f"{place}: {what[:1].lower()}{what[1:]}" if place else what


def _check(config: Config) -> None:
    gateway = config.gateway
    if (gateway.cert is None) != (gateway.key is None):
        raise ConfigError(
            "CONFIG_CONFLICT", "TLS needs a certificate and its key: give both gateway.cert and gateway.key."
        )
    names = config.terminals.names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ConfigError("CONFIG_CONFLICT", f"terminals.names has {twice} twice: there can be one terminal of a name.")
