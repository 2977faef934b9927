"""Text counted and cut by UTF-16 code units, as its positions count them.

A character beyond U+FFFF is two units, and a cut may go between them. The halves stay in the text as lone surrogates,
which no UTF-8 can hold; where an edit brings two halves together, they are one character again, as they would be in a
string that is made of units.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias, TypeVar

from greenroom.protocol.text import utf16_length

__all__ = ["Span", "find_lone_surrogate", "joined", "printable", "put_in"]

Span: TypeAlias = tuple[int, int]
"""Start and end, in units."""

Units = TypeVar("Units", str, bytes)

_ENCODING: Final = "utf-16-le"


def joined(text: str) -> str:
    """`text` with halves that stand side by side put together."""
    return text if find_lone_surrogate(text) is None else _decode(_encode(text))


def find_lone_surrogate(text: str) -> int | None:
    """The index of the first surrogate in `text`, if there is one."""
    if text.isascii():
        return None
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return error.start
    return None


def printable(text: str) -> str:
    """`text` with lone surrogates written out, so that it has a UTF-8 form."""
    return text.encode("utf-8", "backslashreplace").decode()


def put_in(text: str, spans: Iterable[Span], replacement: str) -> str:
    """`text` with each of the spans replaced. They ascend and do not overlap."""
    if utf16_length(text) == len(text):
        return joined("".join(_pieces(text, spans, replacement, 1)))
    return _decode(b"".join(_pieces(_encode(text), spans, _encode(replacement), 2)))


def _pieces(units: Units, spans: Iterable[Span], replacement: Units, width: int) -> Iterator[Units]:
    at = 0
    for start, end in spans:
        yield units[at : start * width]
        yield replacement
        at = end * width
    yield units[at:]


def _encode(text: str) -> bytes:
    return text.encode(_ENCODING, "surrogatepass")


def _decode(units: bytes) -> str:
    return units.decode(_ENCODING, "surrogatepass")
