"""The box of sandbox mode: the files that its tools see, and bubblewrap around its commands.

The box holds a copy of the session's folders (`box_copy.py`) at the same paths, made on first use: nothing in it
changes the workspace until the user allows `apply`. With `sandbox_files = "workspace"` it holds the folders themselves.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from dragoman.builtin.client import Client
from dragoman.builtin.errors import Refused, ToolError
from dragoman.builtin.files.workspace import Workspace
from dragoman.builtin.sandbox.box_copy import Change, Copy, CopyError
from dragoman.sandbox.bubblewrap import ETC, SYSTEM


class Box:
    """One session's box."""

    def __init__(self, workspace: Workspace, folder: Path | None, *, in_place: bool) -> None:
        """`folder` is where the copy is stored; None: in a temporary folder until the session ends.

        `in_place`: commands work on the workspace itself, and there is no copy.
        """
        self._real = workspace
        self._folder = folder
        self._in_place = in_place
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._opening = asyncio.Lock()
        self._opened: BoxWorkspace | None = None
        self._copies: list[Copy] = []

    async def workspace(self) -> Workspace:
        """The files in the box."""
        if self._in_place:
            return self._real
        async with self._opening:
            if self._opened is None:
                try:
                    self._opened = await asyncio.to_thread(self._open)
                except (CopyError, OSError) as error:
                    raise Refused(
                        f"Sandbox mode works on a copy of the workspace, which cannot be made: {error}. "
                        'With `sandbox_files = "workspace"` in the settings of this agent it works on the '
                        "workspace itself."
                    ) from error
        return self._opened

    async def changes(self) -> list[Change]:
        """The files that differ in the box from the workspace as it was copied."""
        if self._in_place:
            raise ToolError("Sandbox mode works on the workspace itself here: there is nothing to apply.")
        await self.workspace()
        return await asyncio.to_thread(lambda: [change for copy in self._copies for change in copy.changes()])

    async def remove(self) -> None:
        """Delete the copy; the next use makes a new one."""
        async with self._opening:
            self._opened, copies, self._copies = None, self._copies, []
            for copy in copies:
                await asyncio.to_thread(copy.remove)

    def close(self) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None
            self._opened = None

    def _open(self) -> BoxWorkspace:
        folder = self._folder
        if folder is None:
            self._temporary = self._temporary or tempfile.TemporaryDirectory(prefix="dragoman-box-")
            folder = Path(self._temporary.name)
        tops = _tops(self._real.roots)
        self._copies = [Copy(Path(root), folder / str(number)) for number, root in enumerate(tops)]
        for copy in self._copies:
            copy.make()
        return BoxWorkspace(self._real, {box_copy.source: box_copy.target for box_copy in self._copies})


class BoxWorkspace(Workspace):
    """The copy, under the paths of the original; the client's file methods are not used."""

    def __init__(self, real: Workspace, copies: dict[Path, Path]) -> None:
        self._copies = copies
        self._real_cwd = real.cwd
        roots = [self._inside(root) for root in real.roots]
        super().__init__("", self._inside(real.cwd), roots, _NoClient())

    def path(self, given: str) -> str:
        expanded = Path(given).expanduser() if given.startswith("~") else Path(given)
        return super().path(
            self._inside(os.path.normpath(Path(self._real_cwd, expanded))) if given.strip() else given
        )

    def show(self, path: str) -> str:
        outside = self.outside(path)
        inside = PurePosixPath(outside).is_relative_to(self._real_cwd)
        return os.path.relpath(outside, self._real_cwd) if inside else outside

    def outside(self, path: str) -> str:
        for source, target in self._copies.items():
            if Path(path).is_relative_to(target):
                return str(source / Path(path).relative_to(target))
        return path

    def with_outside_paths(self, text: str) -> str:
        for source, target in self._copies.items():
            text = text.replace(str(target), str(source))
        return text

    @property
    def mounts(self) -> Sequence[tuple[str, str]]:
        return [(str(target), str(source)) for source, target in self._copies.items()]

    def _inside(self, path: str) -> str:
        for source, target in self._copies.items():
            if Path(path).is_relative_to(source):
                return str(target / Path(path).relative_to(source))
        return path


class _NoClient(Client):
    """A client that offers no files: an editor's buffers are outside of the box."""

    def __init__(self) -> None:
        self.capabilities = {}


def boxed(words: Sequence[str], mounts: Sequence[tuple[str, str]], cwd: str) -> list[str]:
    """The command wrapped in bubblewrap; raises `Refused` if that is not installed."""
    program = shutil.which("bwrap")
    if program is None:
        raise Refused("Sandbox mode needs bubblewrap (the program `bwrap`), which is not installed here.")
    box = [program, "--die-with-parent", "--unshare-all", "--new-session", "--proc", "/proc", "--dev", "/dev"]
    box += ["--tmpfs", "/tmp", "--setenv", "HOME", "/tmp"]
    for path in (*SYSTEM, *ETC):
        box += ["--ro-bind-try", path, path]
    for source, target in mounts:
        box += ["--bind", source, target]
    return [*box, "--chdir", cwd, "--", *words]


def _tops(roots: Sequence[str]) -> list[str]:
    """The roots without those inside other roots."""
    paths = [Path(root) for root in dict.fromkeys(roots)]
    return [
        str(path)
        for path in paths
        if not any(path != other and path.is_relative_to(other) for other in paths)
    ]
