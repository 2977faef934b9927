"""The options of a run, said once: what builds the workflow, and what may end its run from outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypedDict

from greenroom.protocol.agents import Budget
from greenroom.protocol.emitter import ErrorHandler, Listener
from greenroom.protocol.errors import WorkflowError
from greenroom.protocol.workflows import PhaseOptions
from greenroom.runtime.cancel import CancelToken

__all__ = ["Bounds", "BuildOptions", "RunOptions", "check_bounds"]


class BuildOptions(TypedDict, total=False):
    """How a workflow is built of a definition; see `create_workflow`."""

    functions: Mapping[str, object] | None
    """What stands behind the names of behaviours."""
    bail: bool | None
    """Whether a failed task ends the run, in every phase, whatever the definition says."""
    on: Mapping[str, Listener] | None
    """Listeners of the workflow's own events."""
    error: ErrorHandler | None
    """Told what those listeners raise."""
    phases: Mapping[str, PhaseOptions] | None
    """Options of phases and tasks, by id."""
    silence: float | None
    """Seconds without a word of a task after which it is said to be silent."""


class Bounds(TypedDict, total=False):
    """What stops a run: what runs of it is cancelled then, and whatever is not over is skipped."""

    cancel: CancelToken | None
    """Set by whoever wants it to end."""
    timeout: float | None
    """Seconds for the whole run; none where it is not above 0, or beyond what a timer holds."""
    patience: bool
    """Whether the timeout stands still while a person is being asked."""
    budget: Budget | None
    """Ends it once it is used up."""


class RunOptions(BuildOptions, Bounds, total=False):
    """Both of them."""


_KINDS: Final[Mapping[str, tuple[type | tuple[type, ...], str]]] = {
    "cancel": (CancelToken, "a `Cancel` or a `trio.Event`"),
    "timeout": ((int, float), "a number of seconds"),
    "budget": (Budget, "a `Budget`"),
}


def check_bounds(bounds: Bounds) -> None:
    """Raise `WorkflowError` MUTATION for one that is of another type than it has to be."""
    for name, (kinds, wanted) in _KINDS.items():
        given = bounds.get(name)
        if given is not None and (isinstance(given, bool) or not isinstance(given, kinds)):
            raise WorkflowError(
                "MUTATION",
                f"The {name} of a run is {wanted}, or None; not of type {type(given).__name__}.",
                {"option": name, "type": type(given).__name__},
            )
