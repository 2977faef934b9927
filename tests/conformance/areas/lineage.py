"""Lineages: what is one, what may be added to it, and which workflow or agent it still lets in."""

from __future__ import annotations

from typing import Any

from greenroom.protocol.errors import GreenroomError
from greenroom.protocol.lineage import (
    WorkflowLineage,
    enter_agent,
    enter_workflow,
    extend_lineage,
    is_workflow_lineage,
    lineage_depth,
    normalize_lineage,
)
from greenroom.protocol.workflows import WorkflowFunction, author_workflow, compose_functions
from tests.conformance.areas.drafts import HOST
from tests.conformance.expansion import a_function
from tests.conformance.recorded import error


def valid(given: Any) -> Any:
    return is_workflow_lineage(given["lineage"])


def normalize(given: Any) -> Any:
    try:
        return list(normalize_lineage(given["lineage"]))
    except GreenroomError as raised:
        return error(raised)


def extend(given: Any) -> Any:
    try:
        return list(extend_lineage(given["lineage"], given["tag"]))
    except GreenroomError as raised:
        return error(raised)


def depth(given: Any) -> Any:
    try:
        return lineage_depth(given["lineage"])
    except GreenroomError as raised:
        return error(raised)


def author(given: Any) -> Any:
    try:
        lineage = normalize_lineage(given["lineage"], ending="agent")
        definition = author_workflow(given["args"], HOST).definition
        enter_workflow(lineage, definition.id)
    except GreenroomError as raised:
        return error(raised)
    return {"accepted": True, "id": definition.id}


def agent(given: Any) -> Any:
    try:
        lineage = normalize_lineage(given.get("lineage", []), ending="workflow")
        enter_agent(lineage, given["agent"], given["workflow"])
    except GreenroomError as raised:
        return error(raised)
    return {"ran": True}


def compose(given: Any) -> Any:
    adapted: list[Any] = []

    def adapt(name: str, lineage: WorkflowLineage) -> WorkflowFunction:
        adapted.append([name, list(lineage)])
        return a_function

    try:
        composed = compose_functions(
            dict.fromkeys(given.get("functions", []), a_function),
            {name: name for name in given.get("agents", [])},
            adapt,
            lineage=given.get("lineage", []),
        )
    except GreenroomError as raised:
        return error(raised)
    return {"names": list(composed), "agents": adapted}


OPS = {
    "lineage.valid": valid,
    "lineage.normalize": normalize,
    "lineage.extend": extend,
    "lineage.depth": depth,
    "lineage.author": author,
    "lineage.agent": agent,
    "lineage.compose": compose,
}
