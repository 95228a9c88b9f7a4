"""The API documentation as one HTML page without scripts, made from the table of operations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import msgspec

from dragoman import __version__
from dragoman.server.api.openapi import operation_id, schemas
from dragoman.server.api.operation import JSON, Operation


def html(operations: Sequence[Operation]) -> str:
    shapes = schemas(operations)
    index = "".join(
        f'<li><a href="#{operation_id(operation)}"><code>{operation.method} {escape(operation.path)}</code></a></li>'
        for operation in operations
    )
    sections = "".join(_section(operation, shapes) for operation in operations)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>Dragoman API</title>'
        '<link rel="stylesheet" href="/api/docs.css"></head><body><main>'
        f"<h1>Dragoman API</h1><p>Version {escape(__version__)}. {_INTRODUCTION}</p>"
        f"<nav><ul>{index}</ul></nav>{sections}</main></body></html>"
    )


_INTRODUCTION = (
    "Every request shows a token: <code>Authorization: Bearer TOKEN</code>. What goes wrong is answered with a status "
    'and <code>{"error": "a sentence", "code": "a_word"}</code>. For programs: '
    '<a href="/api/openapi.json">OpenAPI 3.1</a>.'
)


def _section(operation: Operation, shapes: dict[str, Any]) -> str:
    parts = [
        f'<section id="{operation_id(operation)}"><h2>{escape(operation.summary)}</h2>',
        f"<p><code><b>{operation.method}</b> {escape(operation.path)}</code> "
        f"needs the role <code>{operation.role}</code>.</p>",
    ]
    if operation.query:
        rows = [(name, "text", text) for name, text in operation.query.items()]
        parts.append(_table("Parameters", rows))
    for title, shape in (("Body", operation.body), (f"Answer {operation.status}", operation.answer)):
        if shape is not None and shape is not dict:
            parts.append(_table(title, list(_fields(shapes[shape.__name__], shapes))))
    if operation.answer is None:
        what = "empty" if operation.content == JSON else operation.content.partition(";")[0]
        parts.append(f"<h3>Answer {operation.status}</h3><p>{escape(what)}</p>")
    if operation.refusals:
        rows = [(str(status), "", text) for status, text in sorted(operation.refusals.items())]
        parts.append(_table("Refusals", rows))
    return "".join(parts) + f"<pre>{escape(_example(operation))}</pre></section>"


def _fields(schema: dict[str, Any], shapes: dict[str, Any]) -> Iterable[tuple[str, str, str]]:
    """Name, type and meaning of each field; the fields of a nested list or object follow its name."""
    required = schema.get("required", [])
    for name, each in schema.get("properties", {}).items():
        optional = "" if name in required else " (optional)"
        yield name, _type(each) + optional, each.get("description", "")
        held = _referenced(each)
        if held is not None:
            yield from ((f"{name}.{n}", kind, text) for n, kind, text in _fields(shapes[held], shapes))


def _referenced(schema: dict[str, Any]) -> str | None:
    ref = schema.get("$ref") or schema.get("items", {}).get("$ref")
    return str(ref).rpartition("/")[2] if ref else None


def _type(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return " or ".join(_type(part) for part in schema["anyOf"])
    if schema.get("type") == "array":
        return "list"
    return str(schema.get("type", "object"))


def _table(title: str, rows: Iterable[tuple[str, str, str]]) -> str:
    cells = "".join(
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(kind)}</td><td>{_words(text)}</td></tr>"
        for name, kind, text in rows
    )
    return f"<h3>{escape(title)}</h3><table>{cells}</table>"


def _words(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _example(operation: Operation) -> str:
    method = "" if operation.method == "GET" else f"-X {operation.method} "
    body = ""
    if operation.body is not None:
        sample = {
            field.encode_name: "…" for field in msgspec.structs.fields(operation.body) if field.required
        }
        body = f" -H 'Content-Type: application/json' \\\n  -d '{msgspec.json.encode(sample).decode()}'"
    path = operation.path.replace("{", "$").replace("}", "").replace("$id", "$SESSION")
    return f'curl {method}-H "Authorization: Bearer $TOKEN"{body} "http://127.0.0.1:8420{path}"'


STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 0; }
main { max-width: 52rem; margin: 0 auto; padding: 1.5rem; }
section { margin-top: 2rem; border-top: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
h2 { font-size: 1.25rem; } h3 { font-size: 1rem; margin-bottom: .25rem; }
nav ul { list-style: none; padding: 0; columns: 2 20rem; }
code, pre { font-family: ui-monospace, monospace; font-size: .9em; }
pre { overflow-x: auto; padding: .75rem; background: color-mix(in srgb, currentColor 7%, transparent); }
table { border-collapse: collapse; width: 100%; }
td { padding: .25rem .75rem .25rem 0; vertical-align: top; }
a { color: inherit; }
"""
