"""Installs, updates and uninstalls agents.

An installation fetches, checks, records itself in the audit, unpacks into a folder of its own, and becomes visible in
one step at the end (`records.py`). Whatever ends it before leaves a folder that nothing names, which the next
installation of that agent removes.
"""

from __future__ import annotations

import errno
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dragoman.config.files.installed import InstalledAgent
from dragoman.config.paths import Paths
from dragoman.config.sections.registry import RegistryConfig
from dragoman.gateway.ports.acts import Acting
from dragoman.registry import fetching, packages
from dragoman.registry.archive_names import BadArchive
from dragoman.registry.catalog import Catalog, Offer
from dragoman.registry.errors import NeedsScripts, RegistryError
from dragoman.registry.index import Archive, Package, Source
from dragoman.registry.pins import Pins
from dragoman.registry.processes import processes_in
from dragoman.registry.records import Records
from dragoman.registry.unpacking import unpack
from dragoman.registry.versions import check_version, is_newer, split_package

Show = Callable[[str], None]
LATEST = "latest"
_MACHINES = {"amd64": "x86_64", "x64": "x86_64", "arm64": "aarch64"}
_FULL = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "your quota is used up",
    errno.EFBIG: "a file is too large",
}


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person wants installed."""

    offer: Offer
    version: str | None = None
    source: Source | None = None
    scripts: bool | None = None
    """Whether the package may run scripts; None: not said."""
    repin: bool = False
    again: bool = False
    """Also if this version is installed."""


@dataclass(frozen=True, slots=True)
class Done:
    """What became of it."""

    name: str
    agent: InstalledAgent
    before: str | None = None
    """The version that was installed before."""
    changed: bool = True
    in_use: tuple[str, ...] = ()
    """Older versions that processes still use."""
    scripts_left: bool = False


@dataclass(frozen=True, slots=True)
class Outdated:
    name: str
    installed: str
    available: str


class Installer:
    def __init__(
        self, paths: Paths, settings: RegistryConfig, act: Acting, by: str, show: Show = lambda text: None
    ) -> None:
        """`act` records in the audit, `by` is who asked, `show` gets what is being done."""
        self.catalog = Catalog(paths, settings)
        self.records = Records(paths)
        self._pins = Pins(paths.agents_dir / "pins.json")
        self._settings = settings
        self.act = act
        self._by = by
        self._show = show

    def install(self, wish: Wish) -> Done:
        name = wish.offer.name
        source = choose_source(wish.offer, wish.source)
        if source != "binary" and wish.offer.scripts and not wish.scripts:
            raise NeedsScripts(name, wish.offer.scripts)
        self._show(f"{name}: waiting for another installation…")
        with self.records.changing(name, self._settings.timeout), _disk_errors(name):
            version = self._version(wish, source)
            before = self.records.all().get(name)
            if before is not None and not wish.again and _is_there(before, version, source):
                return Done(name, before, before.version, changed=False)
            self.records.sweep(name)
            folder = self.records.new_folder(name, version)
            try:
                done = self._install(wish, source, version, folder)
            except BaseException:
                self.records.remove(folder)
                raise
            in_use = tuple(self.records.sweep(name))
        return Done(
            name,
            done.agent,
            before.version if before else None,
            in_use=in_use,
            scripts_left=done.scripts_left,
        )

    def _install(self, wish: Wish, source: Source, version: str, folder: Path) -> Done:
        if source == "binary":
            return self._install_archive(wish, version, folder)
        return self._install_package(wish, source, version, folder)

    def outdated(self) -> list[Outdated]:
        """Installed agents of which the catalog has a newer version."""
        offers = self.catalog.offers()
        found = []
        for name, agent in self.records.all().items():
            offer = offers.get(name)
            if offer is None or agent.source not in offer.entry.sources:
                continue
            available = offer.version(agent.source)
            if is_newer(available, agent.version):
                found.append(Outdated(name, agent.version, available))
        return found

    def update(self, name: str, scripts: bool | None = None) -> Done:
        """Install the catalog's version of an installed agent; scripts that were allowed before are allowed again."""
        agent = self._installed(name)
        offer = self.catalog.find(name)
        newer = (
            is_newer(offer.version(agent.source), agent.version)
            if agent.source in offer.entry.sources
            else False
        )
        if not newer:
            with self.records.changing(name, self._settings.timeout):
                in_use = tuple(self.records.sweep(name))
            return Done(name, agent, agent.version, changed=False, in_use=in_use)
        return self.install(Wish(offer, source=agent.source, scripts=agent.scripts or scripts))

    def uninstall(self, name: str, *, force: bool = False) -> InstalledAgent:
        with self.records.changing(name, self._settings.timeout):
            agent = self._installed(name)
            folders = self.records.versions(name)
            used = [pid for folder in folders for pid in processes_in(folder)]
            if used and not force:
                raise RegistryError(
                    f"{name} is in use by {_processes(used)}: end its sessions first, or use --force"
                )
            facts = {"by": self._by, "agent": name, "version": agent.version, "source": agent.source}
            with self.act("agent_uninstalled", facts):
                self.records.enter(name, None)
            for folder in folders:
                self.records.remove(folder)
        return agent

    def _installed(self, name: str) -> InstalledAgent:
        agent = self.records.all().get(name)
        if agent is None:
            raise RegistryError(
                f"{name} was not installed by Dragoman: `dragoman agents list` shows where it is from"
            )
        return agent

    def _version(self, wish: Wish, source: Source) -> str:
        offer = wish.offer
        has = check_version(offer.version(source))
        if wish.version is None or wish.version == has:
            return has
        if source == "binary":
            raise RegistryError(
                f"the registry has no version {wish.version} of {offer.name}: it has {has} "
                "(`dragoman agents refresh` fetches the newest list)"
            )
        if wish.version != LATEST:
            return wish.version
        self._show(f"{offer.name}: asking {source} for the newest version…")
        package, _ = split_package(source, self._package(offer, source).package)
        return check_version(packages.latest(source, package, self._settings.timeout))

    def _install_archive(self, wish: Wish, version: str, folder: Path) -> Done:
        name, archive = wish.offer.name, archive_for(wish.offer)
        bounds = fetching.Bounds(self._settings.max_bytes, self._settings.timeout)
        key = f"{name} {version} {this_platform()}"
        with tempfile.TemporaryFile(dir=folder.parent) as file:
            digest = fetching.download(archive.archive, file, bounds, self._progress(name))
            if archive.sha256 is not None and digest != archive.sha256.lower():
                raise RegistryError(
                    f"the archive of {name} {version} is not the one that the registry names: its SHA-256 is {digest}, "
                    f"not {archive.sha256.lower()}. It is not installed"
                )
            if not wish.repin:
                self._pins.check(key, digest, name)
            facts = self._facts(name, version, "binary", fetching.display(archive.archive), wish.scripts)
            with self.act("agent_installed", {**facts, "hash": digest, "pinned": archive.sha256 is not None}):
                self._show(f"{name}: unpacking…")
                try:
                    program = unpack(file, urlsplit(archive.archive).path, folder, archive.cmd)
                except BadArchive as error:
                    raise RegistryError(f"{name} {version} is not installed: {error}") from error
                self._pins.keep(key, digest)
                agent = InstalledAgent(
                    version=version,
                    source="binary",
                    package=fetching.display(archive.archive),
                    folder=folder.name,
                    hash=digest,
                    pinned=archive.sha256 is not None,
                    installed=_now(),
                    kind=wish.offer.kind,
                    command=_command(wish.offer, program, archive.args),
                    env=dict(archive.env),
                )
                self.records.enter(name, agent)
        return Done(name, agent)

    def _install_package(self, wish: Wish, source: Source, version: str, folder: Path) -> Done:
        name, found = wish.offer.name, self._package(wish.offer, source)
        package, _ = split_package(source, found.package)
        run = packages.install_npm if source == "npm" else packages.install_uv
        packages.manager(source)
        facts = self._facts(name, version, source, package, wish.scripts)
        with self.act("agent_installed", facts):
            self._show(f"{name}: {source} installs {package} {version}…")
            made = run(
                package, version, found.cmd, folder, self._settings.timeout, scripts=bool(wish.scripts)
            )
            if made.integrity is not None:
                key = f"{name} {version} {source}"
                if not wish.repin:
                    self._pins.check(key, made.integrity, name)
                self._pins.keep(key, made.integrity)
            agent = InstalledAgent(
                version=version,
                source=source,
                package=package,
                folder=folder.name,
                hash=made.integrity,
                scripts=bool(wish.scripts),
                installed=_now(),
                kind=wish.offer.kind,
                command=_command(wish.offer, made.program, found.args),
                env=dict(found.env),
            )
            self.records.enter(name, agent)
        return Done(name, agent, scripts_left=made.scripts_left)

    def _package(self, offer: Offer, source: Source) -> Package:
        found = offer.entry.distribution.npx if source == "npm" else offer.entry.distribution.uvx
        assert found is not None, "choose_source looked"
        return found

    def _facts(
        self, name: str, version: str, source: Source, package: str, scripts: bool | None
    ) -> dict[str, Any]:
        return {
            "by": self._by,
            "agent": name,
            "version": version,
            "source": source,
            "package": package,
            "scripts": bool(scripts),
        }

    def _progress(self, name: str) -> fetching.Progress:
        def show(done: int, whole: int | None) -> None:
            of = f" of {_megabytes(whole)}" if whole else ""
            self._show(f"{name}: {_megabytes(done)}{of} fetched…")

        return show


