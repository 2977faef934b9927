"""Seams: places that others may fill, who fills them, and which of those is chosen.

A seam has a definition (a Protocol, or the type of a function), providers and a consumer, who gets a provider from the
seam and never names one in its code. There are two kinds:

- `named`: any number of providers, each under a name of its own. A configuration chooses; a single one needs no choice.
- `sole`: one provider and no second.

A distribution provides by an entry point (PyPA's entry points specification) in the group of the seam, which is
`greenroom.` and the seam's name, as in::

    [project.entry-points."greenroom.llm"]
    echo = "greenroom_echo:open_echo"

What is provided there is imported when it is chosen and not before, so that a broken one harms nobody who does not use
it, and whoever does is told whose it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, Generic, Literal, NamedTuple, TypeAlias, TypeVar, cast, final

from greenroom.protocol.errors import GreenroomError, SeamError

__all__ = ["OURS", "Seam", "SeamKind", "add_installed", "check_groups", "group_of"]

P = TypeVar("P")

SeamKind: TypeAlias = Literal["named", "sole"]

OURS: Final = "greenroom"
"""Whose a provider is that comes with the seam."""


class _Provider(NamedTuple):
    load: Callable[[], Any]
    by: str


@final
class Seam(Generic[P]):
    """The providers of one seam; `P` is what each of them is.

    What it raises is a `SeamError` that names the seam and, where there is one, the provider and whose it is.
    """

    def __init__(self, name: str, kind: SeamKind = "named") -> None:
        self.name = name
        self.kind: SeamKind = kind
        self._providers: dict[str, _Provider] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """Of all providers, in the order in which they came."""
        return tuple(self._providers)

    def by(self, name: str) -> str:
        """Whose the provider of that name is: a distribution and its version, or greenroom."""
        return self._found(name).by

    def provide(self, name: str, provider: P, *, by: str = OURS) -> Callable[[], None]:
        """Fill the seam under a name; what comes back ends that, and may be called again.

        Raises DUPLICATE_PROVIDER for a name that is taken and, where there is a sole one, for a second of any name.
        """
        return self.provide_from(name, lambda: provider, by=by)

    def provide_from(self, name: str, load: Callable[[], Any], *, by: str = OURS) -> Callable[[], None]:
        """The same with a provider that `load()` gives when it is chosen."""
        if name in self._providers:
            owner = self._providers[name].by
            raise self._refusal(
                f"Two providers of the seam {self.name} would be called {name}, of {owner} and of {by}. "
                "Uninstall one of these, or give one another name.",
                name,
                by,
            )
        if self.kind == "sole" and self._providers:
            ((taken, (_, owner)),) = self._providers.items()
            raise self._refusal(
                f"The seam {self.name} has one provider, which is {taken} of {owner}: end that before {name} of {by} "
                "can take its place.",
                name,
                by,
            )
        entry = self._providers[name] = _Provider(load, by)

        def close() -> None:
            if self._providers.get(name) is entry:
                del self._providers[name]

        return close

    def choose(self, name: str | None = None) -> P:
        """The provider of that name; without one the only provider there is.

        Raises NO_PROVIDER (context `known`), PROVIDER_AMBIGUOUS (`known`), and BROKEN_PROVIDER for one that cannot be
        loaded. Loading may block, as imports do.
        """
        if name is None:
            if len(self._providers) > 1:
                raise SeamError(
                    "PROVIDER_AMBIGUOUS",
                    f"The seam {self.name} has several providers: choose one of {', '.join(self.names)}.",
                    {"seam": self.name, "known": list(self.names)},
                )
            name = next(iter(self._providers), "")
        found = self._found(name)
        try:
            return cast("P", found.load())
        except Exception as error:
            raise self.broken(name, error) from error

    def broken(self, name: str, error: Exception) -> GreenroomError:
        """What to raise where the provider of that name raised: the very error if it is one of ours, else a
        BROKEN_PROVIDER that says whose fault it is."""
        if isinstance(error, GreenroomError):
            return error
        by = self._found(name).by
        return SeamError(
            "BROKEN_PROVIDER",
            f"The provider {name} of the seam {self.name} cannot be used: {type(error).__name__}: {error}. It belongs "
            f"to {by}: repair or uninstall that, or choose another of {', '.join(self.names)}.",
            {"seam": self.name, "provider": name, "by": by},
        )

    def _refusal(self, message: str, name: str, by: str) -> SeamError:
        return SeamError("DUPLICATE_PROVIDER", message, {"seam": self.name, "provider": name, "by": by})

    def _found(self, name: str) -> _Provider:
        found = self._providers.get(name)
        if found is None:
            known = ", ".join(self.names) or "none"
            raise SeamError(
                "NO_PROVIDER",
                f"The seam {self.name} has no provider{f' {name}' if name else ''}; there are: {known}. A distribution "
                f"adds one by an entry point in the group {group_of(self.name)}.",
                {"seam": self.name, "provider": name or None, "known": list(self.names)},
            )
        return found


def group_of(seam: str) -> str:
    """The group of entry points in which distributions provide for the seam."""
    return f"greenroom.{seam}"


def add_installed(seam: Seam[Any]) -> None:
    """Add what installed distributions provide for a seam whose providers are functions. Reads their metadata, and
    blocks meanwhile; nothing of theirs is imported.

    Raises `SeamError` DUPLICATE_PROVIDER, which names both distributions, for a name that two of them give.
    """
    for point in entry_points(group=group_of(seam.name)):
        seam.provide_from(point.name, partial(_loaded, point), by=_owner(point))


def check_groups(seams: Collection[str]) -> None:
    """Raise `SeamError` NO_PROVIDER where an installed distribution provides for a seam that is none of these: most
    likely it is one that was renamed, or is misspelled. Blocks as `add_installed` does."""
    for group in sorted(entry_points().groups):
        seam = group.removeprefix("greenroom.")
        if seam != group and seam not in seams:
            (point, *_) = entry_points(group=group)
            raise SeamError(
                "NO_PROVIDER",
                f"{_owner(point)} provides {point.name} for a seam {seam}, which there is not: there are "
                f"{', '.join(seams)}. Uninstall or correct it.",
                {"seam": seam, "provider": point.name, "by": _owner(point), "known": list(seams)},
            )


def _loaded(point: EntryPoint) -> Any:
    provider = point.load()
    if not callable(provider):
        raise TypeError(f"{point.value} is no function")
    return provider


def _owner(point: EntryPoint) -> str:
    return "an unknown distribution" if point.dist is None else f"{point.dist.name} {point.dist.version}"
