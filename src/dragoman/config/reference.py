"""All keys as Markdown and as a commented template, generated from the model so that neither can be out of date.

`python -m dragoman.config.reference docs/reference/configuration.md` updates the tables of the page.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from dragoman.config.files import toml
from dragoman.config.model import Config
from dragoman.config.schema import Key, bare, keys, struct_of, words
from dragoman.config.variables import SPECIAL

START = "<!-- made by python -m dragoman.config.reference: change the model, not this -->"
END = "<!-- end of what is made -->"


def tables() -> Iterator[tuple[str, str, list[Key]]]:
    """Each table of the configuration: header, purpose, keys. The first has no header."""
    root = keys(struct_of(Config))
    yield "", "", [key for key in root if _inner(key) is None]
    for key in root:
        struct = _inner(key)
        if struct is None:
            continue
        purpose = (struct.cls.__doc__ or "").split("\n")[0]
        if isinstance(key.type, inspect.DictType):
            yield f"[{key.name}.NAME]", purpose, keys(struct)
        elif isinstance(key.type, inspect.ListType):
            yield f"[[{key.name}]]", purpose, keys(struct)
        else:
            yield f"[{key.name}]", purpose, [inner for inner in keys(struct) if _inner(inner) is None]
            for inner in keys(struct):
                if (rule := _inner(inner)) is not None:
                    name = f"{key.name}.{inner.name}"
                    header = f"[[{name}]]" if isinstance(inner.type, inspect.ListType) else f"[{name}]"
                    if isinstance(inner.type, inspect.DictType):
                        header = f"[{name}.NAME]"
                    yield header, inner.description or (rule.cls.__doc__ or ""), keys(rule)


def _inner(key: Key) -> inspect.StructType | None:
    described = key.type
    if isinstance(described, inspect.DictType):
        described = bare(described.value_type)
    elif isinstance(described, inspect.ListType):
        described = bare(described.item_type)
    return described if isinstance(described, inspect.StructType) else None


def _default(key: Key) -> str:
    if key.required:
        return "needed"
    return "unset" if key.default is None else f"`{toml.value(msgspec.to_builtins(key.default))}`"


def markdown() -> str:
    """The tables of the reference page."""
    parts = []
    for header, purpose, members in tables():
        if not members:
            continue
        parts.append(f"### `{header}`\n\n{purpose}" if header else "### At the top")
        rows = ["| Key | Type | Default | Meaning |", "|---|---|---|---|"]
        rows += [
            f"| `{key.name}` | {words(key.type)} | {_default(key)} | {key.description} |" for key in members
        ]
        parts.append("\n".join(rows))
    rows = [
        "| Variable | Meaning |",
        "|---|---|",
        *(f"| `{name}` | {text} |" for name, text in SPECIAL.items()),
    ]
    parts.append("### Variables that are not keys\n\n" + "\n".join(rows))
    return "\n\n".join(parts)


EXAMPLES: dict[str, dict[str, Any]] = {
    "[agents.NAME]": {"kind": "acp", "command": ["my-agent", "--acp"]},
    "[sandboxes.NAME]": {"kind": "podman", "image": "registry/agent:latest"},
    "[mcp.NAME]": {"command": ["my-mcp-server", "--stdio"]},
    "[[workspaces]]": {"path": "~/work", "agent": "claude"},
    "[usage.prices.NAME]": {"input": 3.0, "output": 15.0},
    "[[policy.rules]]": {"decision": "allow", "kind": ["read", "search"]},
    "[[policy.narrow]]": {"decision": "ask", "kind": ["execute"]},
}


def template() -> str:
    """A file with every key in it, all commented out, below the headers of their tables."""
    parts = [
        "# Dragoman's configuration. Every key is shown with its default; remove the # to change one.\n"
        "# Below [agents.NAME] and other tables that you add, the first keys are examples."
    ]
    for header, purpose, members in tables():
        if not members:
            continue
        lines = [f"# {purpose}", header if _is_fixed(header) else f"#{header}"] if header else []
        if header in EXAMPLES:
            lines += [f"#{name} = {toml.value(each)}" for name, each in EXAMPLES[header].items()]
            members = [key for key in members if key.name not in EXAMPLES[header]]
        for key in members:
            lines.append(f"#{key.name} = {_shown(key)}  # {key.description}{_choices(key)}")
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


SAMPLES = {"sandbox": "local", "workspace": "/workspace", "memory": "2g"}
"""Values for keys that are unset and take no empty text."""


def _is_fixed(header: str) -> bool:
    """Whether the table has a name of ours: it is on, so that a key below it counts once its # is removed."""
    return not header.startswith("[[") and not header.endswith(".NAME]")


def _shown(key: Key) -> str:
    """The default as TOML; for a key that is unset, a value of its type."""
    if key.default is not None:
        return toml.value(msgspec.to_builtins(key.default))
    if isinstance(key.type, inspect.LiteralType):
        return toml.value(key.type.values[0])
    if isinstance(key.type, inspect.ListType):
        return "[]"
    if isinstance(key.type, inspect.IntType | inspect.FloatType):
        return "0"
    return "true" if isinstance(key.type, inspect.BoolType) else toml.value(SAMPLES.get(key.name, ""))


def _choices(key: Key) -> str:
    if isinstance(key.type, inspect.LiteralType):
        return f" {words(key.type).capitalize()}{'; unset by default' if key.default is None else ''}."
    unset = key.default is None and isinstance(key.type, inspect.BoolType)
    return " True or false; unset by default." if unset else ""


def refresh(page: str) -> str:
    """`page` with the part between the marks generated again."""
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n\n{markdown()}\n\n{END}{after}"


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.write_text(refresh(target.read_text()))
