"""A workspace's files: immutable values, each with what a listing tells of it."""

from __future__ import annotations

import hashlib
from typing import Final, Literal, TypeAlias, TypeGuard, final

from msgspec import Struct

from greenroom.protocol.workspace.slicing import joined

__all__ = [
    "IMAGES",
    "BinaryContent",
    "File",
    "FileInfo",
    "FileKind",
    "FileState",
    "TextContent",
    "create_file",
    "infer_language",
    "infer_mime",
    "is_binary",
    "is_text",
]

FileState: TypeAlias = Literal["created", "modified"]
"""`created`: nothing was at the path before. `modified`: it was edited since, also if that changed nothing."""

FileKind: TypeAlias = Literal["text", "binary"]

IMAGES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What a binary file that is kept in a workspace, or in a store, can be."""

OCTETS: Final = "application/octet-stream"
"""What a directory's file is that is neither text nor one of these images."""

_NAMED_AFTER: Final = {
    "typescript": "ts tsx",
    "javascript": "js jsx mjs cjs",
    "markdown": "md",
    "html": "html htm",
    "python": "py",
    "ruby": "rb",
    "rust": "rs",
    "kotlin": "kt",
    "c": "c h",
    "cpp": "cpp hpp",
    "csharp": "cs",
    "bash": "sh bash zsh",
    "powershell": "ps1",
    "yaml": "yaml yml",
    "xml": "xml svg",
    "text": "txt",
}
_NAMED_ALIKE: Final = "json css scss sass less vue svelte go java swift php sql toml"
_LANGUAGES: Final = {
    **{ending: language for language, endings in _NAMED_AFTER.items() for ending in endings.split()},
    **{ending: ending for ending in _NAMED_ALIKE.split()},
}

_MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


@final
class TextContent(Struct, frozen=True):
    """Text, and the language that it is in: decided when text first came to the path, and kept from then on."""

    text: str
    language: str


@final
class BinaryContent(Struct, frozen=True):
    """Bytes as base64 (the padding may be missing), and their MIME type."""

    data: str
    mime: str


@final
class File(Struct, frozen=True):
    """One file. `size` is in bytes, in UTF-8 if it is text; `lines` is 0 for empty text and for bytes.

    The two kinds of content have no tag: text has `text`, bytes have `data`.
    """

    path: str
    content: TextContent | BinaryContent
    state: FileState
    size: int
    lines: int

    @property
    def text(self) -> str | None:
        """The text, if it is text."""
        return self.content.text if isinstance(self.content, TextContent) else None

    @property
    def kind(self) -> FileKind:
        return "text" if isinstance(self.content, TextContent) else "binary"

    @property
    def version(self) -> str:
        """By which its content is recognised again: the same content has the same one, whoever wrote it and when."""
        content = self.content.text if isinstance(self.content, TextContent) else self.content.data
        data = content.encode("utf-8", "surrogatepass")
        return hashlib.blake2b(data, digest_size=16, person=self.kind.encode()).hexdigest()

    @property
    def info(self) -> FileInfo:
        """What a listing tells of it."""
        return FileInfo(self.path, self.state, self.size, self.lines, self.kind)


@final
class FileInfo(Struct, frozen=True):
    """A file without its content."""

    path: str
    state: FileState
    size: int
    lines: int
    kind: FileKind


def create_file(
    path: str,
    content: str | TextContent | BinaryContent,
    *,
    state: FileState = "created",
    language: str | None = None,
) -> File:
    """A file with its size and lines counted. Plain text is in `language`, by default in that of the path's ending.

    Halves of a character that stand side by side in the text are put together (`slicing.joined`).
    """
    if isinstance(content, BinaryContent):
        return File(path, content, state, _decoded_size(content.data), 0)
    if isinstance(content, TextContent):
        text, language = content.text, content.language
    else:
        text, language = content, infer_language(path) if language is None else language
    text = joined(text)
    lines = text.count("\n") + 1 if text else 0
    return File(path, TextContent(text, language), state, _encoded_size(text), lines)


def is_text(file: File) -> bool:
    """Whether the file holds text."""
    return isinstance(file.content, TextContent)


def is_binary(file: File) -> bool:
    """Whether the file holds bytes."""
    return isinstance(file.content, BinaryContent)


def infer_language(path: str) -> str:
    """The language that a path's ending stands for; `text` if it stands for none. Case is ignored."""
    _, dot, ending = path.rpartition(".")
    return _LANGUAGES.get(ending.lower(), "text") if dot else "text"


def infer_mime(data: bytes) -> str:
    """The MIME type of bytes that are no text, by how they begin."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for magic, mime in _MAGIC if data.startswith(magic)), OCTETS)


def is_state(value: object) -> TypeGuard[FileState]:
    """Whether the value is one of the two states."""
    return value in ("created", "modified")


def _encoded_size(text: str) -> int:
    """Bytes in UTF-8, where a lone surrogate takes three."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _decoded_size(data: str) -> int:
    padding = 2 if data.endswith("==") else 1 if data.endswith("=") else 0
    return len(data) * 3 // 4 - padding
