"""Distributions as an installer leaves them: a folder for the path, with metadata and a module."""

from __future__ import annotations

from pathlib import Path

__all__ = ["installed"]


def installed(folder: Path, name: str, *points: str, group: str = "greenroom.llm", code: str = "") -> Path:
    """Put a distribution there with these entry points, and a module that its name names, with underscores."""
    about = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("\n".join([f"[{group}]", *points]) + "\n")
    (folder / f"{name.replace('-', '_')}.py").write_text(code)
    return folder
