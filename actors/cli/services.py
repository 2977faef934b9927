"""`--services MODULE`: services of one's own for programs outside, from a module of the current folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from greenroom.actors.cli.behaviours import given_by, import_behaviours
from greenroom.actors.system import Runtime
from greenroom.protocol.errors import ConfigError

__all__ = ["offer_services_of"]


def offer_services_of(name: str, runtime: Runtime) -> None:
    """Add what a module calls `services`: a mapping of namespaces to services, or a function of the runtime that gives
    one.

    Raises ConfigError: FUNCTIONS for a module that cannot be imported or whose function raises, SERVICES if it has no
    such thing, and REMOTE for a service that cannot be offered.
    """
    module = import_behaviours(name)
    offered = given_by(module, "services", runtime)
    if not isinstance(offered, Mapping):
        raise ConfigError(
            "SERVICES",
            f"The module {name} has no `services`: a mapping of namespaces to services, or a function of the runtime "
            "that gives one.",
            {"module": name},
        )
    for namespace, service in cast("Mapping[str, object]", offered).items():
        runtime.remote.add(namespace, service)
