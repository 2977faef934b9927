"""A run of an agent as data: what a registry builds an agent from."""

from __future__ import annotations

from typing import Annotated, final

from msgspec import Meta, Struct

from greenroom.protocol.agents.messages import MessageInput

__all__ = ["AgentJob"]

Name = Annotated[str, Meta(min_length=1)]


@final
class AgentJob(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Which provider, tools, authority and scheduler by the names that the registry has for them, and what to do."""

    provider: Name
    messages: tuple[MessageInput, ...]
    system: str | None = None
    tools: tuple[Name, ...] | None = None
    authority: Name | None = None
    scheduler: Name | None = None
    limit: Annotated[int, Meta(ge=0)] | None = None
    """How many turns at most."""
    timeout: Annotated[float, Meta(gt=0)] | None = None
    """Milliseconds."""
    budget: Annotated[float, Meta(ge=0)] | None = None
    """How many tokens the agent may write."""
    children: tuple[AgentJob, ...] = ()
    """Jobs to be started beside it."""
