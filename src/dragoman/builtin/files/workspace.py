"""The files of a session: accessed through the client if it offers that, else directly, and always inside the roots.

Text of up to `MAX_TEXT_BYTES` is read whole, and its hash shows later whether the file has changed.
Larger files are read in parts, directly from disk: no editor holds them in a buffer.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from dragoman.builtin.client import Client
from dragoman.builtin.errors import ToolError
from dragoman.services.files import Files, skip_lines
from dragoman.services.roots import Roots
from dragoman.wire.errors import NOT_FOUND, RpcError

MAX_TEXT_BYTES = 10 * 1024 * 1024
"""The largest file that is read whole or edited."""

_PROBE_BYTES = 8192
"""How much of a file is looked at to tell text from binary."""


_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Text:
    """Lines of a file with their numbers, by which the reader can ask for more."""

    content: str
    first_line: int
    last_line: int
    total_lines: int | None
    """None for a file that is too large to count."""


class Workspace:
    """The files of one session."""

    def __init__(self, session: str, cwd: str, roots: Sequence[str], client: Client) -> None:
        self._session = session
        self._client = client
        self._roots = Roots(roots)
        self._files = Files(self._roots)
        self.cwd = cwd
        self.roots = tuple(roots)
        self._seen: dict[str, int] = {}
        self.originals: dict[str, str | None] = {}
        """The content of each file before this session first changed it; None for a file that it made."""

    # -- paths

    def path(self, given: str) -> str:
        """The absolute path, which must be inside the roots; a relative one starts at the session's folder."""
        if not given.strip():
            raise ToolError("The path is empty.")
        expanded = Path(given).expanduser() if given.startswith("~") else Path(given)
        path = os.path.normpath(Path(self.cwd, expanded))
        try:
            self._roots.resolve(path)
        except RpcError as error:
            raise _tool_error(error) from error
        return path

    def folder(self, given: str | None) -> str:
        """The absolute path of a folder; whether it is one is for `check_folder`, once the call is allowed."""
        return self.path(given) if given else self.cwd

    def check_folder(self, path: str) -> None:
        if not Path(path).is_dir():
            raise ToolError(f"{self.show(path)} is not a folder.")

    def show(self, path: str) -> str:
        """The path for display: relative to the session's folder if it is below that."""
        return os.path.relpath(path, self.cwd) if Path(path).is_relative_to(self.cwd) else path

    def outside(self, path: str) -> str:
        """The path as the client knows it."""
        return path

    def with_outside_paths(self, text: str) -> str:
        """The text with its paths replaced by those that the client knows."""
        return text

    @property
    def mounts(self) -> Sequence[tuple[str, str]]:
        """The folders to mount into the box of a command: path on this disk, path in the box."""
        return [(root, root) for root in self.roots]

    # -- reading

    async def read(self, path: str, line: int = 1, limit: int | None = None) -> Text:
        """Lines of a text file; refuses what is not text."""
        size = await self._in_thread(self._probe, path)
        if size is not None and size > MAX_TEXT_BYTES:
            return await self._in_thread(self._read_part, path, line, limit)
        text = await self.whole(path)
        lines = text.splitlines(keepends=True)
        chosen = lines[line - 1 :] if limit is None else lines[line - 1 : line - 1 + limit]
        return Text("".join(chosen), line, line + len(chosen) - 1, len(lines))

    async def whole(self, path: str) -> str:
        """The whole text; the file counts as read from now on."""
        text = await self._load(path)
        self._seen[path] = hash(text)
        return text

    async def data(self, path: str, limit: int) -> bytes:
        """The bytes of a file that is not text."""

        def read() -> bytes:
            with self._roots.place(path) as place, os.fdopen(place.open(os.O_RDONLY), "rb") as file:
                return file.read(limit + 1)

        data = await self._in_thread(read)
        if len(data) > limit:
            raise ToolError(f"{self.show(path)} is larger than {limit} bytes.")
        return data

    async def exists(self, path: str) -> bool:
        return await asyncio.to_thread(Path(path).is_file)

    # -- writing

    async def current(self, path: str) -> str | None:
        """The current text, as the base of a change; None for a new file.

        Refuses a file that changed since it was read: the change was decided on the old text.
        """
        if not await self.exists(path) and not self._client.reads_files:
            return None
        try:
            size = await self._in_thread(self._probe, path)
            if size is not None and size > MAX_TEXT_BYTES:
                raise ToolError(f"{self.show(path)} has {size} bytes: too large to edit.")
            text = await self._load(path)
        except FileNotFoundError:
            return None
        seen = self._seen.get(path)
        if seen is not None and seen != hash(text):
            del self._seen[path]
            raise ToolError(f"{self.show(path)} changed since it was read: read it again, then decide.")
        return text

    def was_read(self, path: str) -> bool:
        return path in self._seen

    async def write(self, path: str, text: str, before: str | None) -> None:
        """Write the text; `before` is the result of `current` and must still be the content."""
        now = await self.current(path)
        if now != before:
            self._seen.pop(path, None)
            raise ToolError(f"{self.show(path)} changed meanwhile: read it again, then decide.")
        if self._client.writes_files:
            try:
                await self._client.write_text(self._session, path, text)
            except RpcError as error:
                raise _tool_error(error) from error
        else:
            params = msgspec.json.encode({"path": path, "content": text})
            await self._in_thread(self._files.write, params)
        self._seen[path] = hash(text)
        self.originals.setdefault(path, before)

    # -- underneath

    async def _load(self, path: str) -> str:
        if self._client.reads_files:
            try:
                return await self._client.read_text(self._session, path)
            except RpcError as error:
                if error.code == NOT_FOUND:
                    raise FileNotFoundError(f"There is no file {self.show(path)}.") from error
                raise _tool_error(error) from error
        return await self._in_thread(self._read_all, path)

    def _read_all(self, path: str) -> str:
        with self._roots.place(path) as place, os.fdopen(place.open(os.O_RDONLY), "rb") as file:
            data = file.read(MAX_TEXT_BYTES + 1)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise ToolError(f"{self.show(path)} is not UTF-8 text (byte {error.start}).") from error

    def _probe(self, path: str) -> int | None:
        """The size of a text file on this disk; None if it is missing here but the client may have it."""
        if not Path(path).exists() and self._client.reads_files:
            return None
        with self._roots.place(path) as place, os.fdopen(place.open(os.O_RDONLY), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if b"\0" in file.read(_PROBE_BYTES):
                raise ToolError(
                    f"{self.show(path)} is a binary file of {size} bytes; it is not shown as text."
                )
        return size

    def _read_part(self, path: str, line: int, limit: int | None) -> Text:
        with self._roots.place(path) as place, os.fdopen(place.open(os.O_RDONLY), "rb") as file:
            skip_lines(file, line - 1)
            taken = bytearray()
            count = 0
            while (limit is None or count < limit) and len(taken) < MAX_TEXT_BYTES:
                part = file.readline(MAX_TEXT_BYTES - len(taken))
                if not part:
                    break
                taken += part
                count += part.endswith(b"\n")
        return Text(taken.decode(errors="replace"), line, line + max(count - 1, 0), None)

    async def _in_thread(self, work: Callable[..., _T], *arguments: object) -> _T:
        try:
            return await asyncio.to_thread(work, *arguments)
        except RpcError as error:
            if error.code == NOT_FOUND:
                path = str(arguments[0]) if arguments else ""
                raise FileNotFoundError(f"There is no file {self.show(path)}.") from error
            raise _tool_error(error) from error


def _tool_error(error: RpcError) -> ToolError:
    text = error.message
    return ToolError(text if text.endswith(".") else f"{text}.")
