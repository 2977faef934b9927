"""Making text of a form safe to print at a terminal."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["display_line", "display_lines", "sanitize_display_text"]

# ECMA-48: a control sequence, a control string up to its end, any other escape; ESC and a letter, or the one-byte form.
# A string that is never ended only loses its introducer: what follows is text, up to where it might have ended. It is
# taken in one piece all the same, so that a text of nothing but introducers is not looked through from each of them.
_SEQUENCES: Final = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])(?P<string>[^\x07\x1b\x9c]*)(?P<end>\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"
)
_CONTROL_SEQUENCE: Final = re.compile(r"\x9b[0-?]*[ -/]*[@-~]")
# C0, DEL and C1; line and paragraph separators; embeddings, overrides and isolates of the bidirectional algorithm.
_CONTROLS: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def sanitize_display_text(text: str) -> str:
    """`text` without escape sequences and without characters that move the cursor or reorder what is read.

    For whatever a driver prints, mostly by way of the functions below: labels, helps, placeholders, masks, patterns,
    and names, values and messages. What is sent back as an answer is never passed through here.
    """
    return _CONTROLS.sub("", _SEQUENCES.sub(_left_of, text))


def _left_of(found: re.Match[str]) -> str:
    """What stays of a sequence: the text behind the introducer of a string that is never ended."""
    text = found["string"]
    return "" if text is None or found["end"] is not None else _CONTROL_SEQUENCE.sub("", text)


def display_lines(text: str) -> list[str]:
    """The lines of a text, each safe to print by itself.

    Joined, they might say something else: behind what begins a comment, the command in the next line would seem to be
    part of it. Whatever ends a line somewhere ends one here, and a tab is white space.
    """
    lines = ("\t".join(map(sanitize_display_text, line.split("\t"))) for line in text.splitlines())
    return [line.expandtabs() for line in lines]


def display_line(text: str) -> str:
    """A text where there is room for one line: as `display_lines`, with each break spelled out as a backslash and n."""
    return "\\n".join(display_lines(text))
