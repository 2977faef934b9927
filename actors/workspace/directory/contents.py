"""The bytes of a file as what a workspace shows of it, and back."""

from __future__ import annotations

import base64
import hashlib
from typing import Final

from greenroom.protocol.errors import WorkspaceError
from greenroom.protocol.workspace.files import BinaryContent, File, FileState, TextContent, create_file, infer_mime
from greenroom.protocol.workspace.positions import position_of, surrogate_error
from greenroom.protocol.workspace.slicing import find_lone_surrogate

__all__ = ["decode", "digest", "encode", "is_marked", "to_file"]

MARK: Final = b"\xef\xbb\xbf"
"""A byte order mark in UTF-8: it stays where it is, and is no part of the text."""


def is_marked(data: bytes) -> bool:
    """Whether a byte order mark comes first."""
    return data.startswith(MARK)


def decode(data: bytes) -> str | None:
    """The text that the bytes are; `None` if they are no UTF-8."""
    try:
        return data[len(MARK) if is_marked(data) else 0 :].decode()
    except UnicodeDecodeError:
        return None


def encode(path: str, text: str, *, marked: bool, most: int) -> bytes:
    """The bytes of a text. Raises `WorkspaceError`: SURROGATE, or LIMIT if they are more than `most`."""
    at = find_lone_surrogate(text)
    if at is not None:
        raise surrogate_error(path, position_of(text, at))
    data = (MARK if marked else b"") + text.encode()
    if len(data) > most:
        raise too_large(path, len(data), most)
    return data


def to_file(path: str, data: bytes, *, state: FileState, language: str) -> File:
    """The file that has these bytes; `language` is that of a text."""
    text = decode(data)
    if text is not None:
        return create_file(path, TextContent(text, language), state=state)
    return create_file(path, BinaryContent(base64.b64encode(data).decode(), infer_mime(data)), state=state)


def digest(data: bytes | None) -> bytes | None:
    """By which bytes are recognised again; `None` for none."""
    return None if data is None else hashlib.blake2b(data, digest_size=16).digest()


def too_large(path: str, size: int, most: int) -> WorkspaceError:
    """The refusal of a file over the limit."""
    return WorkspaceError(
        "LIMIT",
        f"{path} has {size:,} bytes, and a file of this workspace may have {most:,}. Divide it, or allow larger files.",
        {"path": path, "limit": most},
    )
