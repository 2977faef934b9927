"""The seams that a configuration fills: what each is for, which key chooses, and who comes with greenroom."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, Final

from msgspec import Struct

from greenroom.runtime.seams import Seam, SeamKind, add_installed

__all__ = ["SEAMS", "SeamDefinition", "open_seam"]


class SeamDefinition(Struct, frozen=True, kw_only=True):
    """One seam. Its providers are functions; installed distributions add theirs."""

    kind: SeamKind = "named"
    """`named`: any number of providers, for whoever wants which. `sole`: one of them fills the place for everybody."""
    about: str
    """What fills it, and who uses that."""
    given: str
    """What a provider is called with, and what it gives."""
    chosen_by: str
    """The key of the configuration that names the provider."""
    built_in: dict[str, str]
    """By name where each provider is that comes along, as an entry point says it; imported when it is chosen."""


SEAMS: Final[dict[str, SeamDefinition]] = {
    "llm": SeamDefinition(
        about="Models, for agents.",
        given="`ModelSettings`; an async context manager of a `Provider`",
        chosen_by="llm.provider",
        built_in={
            "scripted": "greenroom.actors.cli.models:open_scripted",
            "openai": "greenroom.actors.cli.models:open_openai",
            "anthropic": "greenroom.actors.cli.models:open_anthropic",
        },
    ),
    "spill": SeamDefinition(
        kind="sole",
        about="Where large results of tools go: for `policies.spill`.",
        given="the `root` of the table; a `SpillStore`",
        chosen_by="policies.spill.store",
        built_in={"local": "greenroom.runtime.policies:LocalSpill"},
    ),
    "telemetry": SeamDefinition(
        kind="sole",
        about="What takes figures on tool calls: for `policies.metrics`.",
        given="nothing; an async context manager of a `Meter`, which gives everything out before it ends",
        chosen_by="policies.metrics.meter",
        built_in={"opentelemetry": "greenroom.actors.cli.telemetry:open_opentelemetry"},
    ),
    "storage": SeamDefinition(
        about="Where the tool `database` keeps databases, beside the files that the configuration names.",
        given="the id of a database; a `Driver` or a `Storage` for it",
        chosen_by="databases.drivers",
        built_in={"memory": "greenroom.actors.database.resolver:in_memory"},
    ),
    "session_persistence": SeamDefinition(
        kind="sole",
        about="Where the logs of agents are kept.",
        given="the `root` and, by name, the `project` of the table; a `Persistence`",
        chosen_by="sessions.persistence",
        built_in={"jsonl": "greenroom.actors.session:JsonlPersistence"},
    ),
    "subagents": SeamDefinition(
        about="Who builds the agents that an agent gives work to.",
        given="an `AgentRegistry` and an `AgentJob` with the model and the tools there are; a `ChildProvider`",
        chosen_by="subagents.provider",
        built_in={
            "spawn": "greenroom.actors.subagent:SpawnProvider",
            "fork": "greenroom.actors.cli.subagents:forking",
        },
    ),
    "tools": SeamDefinition(
        about="Further tools, for agents and for whoever may call tools.",
        given="the `Runtime`; a `Tool`, or a list of them",
        chosen_by="tools.add",
        built_in={},
    ),
}
"""By name."""


def open_seam(name: str) -> Seam[Callable[..., Any]]:
    """The seam of that name with what comes with greenroom, and what installed distributions add. Reads their metadata,
    and blocks meanwhile; nothing is imported before it is chosen.

    Raises `SeamError` DUPLICATE_PROVIDER for a name that two of them give.
    """
    seam = Seam[Callable[..., Any]](name)
    for provider, place in SEAMS[name].built_in.items():
        seam.provide_from(provider, partial(_imported, place))
    add_installed(seam)
    return seam


def _imported(place: str) -> Any:
    module, _, function = place.partition(":")
    return getattr(import_module(module), function)
