"""The shape of a registry: `{version, agents: [{id, name, version, description, distribution}]}`.

A registry is untrusted. Every entry is checked by itself: one that cannot be used is left out and named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from dragoman.registry.errors import RegistryError

Source = Literal["binary", "npm", "uv"]
MAX_BYTES = 8 * 1024 * 1024
"""Size limit of a registry; the public one has about 100 KB."""
MOST_AGENTS = 5000
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+")

Id = Annotated[str, Meta(pattern=r"\A[a-z][a-z0-9-]{0,63}\Z")]
Version = Annotated[str, Meta(pattern=r"\A[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}\Z")]
Text = Annotated[str, Meta(max_length=2000)]
Word = Annotated[str, Meta(max_length=1000, pattern=r"\A[^\x00]*\Z")]
Words = Annotated[list[Word], Meta(max_length=100)]
Variables = Annotated[
    dict[Annotated[str, Meta(pattern=r"\A[A-Za-z_][A-Za-z0-9_]{0,99}\Z")], Word], Meta(max_length=100)
]


class Archive(msgspec.Struct, frozen=True, omit_defaults=True):
    """A program to download, for one platform."""

    archive: Annotated[str, Meta(max_length=2000)]
    cmd: Annotated[str, Meta(min_length=1, max_length=500)]
    args: Words = []
    env: Variables = {}
    sha256: Annotated[str, Meta(pattern=r"\A[0-9a-fA-F]{64}\Z")] | None = None


class Package(msgspec.Struct, frozen=True, omit_defaults=True):
    """A package of npm (`npx`) or of PyPI (`uvx`)."""

    package: Annotated[str, Meta(min_length=1, max_length=300)]
    cmd: Annotated[str, Meta(max_length=100, pattern=r"\A[A-Za-z0-9][\w.-]*\Z")] | None = None
    args: Words = []
    env: Variables = {}


class Distribution(msgspec.Struct, frozen=True, omit_defaults=True):
    binary: Annotated[dict[Annotated[str, Meta(max_length=50)], Archive], Meta(max_length=50)] = {}
    npx: Package | None = None
    uvx: Package | None = None


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One agent of a registry."""

    id: Id
    name: Annotated[str, Meta(min_length=1, max_length=200)]
    version: Version
    description: Text
    distribution: Distribution
    website: Text = ""
    repository: Text = ""
    license: Text = ""

    @property
    def sources(self) -> list[Source]:
        found = self.distribution
        offered: tuple[tuple[Source, object], ...] = (
            ("binary", found.binary),
            ("npm", found.npx),
            ("uv", found.uvx),
        )
        return [source for source, there in offered if there]


class Index(msgspec.Struct, frozen=True):
    """The usable entries of a registry, and why others are not."""

    entries: list[Entry]
    left_out: list[str]


def parse(content: bytes) -> tuple[Index, dict[str, Any]]:
    """The entries, and the document; raises `RegistryError` if it is no registry at all."""
    try:
        document = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RegistryError(f"the registry's answer is not JSON: {error}") from error
    agents = document.get("agents") if isinstance(document, dict) else None
    if not isinstance(agents, list):
        raise RegistryError('the registry\'s answer is no registry: it has no list "agents"')
    if len(agents) > MOST_AGENTS:
        raise RegistryError(
            f"the registry's answer has {len(agents)} agents; more than {MOST_AGENTS} are not read"
        )
    index = read_entries(agents)
    if not index.entries:
        why = index.left_out[0] if index.left_out else "the list is empty"
        raise RegistryError(f"the registry's answer has no agent that can be used: {why}")
    return index, {"version": document.get("version"), "agents": agents}


def read_entries(agents: Iterable[Any]) -> Index:
    entries: dict[str, Entry] = {}
    left_out = []
    for number, agent in enumerate(agents):
        named = shown(agent.get("id")) if isinstance(agent, dict) else ""
        try:
            entry = _cleaned(msgspec.convert(agent, Entry))
        except (msgspec.ValidationError, RecursionError) as error:
            left_out.append(f"{named or f'agents[{number}]'}: {shown(str(error))}")
            continue
        if entry.id in entries:
            left_out.append(f"{entry.id}: is there twice")
        elif not entry.sources:
            left_out.append(f"{entry.id}: has no distribution that is known here")
        else:
            entries[entry.id] = entry
    return Index(list(entries.values()), left_out)


def shown(value: object, most: int = 200) -> str:
    """Text of a registry, safe to print: without control characters, on one line, cut."""
    return _CONTROL.sub(" ", value).strip()[:most] if isinstance(value, str) else ""


def _cleaned(entry: Entry) -> Entry:
    return msgspec.structs.replace(
        entry,
        name=shown(entry.name) or entry.id,
        description=shown(entry.description, 500),
        website=shown(entry.website, 500),
        repository=shown(entry.repository, 500),
        license=shown(entry.license),
    )
