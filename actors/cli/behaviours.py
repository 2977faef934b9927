"""`--functions MODULE`: what stands behind the names of behaviours, from a module of the current folder."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import cast

from greenroom.actors.system import Runtime
from greenroom.protocol.errors import ConfigError

__all__ = ["behaviours_of", "given_by", "import_behaviours"]


def import_behaviours(name: str) -> ModuleType:
    """The module of that name (`release`, `flows.release`), looked for in the current folder first.

    Its code runs, and is trusted like any program. Raises ConfigError FUNCTIONS with what went wrong.
    """
    folder = os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        reason = _reason(error)
        if _missing(name, error):
            told = (
                f"There is no module {name}: {reason}. Name one that is in the current folder, as Python does:"
                " `flows.release` is flows/release.py."
            )
        else:
            told = f"The module {name} failed while it was imported: {reason}."
        raise ConfigError("FUNCTIONS", told, {"module": name}) from error


def given_by(module: ModuleType, what: str, runtime: Runtime) -> object:
    """What the module has under that name; where that is a function of the runtime, what it gives. None: nothing.

    Raises ConfigError FUNCTIONS for a function that raises.
    """
    offered: object = getattr(module, what, None)
    if not _is_function(offered):
        return offered
    try:
        return cast("Callable[[Runtime], object]", offered)(runtime)
    except (Exception, SystemExit) as error:
        told = f"The `{what}` of the module {module.__name__} failed: {_reason(error)}."
        raise ConfigError("FUNCTIONS", told, {"module": module.__name__}) from error


def _is_function(offered: object) -> bool:
    return callable(offered) and not isinstance(offered, Mapping)


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def _missing(name: str, error: BaseException) -> bool:
    """Whether it is the module itself, or what it is in, that could not be found, and not what its code imports."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return not all(name.split("."))  # no name of a module at all
    return f"{name}.".startswith(f"{error.name}.")


def behaviours_of(module: ModuleType, runtime: Runtime) -> dict[str, object]:
    """Behaviours by name: the module's `functions`, a mapping or a function of the runtime that gives one; without that
    its public functions.

    Raises ConfigError FUNCTIONS if that raises, is no mapping of names to callables, or there are none.
    """
    absent = getattr(module, "functions", None) is None
    offered = _public(module) if absent else given_by(module, "functions", runtime)
    if not isinstance(offered, Mapping):
        raise _refusal(module, "its `functions` give no mapping of names to functions")
    found = cast("Mapping[object, object]", offered)
    for name, value in found.items():
        if not isinstance(name, str) or not callable(value):
            raise _refusal(module, f"its `functions` have {name!r}, which names no function")
    if not found:
        raise _refusal(module, "it has no public functions, and no `functions`")
    return {str(name): value for name, value in found.items()}


def _public(module: ModuleType) -> dict[str, object]:
    """What was defined in the module itself, under a name that hides nothing."""
    members = cast("Mapping[str, object]", vars(module))
    return {
        name: value
        for name, value in members.items()
        if not name.startswith("_")
        and callable(value)
        and not isinstance(value, type)
        and getattr(value, "__module__", None) == module.__name__
    }


def _refusal(module: ModuleType, reason: str) -> ConfigError:
    return ConfigError(
        "FUNCTIONS", f"The module {module.__name__} offers no behaviours: {reason}.", {"module": module.__name__}
    )
