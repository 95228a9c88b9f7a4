"""The OpenAPI 3.1 document, made from the table of operations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from dragoman import __version__
from dragoman.server.api.operation import JSON, Operation
from dragoman.server.api.shapes import Problem

REF = "#/components/schemas/{name}"
USUAL = {
    400: "The request is not as it should be.",
    401: "The token is missing or wrong.",
    403: "The token's role does not allow it.",
}


def document(operations: Sequence[Operation]) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Dragoman",
            "version": __version__,
            "description": "Sessions with coding agents. Conversations as they happen are at /acp and /bridge.",
        },
        "servers": [{"url": "/"}],
        "security": [{"bearer": []}, {"query": []}],
        "paths": paths,
        "components": {
            "schemas": schemas(operations),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "query": {"type": "apiKey", "in": "query", "name": "token"},
            },
        },
    }


def schemas(operations: Iterable[Operation]) -> dict[str, Any]:
    """JSON schemas of the request and response bodies, by name."""
    used = [
        shape
        for operation in operations
        for shape in (operation.body, operation.answer)
        if shape not in (None, dict)
    ]
    shapes = list(dict.fromkeys([*(body for body in used if body is not None), Problem]))
    return msgspec.json.schema_components(shapes, ref_template=REF)[1]


def operation_id(operation: Operation) -> str:
    """The operation's id: `POST /api/sessions/{id}/close` gets `post_sessions_id_close`."""
    words = re.findall(r"\w+", operation.path.removeprefix("/api/"))
    return "_".join([operation.method.lower(), *words])


def _operation(operation: Operation) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "operationId": operation_id(operation),
        "summary": operation.summary,
        "description": f"Needs the role `{operation.role}`.",
        "tags": [operation.path.split("/")[2]],
    }
    parameters = [_parameter(name, "path", "", required=True) for name in operation.names]
    parameters += [_parameter(name, "query", text, required=False) for name, text in operation.query.items()]
    if parameters:
        shown["parameters"] = parameters
    if operation.body is not None:
        shown["requestBody"] = {"required": True, "content": _content(operation.body)}
    good: dict[str, Any] = {"description": "Done."}
    if operation.answer is not None:
        good["content"] = _content(operation.answer)
    elif operation.content != JSON:
        good["content"] = {operation.content.partition(";")[0]: {"schema": {"type": "string"}}}
    refusals = {**USUAL, **operation.refusals}
    shown["responses"] = {
        str(operation.status): good,
        **{
            str(status): {"description": text, "content": _content(Problem)}
            for status, text in sorted(refusals.items())
        },
    }
    return shown


def _parameter(name: str, where: str, text: str, *, required: bool) -> dict[str, Any]:
    shown = {"name": name, "in": where, "required": required, "schema": {"type": "string"}}
    return {**shown, "description": text} if text else shown


def _content(shape: type[Any]) -> dict[str, Any]:
    schema = {"type": "object"} if shape is dict else {"$ref": REF.format(name=shape.__name__)}
    return {JSON: {"schema": schema}}
