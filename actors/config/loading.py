"""Reading the file: everything that is wrong with it at once, and for each the key that was probably meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast, get_args, get_type_hints

import msgspec
from msgspec import Struct

from greenroom.actors.config.fitting import check
from greenroom.actors.config.nearest import nearest
from greenroom.actors.config.seams import SEAMS
from greenroom.actors.config.tables import REFERENCE, Config, SecretRef
from greenroom.actors.config.toml import read_toml
from greenroom.protocol.errors import ConfigError

__all__ = ["load_config", "override", "read_config"]


def load_config(path: Path) -> Config:
    """The configuration in a TOML file. Raises ConfigError FILE, TOML, and what `read_config` raises."""
    return read_config(read_toml(path, what=f"The configuration {path}", code="TOML"))


def read_config(document: Mapping[str, Any]) -> Config:
    """The configuration that the tables of a document spell; what is not given has its default.

    Raises ConfigError CONFIG_UNKNOWN_KEY with every unknown table and key (context `keys`: where each stands, and the
    `nearest` one if any is near), CONFIG_VALUE for a value that a key cannot have, and CONFIG_CONFLICT for two keys
    that do not fit.
    """
    faults = list(_faults(document, Config))
    unknown = [fault for fault in faults if not fault.secret]
    if unknown:
        raise ConfigError(
            "CONFIG_UNKNOWN_KEY",
            f"There is no {', no '.join(f'{fault.path}{fault.hint}' for fault in unknown)}. `greenroom config explain` "
            "lists what there is.",
            {"keys": [{"key": fault.path, "nearest": fault.nearest} for fault in unknown]},
        )
    if faults:
        keys = [fault.path for fault in faults]
        raise ConfigError(
            "CONFIG_SECRET",
            f"{' and '.join(keys)} must be the name of a credential, such as OPENAI_API_KEY: put the secret itself "
            "into the environment, or into the file that credentials.file names.",
            {"keys": keys},
        )
    config = _converted(document)
    if isinstance(config, str):  # raised out here, so that it does not carry an error that may quote a value
        raise ConfigError("CONFIG_VALUE", f"The configuration cannot be used: {config}.")
    check(config)
    return config


def _converted(document: Mapping[str, Any]) -> Config | str:
    """The configuration, or what is wrong with the first value that a key cannot have."""
    try:
        return msgspec.convert(dict(document), Config)
    except msgspec.ValidationError as error:
        return _said(error)


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


class _Fault(NamedTuple):
    """A table or a key that does not exist, or one that holds a secret where a name should stand."""

    path: str
    nearest: str | None = None
    secret: bool = False

    @property
    def hint(self) -> str:
        seam = SEAMS.get(self.path.strip("[]"))
        if seam is not None:
            return f" (that is a seam: {seam.chosen_by} chooses its provider, of {' '.join(seam.built_in)} and others)"
        return "" if self.nearest is None else f" (did you mean {self.nearest}?)"


def _faults(document: Mapping[str, Any], struct: type[Struct], within: str = "") -> Iterator[_Fault]:
    """Everything that is wrong with the keys of a table and of the tables in it; of values only misplaced secrets."""
    types = _types_of(struct)
    for key, value in document.items():
        alternatives = types.get(key, ())
        table = next((each for each in alternatives if isinstance(each, type) and issubclass(each, Struct)), None)
        if not alternatives:
            near = nearest(key, types)
            yield _Fault(_path(within, key), None if near is None else _path(within, near))
        elif table is not None and isinstance(value, dict):
            yield from _faults(cast("dict[str, Any]", value), table, f"{within}{key}.")
        elif SecretRef in alternatives and any(
            isinstance(each, str) and not REFERENCE.fullmatch(each)
            for each in (cast("list[object]", value) if isinstance(value, list) else [value])
        ):
            yield _Fault(_path(within, key), secret=True)


@cache
def _types_of(struct: type[Struct]) -> dict[str, tuple[Any, ...]]:
    """The keys of a table, and what each may be."""
    hints = get_type_hints(struct, include_extras=True)
    return {key: (hint, *get_args(hint)) for key, hint in hints.items()}


def _path(within: str, key: str) -> str:
    return f"{within}{key}" if within else f"[{key}]"


def _said(error: msgspec.ValidationError) -> str:
    """msgspec's words with the key as the file has it: `gateway.port` for `$.gateway.port`."""
    what, _, where = str(error).partition(" - at `")
    place = where.removesuffix("`").removeprefix("$").removeprefix(".")
    if what.startswith("Invalid enum value"):  # and then the value, which is not repeated
        return f"{place} has none of its values; `greenroom config explain {place}` lists them"
    return f"{place}: {what[:1].lower()}{what[1:]}" if place else what
