"""Drafts, flat steps and the arguments of the workflow tool, each as the whole definition that it comes to."""

from __future__ import annotations

from typing import Any

import msgspec

from greenroom.protocol.errors import GreenroomError
from greenroom.protocol.workflows import (
    WorkflowDefinition,
    author_workflow,
    check_definition,
    complete_draft,
    expand_steps,
    parse_draft,
    parse_steps,
)
from tests.conformance.recorded import error

HOST = check_definition(
    {"id": "host", "name": "Host", "phases": [{"id": "p", "name": "P", "tasks": [{"id": "t", "name": "T"}]}]}
)
"""The workflow that the tool wraps in the recorded cases."""


def author(given: Any) -> Any:
    try:
        authored = author_workflow(given["args"], HOST)
    except GreenroomError as raised:
        return error(raised)
    return _told(authored.definition)


def complete(given: Any) -> Any:
    draft = parse_draft(given["draft"])
    return {"refused": True} if draft is None else _told(complete_draft(draft.value))


def expand(given: Any) -> Any:
    steps = parse_steps(given["steps"])
    return {"refused": True} if steps is None else _told(expand_steps(steps.value))


def _told(definition: WorkflowDefinition) -> Any:
    return {"definition": msgspec.to_builtins(definition)}


OPS = {"workflow.author": author, "draft.complete": complete, "steps.expand": expand}
