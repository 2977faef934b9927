"""The remote methods as an OpenAPI document (version 3.1), made from their contracts."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from greenroom.actors.remote.endpoint import Endpoint
from greenroom.actors.remote.services import RemoteServices
from greenroom.protocol.rpc import API_PATH, ApiFailure

__all__ = ["OPENAPI", "openapi_document"]

OPENAPI: Final = "3.1.0"
_TEMPLATE: Final = "#/components/schemas/{name}"

_BEFORE: Final = {
    "401": "A token is needed, and the request brought none that is valid.",
    "403": "The host or the origin of the request is not trusted.",
    "404": "There is no such method, or the token does not grant it.",
    "413": "The body is too large.",
    "415": "The body is not said to be JSON.",
    "429": "The token has sent as many requests, or has as many open, as it may.",
}
"""What a request can end with before a method is called."""


def openapi_document(remote: RemoteServices, *, title: str, version: str) -> dict[str, Any]:
    """The document of all methods that are offered now. Streams are not in it: they come over a WebSocket only.

    The same services give the same document, byte for byte.
    """
    endpoints = remote.methods()
    types: list[Any] = [ApiFailure]
    for endpoint in endpoints:
        types += [endpoint.contract.arguments, endpoint.contract.result]
    (failure, *schemas), components = msgspec.json.schema_components(types, ref_template=_TEMPLATE)
    paths: dict[str, Any] = {}
    for number, endpoint in enumerate(endpoints):
        arguments, result = schemas[2 * number : 2 * number + 2]
        paths[f"{API_PATH}/{endpoint.name}"] = {"post": _operation(endpoint, arguments, result, failure)}
    document: dict[str, Any] = {
        "openapi": OPENAPI,
        "info": {"title": title, "version": version},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        # With a token, or, where none is configured, without.
        "security": [{"token": []}, {}],
    }
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(document))  # defaults are Python's own values
    return plain


def _operation(endpoint: Endpoint, arguments: Any, result: Any, failure: Any) -> dict[str, Any]:
    namespace, _, method = endpoint.name.partition("/")
    summary, _, rest = endpoint.contract.about.partition("\n\n")
    body = {"type": "object", "properties": {"args": arguments}, "required": ["args"], "additionalProperties": False}
    told = {"summary": " ".join(summary.split())} if summary else {}
    if rest:
        told["description"] = rest
    return {
        "operationId": f"{namespace}.{method}",
        "tags": [namespace],
        **told,
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {
            "200": {
                "description": "It was carried out (`ok` is true), or refused or failed (`ok` is false).",
                "content": {
                    "application/json": {"schema": {"oneOf": [_success(endpoint.contract.result, result), failure]}}
                },
            },
            **{status: {"description": text} for status, text in _BEFORE.items()},
        },
    }


def _success(kind: Any, result: Any) -> dict[str, Any]:
    properties: dict[str, Any] = {"ok": {"const": True}}
    if kind is not type(None):
        properties["value"] = result
    return {
        "type": "object",
        "properties": properties,
        # A null is left out, as it is where there is nothing to give back.
        "required": ["ok"] if _may_be_null(kind) else ["ok", "value"],
    }


def _may_be_null(kind: Any) -> bool:
    try:
        msgspec.convert(None, kind)
    except msgspec.ValidationError:
        return False
    return True
