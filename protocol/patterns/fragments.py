"""Expressions for RE2 that mean what ECMAScript means, put together from the inside out.

RE2 and ECMAScript prefer the same match among several (leftmost, then first alternative, then longest or shortest
repeat) but for one rule: past its minimum, an ECMAScript repeat never takes a turn that consumes nothing; it goes on
to the turn's next alternative instead (`RepeatMatcher`, ECMA-262 22.2.2.3.1). `(?:|a)*` finds all of `aaa` there, and
the empty text in RE2 and Perl. So a fragment that can match without consuming knows its *ways*: the alternatives it
comes down to, preferred first, each of which always consumes or never does. Only the consuming ones are repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Final

import msgspec

from greenroom.protocol.errors import PatternError
from greenroom.protocol.patterns.units import Units, expression

__all__ = ["EMPTY", "Fragment", "assertion", "choose", "join", "one_of", "repeat", "too_large"]

MAX_COPIES: Final = 5000
"""How many positions a pattern may have that its source does not spell out: `(?:ab){10}` spells 2 and copies 18."""

MAX_SOURCE: Final = 200_000
"""How long an expression may become."""

_ENGINE_REPEAT: Final = 1000
"""RE2 takes no larger count, nor nested counts with a larger product."""

_SUFFIXES: Final[dict[tuple[int, int | None], str]] = {(0, None): "*", (1, None): "+", (0, 1): "?"}

_MAX_WAYS: Final = 20_000
"""How much text the ways of one fragment may come to."""


class Binding(IntEnum):
    """How tightly an expression holds together."""

    CHOICE = 0
    SEQUENCE = 1
    ATOM = 2


class Fragment(msgspec.Struct, frozen=True):
    """An RE2 expression with what must be known to repeat it."""

    source: str
    binding: Binding
    consumes: bool
    """It never matches without taking a unit."""
    ways: tuple[Fragment, ...] | None = ()
    """What it comes down to if it may consume or not; `None` if that is too much to write out."""
    single: bool = False
    """It takes exactly one unit, in one way only."""
    size: int = 0
    """How many positions it has, all repeats written out."""
    spelled: int = 0
    """How many of them the pattern's source spells out."""
    product: int = 1
    """The largest product of nested counts."""

    @property
    def copies(self) -> int:
        """How many positions are owed to repeats."""
        return self.size - self.spelled

    def within(self, binding: Binding) -> str:
        """The source, in a group if it would fall apart among neighbours that bind this tightly."""
        return self.source if self.binding >= binding else f"(?:{self.source})"


EMPTY: Final = Fragment("", Binding.SEQUENCE, consumes=False)


def too_large(what: str) -> PatternError:
    """The refusal of a pattern that is sound but has no program of a reasonable size."""
    return PatternError(
        "REPEAT",
        f"The pattern is too large to be matched in linear time: {what}. Use smaller counts, or `*` and `+` with a"
        " length limit beside the pattern.",
    )


def one_of(units: Units) -> Fragment:
    """One unit of the set."""
    return Fragment(expression(units), Binding.ATOM, consumes=True, single=True, size=1, spelled=1)


def assertion(source: str) -> Fragment:
    """A condition on a place in the text."""
    return Fragment(source, Binding.ATOM, consumes=False)


def join(parts: Iterable[Fragment]) -> Fragment:
    """One after another."""
    parts = [part for part in parts if part is not EMPTY]
    if len(parts) < 2:
        return parts[0] if parts else EMPTY
    joined = _join(parts)
    return joined if joined.consumes else msgspec.structs.replace(joined, ways=_ways_of_sequence(parts))


def choose(alternatives: Sequence[Fragment]) -> Fragment:
    """One or the other, the first that leads to a match."""
    if len(alternatives) == 1:
        return alternatives[0]
    chosen = _choose(alternatives)
    if chosen.consumes:
        return chosen
    ways: list[Fragment] = []
    for alternative in alternatives:
        if alternative.ways is None:
            return msgspec.structs.replace(chosen, ways=None)
        ways.extend(alternative.ways or (alternative,))
    return msgspec.structs.replace(chosen, ways=_distinct(ways))


def repeat(fragment: Fragment, low: int, high: int | None, *, lazy: bool) -> Fragment:
    """The fragment from `low` to `high` times, without end if `high` is `None`; the more the better unless `lazy`.

    Raises `PatternError` REPEAT where that has no expression, or none of a reasonable size.
    """
    if high == 0:
        return EMPTY
    if fragment.consumes:
        counted = _count(fragment, low, high, lazy)
        if low > 0:
            return counted
        some = _count(fragment, 1, high, lazy)
        return msgspec.structs.replace(counted, ways=(EMPTY, some) if lazy else (some, EMPTY))
    required = _require(fragment, low)
    if high == low:
        return required
    if fragment.ways is None:
        raise too_large("a repeat stands around too many parts that may be absent")
    consuming = [way for way in fragment.ways if way.consumes]
    if not consuming:
        return required
    rest = None if high is None else high - low
    optional = repeat(_choose(consuming), 0, rest, lazy=lazy)
    return _sized(msgspec.structs.replace(join([required, optional]), spelled=fragment.spelled))


