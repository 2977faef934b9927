"""What a command writes to a stream: its last bytes, and all of it in a file where that is more."""

from __future__ import annotations

import codecs
import logging
from collections.abc import Callable
from typing import Final, final

from greenroom.protocol.processes import Output
from greenroom.runtime.policies.spill_files import LocalSpill, SpillFile

__all__ = ["INLINE", "Capture"]

logger = logging.getLogger("greenroom.processes")

INLINE: Final = 64_000
"""How many bytes of a stream are shown: its last ones."""

SPILLED: Final = 64 << 20
"""How many bytes of a stream a file takes; of a stream that has more there is no file."""

_WITHIN: Final = bytes(range(0x80, 0xC0))
"""Bytes that no character of UTF-8 begins with (RFC 3629)."""

_PIECE: Final = 1 << 18
"""How many bytes are written at a time: each piece takes a way to a thread and back."""


@final
class Capture:
    """Takes one stream of a command, chunk by chunk.

    What goes beyond `inline` bytes is kept in a file of `spill` that is named for `owner` and `name`, up to `most`
    bytes; without a store there is none. What the store cannot keep is logged and only shown as far as it goes.
    `heard(text)` is called with what comes, as it comes.
    """

    def __init__(
        self,
        name: str,
        *,
        spill: LocalSpill | None = None,
        owner: str = "",
        heard: Callable[[str], object] | None = None,
        inline: int = INLINE,
        most: int = SPILLED,
    ) -> None:
        self._name = name
        self._spill = spill
        self._owner = owner
        self._heard = heard
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._inline = inline
        self._most = most
        self._tail = bytearray()
        self._total = 0
        self._file: SpillFile | None = None
        self._unwritten = bytearray()

    async def take(self, data: bytes) -> None:
        """One more chunk. Cancelled: it waits for the disk."""
        if self._heard is not None and (text := self._decoder.decode(data)):
            self._heard(text)
        before, self._total = self._total, self._total + len(data)
        self._tail += data
        if self._total > self._inline:
            if before <= self._inline:
                await self._begin(bytes(self._tail))
            else:
                self._unwritten += data if self._file is not None else b""
            if len(self._unwritten) >= _PIECE:
                await self._write()
        if len(self._tail) > 2 * self._inline:  # not at each chunk: it moves all that stays
            del self._tail[: -self._inline]

    async def finish(self) -> Output:
        """What there was of it. Nothing more is taken. Cancelled: it waits for the disk; `discard` it then."""
        if self._heard is not None and (text := self._decoder.decode(b"", final=True)):
            self._heard(text)
        await self._write()
        path = None
        if self._file is not None:
            self._file.close()
            path = self._file.path
        shown, truncated = bytes(self._tail[-self._inline :]), self._total > self._inline
        if truncated:  # it may begin within a character
            shown = shown[:3].lstrip(_WITHIN) + shown[3:]
        return Output(shown.decode("utf-8", "replace"), truncated, path)

    def discard(self) -> None:
        """Nobody wants it: leave no file."""
        if self._file is not None:
            self._file.discard()
            self._file = None

    async def _begin(self, data: bytes) -> None:
        if self._spill is None:
            return
        try:
            self._file = await self._spill.create(self._owner, self._name)
        except OSError as error:
            self._give_up(error)
        else:
            self._unwritten += data

    async def _write(self) -> None:
        data, self._unwritten = bytes(self._unwritten), bytearray()
        if self._file is None or not data:
            return
        if self._total > self._most:
            logger.warning("%s is more than %d bytes: no file keeps it", self._name, self._most)
            self.discard()
            return
        try:
            await self._file.write(data)
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        logger.warning("%s is cut off: it cannot be kept: %s", self._name, error)
        self.discard()
