"""The whole toolbox: the ops of `tools`, on tools that came after the first ones."""

from __future__ import annotations

from tests.conformance.areas import tools

__all__ = ["OPS"]

OPS = tools.OPS
