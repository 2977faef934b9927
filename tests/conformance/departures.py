"""The rules by which an answer may differ from a record: `departures.toml` and `additions.toml`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import msgspec

from tests.conformance import expects, predicates
from tests.conformance.comparison import Member

__all__ = ["Addition", "Departure", "Rules", "load_rules"]

HERE = Path(__file__).parent


class _Expect(msgspec.Struct, forbid_unknown_fields=True):
    """Exactly one of a literal (`json`, as TOML cannot write null) and a function of `expects.py`."""

    json: str | None = None
    function: str | None = None


class Departure(msgspec.Struct, forbid_unknown_fields=True):
    """Answers that differ on purpose: `rule` commands it, `when` says on which inputs, `expect` what is given instead.

    `ops` are the ops that the entry speaks of. `known` is the row that lists it among the known departures, if one
    does: an entry that no kept case uses must have one.
    """

    rule: str
    ops: list[str]
    when: str
    expect: _Expect
    known: str | None = None

    def __post_init__(self) -> None:
        if (self.expect.json is None) == (self.expect.function is None):
            raise ValueError(f"departure {self.rule!r}: `expect` takes one of `json` and `function`")
        # Unknown names and broken JSON are found when the file is read, not when a case comes that needs them.
        _named(predicates, self.when)
        if self.expect.function is not None:
            _named(expects, self.expect.function)
        else:
            self._literal()

    def applies(self, op: str, value: Any) -> bool:
        """Is this a departure for an op with this input? A predicate sees the input alone."""
        return op in self.ops and bool(_named(predicates, self.when)(value))

    def expected(self, value: Any, record: Any) -> Any:
        """The whole output that is given instead of `record`."""
        if self.expect.function is not None:
            return _named(expects, self.expect.function)(value, record)
        return self._literal()

    def _literal(self) -> Any:
        assert self.expect.json is not None, "checked when the entry was read"
        return json.loads(self.expect.json)


class Addition(msgspec.Struct, forbid_unknown_fields=True):
    """A member that is compared in no usual way; see `comparison.Member`. `path` is dotted."""

    op: str
    path: str
    kind: Literal["added", "uncompared", "set"]
    why: str


class Rules(msgspec.Struct):
    """All rules, in the order of the files."""

    departures: list[Departure]
    additions: list[Addition]

    def members(self, op: str) -> tuple[Member, ...]:
        """The members of this op's output that are compared in no usual way."""
        return tuple(Member(tuple(a.path.split(".")), a.kind) for a in self.additions if a.op == op)


class _DepartureFile(msgspec.Struct, forbid_unknown_fields=True):
    known: list[str]
    departure: list[Departure]

    def __post_init__(self) -> None:
        for entry in self.departure:
            if entry.known is not None and entry.known not in self.known:
                raise ValueError(f"departure {entry.rule!r}: no row of `known` reads {entry.known!r}")


class _AdditionFile(msgspec.Struct, forbid_unknown_fields=True):
    member: list[Addition]


def load_rules(folder: Path = HERE) -> Rules:
    """Read both files of `folder`. A malformed entry raises `msgspec.ValidationError` and names the place."""
    departures = msgspec.toml.decode((folder / "departures.toml").read_bytes(), type=_DepartureFile)
    additions = msgspec.toml.decode((folder / "additions.toml").read_bytes(), type=_AdditionFile)
    return Rules(departures.departure, additions.member)


def _named(module: Any, name: str) -> Callable[..., Any]:
    if name not in module.__all__:
        raise ValueError(f"{module.__name__} has no {name!r}; it has: {', '.join(module.__all__)}")
    function: Callable[..., Any] = getattr(module, name)
    return function
