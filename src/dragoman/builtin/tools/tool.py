"""The definition of a tool: validated arguments, and an intent that is shown before it is carried out."""

from __future__ import annotations

import difflib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.builtin.errors import InvalidArguments
from dragoman.builtin.modes import Effect

if TYPE_CHECKING:
    from dragoman.builtin.tools.context import ToolContext

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Picture:
    """An image for the model."""

    data: bytes
    media_type: str


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a call: text for the model, content for the client."""

    text: str
    content: Sequence[Json] | None = None
    """ACP tool call content; None: the text itself."""
    output: Any = None
    """The raw output; None: the text itself."""
    pictures: Sequence[Picture] = ()
    text_says_all: bool = False
    """The text has the diffs of the content too."""
    failed: bool = False
    """The tool itself worked, but what it ran failed: a command with a nonzero exit code."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What "always" covers for this call: the key that is stored, and the pattern in words."""

    key: str
    words: str


@dataclass(frozen=True, slots=True)
class Intent:
    """What a call is about to do; nothing is changed until `act` is awaited."""

    title: str
    act: Callable[[], Awaitable[Result]]
    locations: Sequence[Json] = ()
    content: Sequence[Json] = field(default_factory=list)
    """Shown with the permission question, such as the diff of an edit."""
    scope: Scope | None = None


@dataclass(frozen=True, slots=True)
class Subject:
    """What a call is about, known from its arguments alone."""

    title: str
    locations: Sequence[Json] = ()
    scope: Scope | None = None


Prepare = Callable[["ToolContext", Any], Awaitable[Intent]]


@dataclass(frozen=True, slots=True)
class Tool:
    """One row of the table of tools."""

    name: str
    kind: str
    effect: Effect
    description: str
    arguments: type[msgspec.Struct]
    prepare: Prepare
    subject: Callable[[ToolContext, Any], Subject] | None = None
    """Of a tool whose `prepare` reads files: rules decide on the subject first."""
    mcp: Json | None = None
    """`server` and `tool` of an MCP server's tool, for policy rules."""

    def parse(self, arguments: Mapping[str, Any]) -> msgspec.Struct:
        """The arguments as the tool takes them; raises `InvalidArguments`."""
        try:
            # Not strict: small models write numbers as strings.
            return msgspec.convert(arguments, self.arguments, strict=False)
        except msgspec.ValidationError as error:
            raise InvalidArguments(f"The arguments of {self.name} are not valid: {error}.") from error

    def schema(self) -> Json:
        """The JSON schema of the arguments, with the outermost object inlined."""
        (schema,), definitions = msgspec.json.schema_components(
            [self.arguments], ref_template="#/$defs/{name}"
        )
        own = definitions.pop(schema["$ref"].rpartition("/")[2])
        own.pop("title", None)
        return {**own, "$defs": definitions} if definitions else own


def printable(text: str) -> str:
    """Replace what is not valid UTF-8: file names may hold it, but messages and history may not."""
    return text.encode(errors="replace").decode()


def text_content(text: str) -> Json:
    return {"type": "content", "content": {"type": "text", "text": text}}


def fence_for(text: str) -> str:
    """A Markdown fence that is longer than any run of backticks in the text."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    return "`" * max(3, longest + 1)


def diff_content(path: str, old: str | None, new: str) -> Json:
    return {"type": "diff", "path": path, "oldText": old, "newText": new}


def diff_text(path: str, old: str | None, new: str) -> str:
    """The change as a unified diff; empty if nothing changed."""
    before, after = [(text or "").splitlines() for text in (old, new)]
    origin = path if old is not None else "/dev/null"
    lines = difflib.unified_diff(before, after, origin, path, lineterm="")
    return "".join(f"{line}\n" for line in lines)
