"""What may be changed about a part of a workflow while it is pending."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from greenroom.protocol.errors import WorkflowError
from greenroom.protocol.schemas.gates import NotJson, clone_json
from greenroom.protocol.workflows.definition import Identifier, Width
from greenroom.protocol.workflows.reader import document_of

__all__ = ["PhasePatch", "TaskPatch", "WorkflowPatch", "read_patch"]

P = TypeVar("P", bound="_Patch")


class _Patch(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    name: Identifier | UnsetType = UNSET
    description: str | UnsetType = UNSET

    def given(self) -> dict[str, Any]:
        """The members that it changes."""
        members = ((name, getattr(self, name)) for name in self.__struct_fields__)
        return {name: member for name, member in members if member is not UNSET}


class WorkflowPatch(_Patch, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is not given stays."""


class TaskPatch(_Patch, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is not given stays."""


class PhasePatch(_Patch, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is not given stays."""

    bail: bool | UnsetType = UNSET
    concurrency: Width | UnsetType = UNSET


def read_patch(kind: type[P], patch: object) -> P:
    """The patch that a value, JSON or a struct, spells. Raises `WorkflowError` MUTATION that says what is wrong."""
    document: Any = clone_json(document_of(patch), record=True)
    try:
        if isinstance(document, NotJson):
            raise msgspec.ValidationError(str(document))
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        known = ", ".join(kind.__struct_fields__)
        raise WorkflowError(
            "MUTATION", f"This change was not made: {error}. What can be changed is: {known}.", {"reason": str(error)}
        ) from None