def _join(parts: Sequence[Fragment]) -> Fragment:
    source = "".join(part.within(Binding.SEQUENCE) for part in parts)
    return _sum(source, Binding.SEQUENCE, parts, any(part.consumes for part in parts))


def _choose(alternatives: Sequence[Fragment]) -> Fragment:
    if len(alternatives) == 1:
        return alternatives[0]
    source = "|".join(alternative.source for alternative in alternatives)
    return _sum(source, Binding.CHOICE, alternatives, all(alternative.consumes for alternative in alternatives))


def _sum(source: str, binding: Binding, parts: Sequence[Fragment], consumes: bool) -> Fragment:
    return _sized(
        Fragment(
            source,
            binding,
            consumes,
            size=sum(part.size for part in parts),
            spelled=sum(part.spelled for part in parts),
            product=max(part.product for part in parts),
        )
    )


def _sized(fragment: Fragment) -> Fragment:
    """The fragment, if it is not too large."""
    if fragment.copies > MAX_COPIES:
        raise too_large(
            f"its repeats come to {fragment.copies} more positions than it spells, the limit is {MAX_COPIES}"
        )
    if len(fragment.source) > MAX_SOURCE:
        raise too_large("it is too long when written out")
    return fragment


def _ways_of_sequence(parts: Sequence[Fragment]) -> tuple[Fragment, ...] | None:
    """The ways of a sequence in which no part must consume: from the last part on, each way before all that follow."""
    if not any(part.ways or part.ways is None for part in parts):
        return ()
    rest = EMPTY
    ways: tuple[Fragment, ...] = (EMPTY,)
    for part in reversed(parts):
        if part.ways is None:
            return None
        longer: list[Fragment] = []
        for way in part.ways or (part,):
            if way.consumes:
                longer.append(_join((way, rest)))
            else:
                longer.extend(ways if way is EMPTY else (_join((way, other)) for other in ways))
        distinct = _distinct(longer)
        if distinct is None:
            return None
        rest, ways = _join((part, rest)), distinct
    return ways


def _distinct(ways: Iterable[Fragment]) -> tuple[Fragment, ...] | None:
    """The ways without those that lead nowhere an earlier one has not led; `None` if they are too long together."""
    kept: dict[str, Fragment] = {}
    for way in ways:
        if way.consumes or "" not in kept:
            kept.setdefault(way.source, way)
    return None if sum(map(len, kept)) > _MAX_WAYS else tuple(kept.values())


def _require(fragment: Fragment, count: int) -> Fragment:
    """Exactly `count` turns of a fragment that may consume nothing."""
    if count == 0:
        return EMPTY
    if fragment.ways is not None and not any(way.consumes for way in fragment.ways):
        return fragment  # A condition that holds once holds as often as one likes.
    required = _count(fragment, count, count, lazy=False)
    if count == 1:
        return required
    return msgspec.structs.replace(required, ways=_ways_of_sequence([fragment] * count))


def _count(fragment: Fragment, low: int, high: int | None, lazy: bool) -> Fragment:
    """The repeat as RE2 has it, in blocks where RE2 refuses the count."""
    if low == high == 1:
        return fragment
    suffix = _SUFFIXES.get((low, high))
    if suffix is None:
        return _count_in_blocks(fragment, low, high, lazy)
    source = fragment.within(Binding.ATOM) + suffix + ("?" if lazy else "")
    return _sum(source, Binding.SEQUENCE, [fragment], fragment.consumes and low > 0)


def _count_in_blocks(fragment: Fragment, low: int, high: int | None, lazy: bool) -> Fragment:
    most = low if high is None else high
    counted = _sized(
        Fragment(
            "",
            Binding.SEQUENCE,
            fragment.consumes and low > 0,
            size=fragment.size * most,
            spelled=fragment.spelled,
            product=fragment.product,
        )
    )
    atom = fragment.within(Binding.ATOM)
    block = max(_ENGINE_REPEAT // fragment.product, 1)
    mark = "?" if lazy else ""
    if most <= block:
        bounds = f"{low}" if low == high else f"{low}," if high is None else f"{low},{high}"
        source = f"{atom}{{{bounds}}}{mark if low != high else ''}"
    else:
        optional = most - low
        if lazy and optional > block and not fragment.single:
            # Blocks would try every short repeat of the later blocks before one more turn of the first.
            raise too_large(f"a lazy repeat of a group may range over {block} counts at most")
        source = "".join(f"{atom}{{{size}}}" for size in _blocks(low, block))
        source += "".join(f"{atom}{{0,{size}}}{mark}" for size in _blocks(optional, block))
        source += f"{atom}*{mark}" if high is None else ""
    product = fragment.product * min(most, block)
    return _sized(msgspec.structs.replace(counted, source=source, product=product))


def _blocks(total: int, block: int) -> list[int]:
    full, rest = divmod(total, block)
    return [block] * full + [rest] * (rest > 0)
