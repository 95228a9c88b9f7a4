"""What can be installed: our own table, and above it the registry that `dragoman agents refresh` fetched last."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

import msgspec

from dragoman.agents.known import ADAPTED, KNOWN, KnownAgent
from dragoman.atomic_file import replace_file
from dragoman.config.errors import ConfigError
from dragoman.config.files.regular_file import read_regular
from dragoman.config.paths import Paths
from dragoman.config.sections.registry import RegistryConfig
from dragoman.gateway.ports.acts import Acting
from dragoman.registry import fetching, index
from dragoman.registry.errors import RegistryError, UnknownEntry
from dragoman.registry.index import Distribution, Entry, Package, Source
from dragoman.registry.versions import split_package

Origin = Literal["shipped", "registry"]
PROTECTED = ADAPTED | {"builtin"}
"""Names that a fetched registry cannot redefine: its agents speak ACP, and these are spoken to in another way."""


@dataclass(frozen=True, slots=True)
class Offer:
    """An agent that can be installed, under the name that it has here."""

    name: str
    entry: Entry
    origin: Origin

    @property
    def kind(self) -> Literal["acp", "claude", "codex"]:
        known = KNOWN.get(self.name)
        return known.kind if known is not None and known.kind in ADAPTED else "acp"  # type: ignore[return-value]

    @property
    def scripts(self) -> str:
        """Why its package has to run scripts, if our table says so."""
        known = KNOWN.get(self.name)
        return known.scripts if known is not None else ""

    def version(self, source: Source) -> str:
        """The version that a distribution has; a package may name its own."""
        found = self.entry.distribution
        package = {"npm": found.npx, "uv": found.uvx}.get(source)
        named = split_package(source, package.package)[1] if package is not None else None
        return named or self.entry.version


class Kept(msgspec.Struct, frozen=True):
    """A fetched registry as it is stored."""

    url: str
    etag: str
    fetched: str
    document: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Refreshed:
    url: str
    agents: int
    unchanged: bool
    new: list[str]
    gone: list[str]
    left_out: list[str]


class Catalog:
    def __init__(self, paths: Paths, settings: RegistryConfig) -> None:
        self._paths = paths
        self._settings = settings
        self._file = paths.agents_dir / "registry.json"
        self.trouble: str | None = None
        """Why the fetched registry is not used although there is one."""
        self.fetched: str | None = None
        """When the registry was fetched: ISO 8601, UTC; None: it was not."""

    def offers(self) -> dict[str, Offer]:
        """By name; a fetched entry comes before our own."""
        found = {entry.id: Offer(entry.id, entry, "shipped") for entry in shipped()}
        names = {known.registry_id: name for name, known in KNOWN.items() if known.registry_id}
        for entry in self._fetched_entries():
            name = names.get(entry.id, entry.id)
            if name not in PROTECTED:
                found[name] = Offer(name, entry, "registry")
        return found

    def find(self, name: str) -> Offer:
        """By its name here or its id in the registry; raises `UnknownEntry` with the nearest names."""
        offers = self.offers()
        by_id = {offer.entry.id: offer for offer in offers.values()}
        offer = offers.get(name) or by_id.get(name)
        if offer is None:
            if (known := KNOWN.get(name)) is not None:
                raise RegistryError(f"{name} is not in the registry: {_without_package(known)}")
            nearest = get_close_matches(name.lower(), [*offers, *by_id], n=3, cutoff=0.5)
            raise UnknownEntry(name, list(dict.fromkeys(nearest)))
        return offer

    def refresh(self, act: Acting, by: str) -> Refreshed:
        """Fetch the registry and keep it; raises `RegistryError` and keeps the one before if it cannot be used.

        `act` records it in the audit, `by` is who asked for it.
        """
        url = self._settings.url
        before = self._kept()
        etag = before.etag if before is not None and before.url == url and self.trouble is None else ""
        bounds = fetching.Bounds(index.MAX_BYTES, min(self._settings.timeout, 120.0))
        with self._keeping():
            got = fetching.fetch(url, bounds, etag)
            if got.unchanged and before is not None:
                document = before.document
                found = index.read_entries(document["agents"])
            else:
                found, document = index.parse(got.content)
        old = {entry.id for entry in self._fetched_entries()}
        new = {entry.id for entry in found.entries}
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        digest = hashlib.sha256(got.content).hexdigest() if got.content else None
        facts = {"by": by, "url": fetching.display(url), "agents": len(new), "sha256": digest}
        with act("registry_refreshed", facts):
            self._paths.ensure(self._paths.agents_dir)
            replace_file(self._file, msgspec.json.encode(Kept(url, got.etag, stamp, document)))
        return Refreshed(url, len(new), got.unchanged, sorted(new - old), sorted(old - new), found.left_out)

    @contextmanager
    def _keeping(self) -> Iterator[None]:
        try:
            yield
        except RegistryError as error:
            raise RegistryError(f"{error}; the list of agents stays as it was") from error

    def _fetched_entries(self) -> list[Entry]:
        kept = self._kept()
        if kept is None:
            return []
        self.fetched = kept.fetched
        agents = kept.document.get("agents")
        return index.read_entries(agents if isinstance(agents, list) else []).entries

    def _kept(self) -> Kept | None:
        self.trouble = None
        try:
            content = read_regular(self._file, 2 * index.MAX_BYTES)
            return msgspec.json.decode(content, type=Kept) if content is not None else None
        except (ConfigError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self.trouble = (
                f"the fetched registry cannot be read ({error}): only the agents that are known without it can be "
                "installed; `dragoman agents refresh` fetches it again"
            )
            return None


def shipped() -> list[Entry]:
    """Our own table of agents that have a package, in the registry's shape."""
    return [entry for name, known in KNOWN.items() if (entry := _entry(name, known)) is not None]


def _entry(name: str, known: KnownAgent) -> Entry | None:
    if known.package is None:
        return None
    manager, package, version = known.package
    found = Package(f"{package}@{version}", cmd=known.command[0], args=list(known.command[1:]))
    distribution = Distribution(npx=found) if manager == "npm" else Distribution(uvx=found)
    return Entry(name, known.title, version, known.title, distribution, website=known.homepage)


def _without_package(known: KnownAgent) -> str:
    if known.kind == "builtin":
        return "it is part of Dragoman"
    return f"install it by hand ({known.source}), or try `dragoman agents refresh`"
