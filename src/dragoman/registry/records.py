"""The list of installed agents, `agents/installed.json`, and the folders of their versions."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from dragoman.atomic_file import lock_holder, locked, replace_file
from dragoman.config.files.installed import FORMAT, MARK, InstalledAgent, InstalledFile, read_installed
from dragoman.config.paths import Paths
from dragoman.registry.errors import RegistryError
from dragoman.registry.pins import LOCK_SECONDS
from dragoman.registry.processes import processes_in

REMOVED = ".removed-"
"""Prefix of a folder that is being deleted."""


class Records:
    """An agent is installed once the list names it: a folder that the list does not name is left from a failure.

    Each folder is used by one installation alone and never changed afterwards, so that the version a running process
    was started from stays as it is.
    """

    def __init__(self, paths: Paths) -> None:
        self._paths = paths
        self.folder = paths.agents_dir

    def all(self) -> dict[str, InstalledAgent]:
        return read_installed(self._paths.installed_file)

    @contextmanager
    def changing(self, name: str, seconds: float) -> Iterator[None]:
        """Hold the lock of one agent; another process that installs it is waited for."""
        self._paths.ensure(self.folder)
        file = self.folder / f".{name}.lock"
        try:
            with locked(file, seconds):
                yield
        except BlockingIOError as error:
            raise RegistryError(
                f"{name} is being installed for more than {seconds:.0f} s by {lock_holder(file)}: "
                "try again when that is done"
            ) from error

    def new_folder(self, name: str, version: str) -> Path:
        """A new empty folder for a version; if there is one already, with a number behind it."""
        above = self._paths.ensure(self.folder / name)
        for number in range(1000):
            folder = above / (f"{version}.{number}" if number else version)
            try:
                folder.mkdir(mode=0o700)
                (folder / MARK).touch()
                return folder
            except FileExistsError:
                continue
        raise RegistryError(f"{above} has too many folders of version {version}: remove them")

    def enter(self, name: str, agent: InstalledAgent | None) -> None:
        """Make an agent visible, or with None invisible, in one step."""
        with locked(self.folder / ".installed.lock", LOCK_SECONDS):
            agents = {**self.all()}
            agents.pop(name, None)
            if agent is not None:
                agents[name] = agent
            content = msgspec.json.encode(InstalledFile(FORMAT, dict(sorted(agents.items()))))
            replace_file(self._paths.installed_file, msgspec.json.format(content, indent=2))

    def sweep(self, name: str) -> list[str]:
        """Remove the versions of an agent that the list does not name and no process uses; returns those in use."""
        current = self.all().get(name)
        kept = []
        for folder in self.versions(name):
            if current is not None and folder.name == current.folder:
                continue
            if not folder.name.startswith(REMOVED) and processes_in(folder):
                kept.append(folder.name)
            else:
                self.remove(folder)
        return kept

    def versions(self, name: str) -> list[Path]:
        try:
            return sorted(folder for folder in (self.folder / name).iterdir() if folder.is_dir())
        except OSError:
            return []

    def remove(self, folder: Path) -> None:
        """Delete a version: renamed first, so that it is never there in part."""
        gone = folder
        if not folder.name.startswith(REMOVED):
            gone = folder.with_name(f"{REMOVED}{folder.name}-{os.urandom(4).hex()}")
            try:
                folder.rename(gone)
            except FileNotFoundError:
                return
        shutil.rmtree(gone, ignore_errors=True)
        try:
            folder.parent.rmdir()  # if this was the last version
        except OSError:
            pass
