"""What a process may hold open."""

from __future__ import annotations

import resource

__all__ = ["raise_descriptor_limit"]


def raise_descriptor_limit() -> None:
    """Allow as many descriptors as this process may allow itself: a listener's clients take two each."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
