"""Credentials: secrets by name, from the environment or else from a file that only its owner can read."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, final

from greenroom.actors.config.toml import read_toml
from greenroom.protocol.errors import ConfigError

__all__ = ["Credentials"]


@final
class Credentials(Mapping[str, str]):
    """Looks up each name when it is asked for: in the environment first, then in `file`, a TOML file of names and
    texts. What is empty counts as absent. Neither its repr nor its errors show a secret.

    Looking up may read the file, and blocks meanwhile. Raises ConfigError then: FILE for one that cannot be read,
    CREDENTIALS for one that others may read as well (chmod 600) or that holds anything but texts.
    """

    def __init__(
        self, file: str | os.PathLike[str] | None = None, *, environment: Mapping[str, str] = os.environ
    ) -> None:
        self._file = None if file is None else Path(file)
        self._environment = environment

    def __getitem__(self, name: str) -> str:
        if found := self._environment.get(name):
            return found
        if found := self._stored().get(name):
            return found
        raise KeyError("there is no credential of that name")

    def __iter__(self) -> Iterator[str]:
        names = [*self._environment, *self._stored()]
        return iter(dict.fromkeys(name for name in names if name in self))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"<Credentials of the environment{'' if self._file is None else f' and {self._file}'}>"

    def describe(self, name: str) -> Literal["environment", "file"] | None:
        """Where the credential comes from; None if there is none. The one of the environment hides that of the file."""
        if self._environment.get(name):
            return "environment"
        return "file" if self._stored().get(name) else None

    def _stored(self) -> Mapping[str, str]:
        if self._file is None:
            return {}
        document: dict[str, Any] = read_toml(self._file, what=f"The credentials in {self._file}", code="CREDENTIALS")
        if stat.S_IMODE(self._file.stat().st_mode) & 0o077:
            raise ConfigError(
                "CREDENTIALS", f"Others may read {self._file}, which is for one account: run chmod 600 {self._file}."
            )
        wrong = next((name for name, value in document.items() if not isinstance(value, str)), None)
        if wrong is not None:
            raise ConfigError("CREDENTIALS", f"{self._file} holds names and texts, and {wrong} is no text.")
        return document
