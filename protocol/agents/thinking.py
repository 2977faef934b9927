"""Telling a model's reasoning from its answer where both come in one text, between `<think>` and `</think>`."""

from __future__ import annotations

from typing import Final, final

__all__ = ["ThinkSplitter"]

_OPEN: Final = "<think>"
_CLOSE: Final = "</think>"


@final
class ThinkSplitter:
    """Splits one text as it comes, however it was cut. `content` and `thinking` are the truth so far.

    Spans do not nest. Before any tag, a closing tag alone turns all that came so far into reasoning, since some
    templates open the span in the prompt; text that `split` has given out by then was no answer after all.
    """

    __slots__ = ("_content", "_held", "_tagged", "_thinking", "_within", "thought")

    def __init__(self) -> None:
        self.thought = ""
        """What of the last piece was reasoning."""
        self._content: list[str] = []
        self._thinking: list[str] = []
        self._within = False
        self._tagged = False
        self._held = ""
        """The end of what came, while it may yet become a tag."""

    @property
    def content(self) -> str:
        return "".join(self._content)

    @property
    def thinking(self) -> str:
        return "".join(self._thinking)

    def split(self, delta: str) -> str:
        """Take a piece; what of it, and of what was held back, is text for certain."""
        text, self._held, self.thought = self._held + delta, "", ""
        shown = ""
        while text:
            # Once a span was closed, a closing tag outside is text; before that it may end one that was never opened.
            tags = (_CLOSE,) if self._within else (_OPEN,) if self._tagged else (_OPEN, _CLOSE)
            at, tag = min(((found, tag) for tag in tags if (found := text.find(tag)) >= 0), default=(-1, ""))
            if at < 0:
                keep = max(_overlap(text, tag) for tag in tags)
                self._held = text[len(text) - keep :]
                return shown + self._take(text[: len(text) - keep])
            shown += self._take(text[:at])
            if tag == _CLOSE and not self._within:
                self._thinking += self._content
                self._content.clear()
                self.thought, shown = self.thought + shown, ""
            self._tagged = True
            self._within = tag == _OPEN
            text = text[at + len(tag) :]
        return shown

    def flush(self) -> str:
        """The text has ended: what was held back was no tag."""
        held, self._held, self.thought = self._held, "", ""
        return self._take(held)

    def _take(self, text: str) -> str:
        if self._within:
            self._thinking.append(text)
            self.thought += text
            return ""
        self._content.append(text)
        return text


def _overlap(text: str, tag: str) -> int:
    """How many characters at the end of the text could begin the tag."""
    return next((size for size in range(min(len(text), len(tag) - 1), 0, -1) if tag.startswith(text[-size:])), 0)