def _is_there(agent: InstalledAgent, version: str, source: Source) -> bool:
    return (agent.version, agent.source) == (version, source) and Path(agent.command[0]).exists()


def this_platform() -> str:
    system = {"darwin": "darwin", "win32": "windows"}.get(sys.platform, "linux")
    machine = platform.machine().lower()
    return f"{system}-{_MACHINES.get(machine, machine)}"


def archive_for(offer: Offer) -> Archive:
    binary = offer.entry.distribution.binary
    found = binary.get(this_platform())
    if found is None:
        there = ", ".join(sorted(binary)) or "none"
        raise RegistryError(f"{offer.name} has no program for {this_platform()}; there are: {there}")
    return found


def choose_source(offer: Offer, wanted: Source | None = None) -> Source:
    """A program with a known hash first, then a package whose manager is here, then what is left."""
    sources = offer.entry.sources
    if wanted is not None:
        if wanted not in sources:
            raise RegistryError(f"{offer.name} is not offered as {wanted}; there is: {', '.join(sources)}")
        if wanted == "binary":
            archive_for(offer)
        return wanted
    here = offer.entry.distribution.binary.get(this_platform())
    ready = [source for source in sources if source != "binary" and packages.find_manager(source) is not None]
    if here is not None and here.sha256 is not None:
        return "binary"
    if ready:
        return ready[0]
    if here is not None:
        return "binary"
    rest = [source for source in sources if source != "binary"]
    if not rest:
        archive_for(offer)  # raises, with what there is
    return rest[0]


def _command(offer: Offer, program: Path, arguments: list[str]) -> list[str]:
    """Of an agent with its own protocol the program alone: the gateway adds the arguments."""
    return [str(program)] if offer.kind != "acp" else [str(program), *arguments]


@contextmanager
def _disk_errors(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = _FULL.get(error.errno or 0) or error.strerror or str(error)
        raise RegistryError(
            f"{name} is not installed: {why} ({error.filename or 'while writing'})"
        ) from error


def _processes(pids: list[int]) -> str:
    some = ", ".join(map(str, sorted(set(pids))[:5]))
    return f"process {some}" if len(set(pids)) == 1 else f"processes {some}"


def _megabytes(count: int) -> str:
    return f"{count / 1_000_000:.1f} MB"


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
