"""Finding files and lines: with ripgrep and git where they are installed, else in Python."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import stat
import subprocess
import tempfile
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import msgspec

from dragoman.agents.environment import inherited

SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "target", "dist", "build"})
"""Folders that are not searched outside of git repositories; hidden folders are left out as well."""

MAX_FILE_BYTES = 10 * 1024 * 1024
"""Larger files are taken for data and not searched."""

_PROBE_BYTES = 8192


class SearchError(Exception):
    """The search failed; the message is a sentence."""


@dataclass(frozen=True, slots=True)
class Match:
    path: str
    """Relative to the folder that was searched."""
    line: int
    text: str


async def search(folder: str, pattern: str, glob: str | None, ignore_case: bool, limit: int) -> list[Match]:
    """The first matches below a folder; cancelling stops the search."""
    program = shutil.which("rg")
    if program is not None:
        ripgrep = _Ripgrep(program, folder, pattern, glob, ignore_case, limit)
        try:
            return await asyncio.to_thread(ripgrep.run)
        finally:
            ripgrep.stop()
    stop = threading.Event()
    expression = compile_pattern(pattern, ignore_case)
    try:
        return await asyncio.to_thread(search_in_python, folder, expression, glob, limit, stop)
    finally:
        stop.set()


def compile_pattern(pattern: str, ignore_case: bool) -> re.Pattern[bytes]:
    try:
        return re.compile(pattern.encode(), re.MULTILINE | (re.IGNORECASE if ignore_case else 0))
    except re.error as error:
        raise SearchError(f"{pattern!r} is not a regular expression: {error}.") from error


def search_in_python(
    folder: str, expression: re.Pattern[bytes], glob: str | None, limit: int, stop: threading.Event
) -> list[Match]:
    """Search each file as a whole; only files with a match are split into lines."""
    found: list[Match] = []
    chosen = translate(glob).fullmatch if glob is not None else None
    find = expression.search
    for path in list_files(folder):
        if stop.is_set():
            break
        if chosen is not None and chosen(path) is None:
            continue
        data = _read_text(f"{folder}/{path}")
        if data and find(data) is not None and b"\0" not in data[:_PROBE_BYTES]:
            found.extend(_matching_lines(path, data, expression))
            if len(found) >= limit:
                break
    return found[:limit]


def _read_text(path: str) -> bytes:
    # os.open and not open(): the file object costs more than reading a small file. No symlinks, as with ripgrep:
    # they may lead out of the workspace.
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return b""  # removed meanwhile, a symlink, or not readable: the search continues
    try:
        data = os.read(descriptor, _PROBE_BYTES * 8)
        if len(data) < _PROBE_BYTES * 8:
            return data
        status = os.fstat(descriptor)
        if (
            b"\0" in data[:_PROBE_BYTES]
            or status.st_size > MAX_FILE_BYTES
            or not stat.S_ISREG(status.st_mode)
        ):
            return b""
        parts = [data]
        left = MAX_FILE_BYTES  # it may grow while it is read
        while left > 0 and (part := os.read(descriptor, min(left, 1024 * 1024))):
            parts.append(part)
            left -= len(part)
        return b"".join(parts)
    except OSError:
        return b""  # a folder or a device
    finally:
        os.close(descriptor)


def _matching_lines(path: str, data: bytes, expression: re.Pattern[bytes]) -> Iterator[Match]:
    for number, line in enumerate(data.splitlines(), start=1):
        if expression.search(line) is not None:
            yield Match(path, number, line.decode(errors="replace"))


def list_files(folder: str) -> Iterable[str]:
    """Paths of the files below a folder, relative to it, without what git ignores."""
    listed = _git_files(folder)
    return listed if listed is not None else _walk(folder, "")


def _git_files(folder: str) -> list[str] | None:
    """Tracked files, and untracked ones that are not ignored; None without git or outside of a repository."""
    if not _in_repository(folder):
        return None
    command = ["git", "-C", folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listing = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
            env=inherited(os.environ),
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if listing.returncode != 0:
        return None
    names = dict.fromkeys(os.fsdecode(name) for name in listing.stdout.split(b"\0") if name)
    return _without_linked_folders(folder, names)


def _without_linked_folders(folder: str, names: Iterable[str]) -> list[str]:
    """The names that are not below a symlink: a tracked folder may have become a symlink to elsewhere."""
    real = os.path.realpath(folder)
    known: dict[str, bool] = {"": True}
    found = []
    for name in names:
        parent = name.rpartition("/")[0]
        if parent not in known:
            known[parent] = os.path.realpath(f"{real}/{parent}") == f"{real}/{parent}"
        if known[parent]:
            found.append(name)
    return found


def _in_repository(folder: str) -> bool:
    return any((place / ".git").exists() for place in (Path(folder), *Path(folder).parents))


def _walk(folder: str, below: str) -> Iterator[str]:
    try:
        with os.scandir(f"{folder}/{below}") as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError:
        return  # the search continues without a folder that cannot be read
    for entry in entries:
        name = entry.name
        if name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            if name not in SKIPPED:
                yield from _walk(folder, f"{below}{name}/")
        elif entry.is_file():
            yield below + name


def glob_files(folder: str, pattern: str, limit: int) -> list[str]:
    """Files whose path matches, the last changed first."""
    chosen = translate(pattern).fullmatch
    found = [path for path in list_files(folder) if chosen(path)]

    def changed(path: str) -> float:
        try:
            return Path(folder, path).stat().st_mtime
        except OSError:
            return 0.0

    return sorted(found, key=changed, reverse=True)[:limit]


_TOKENS = re.compile(r"\*\*/|\*\*|\*|\?|\[[!^]?\]?[^\]]*\]|\{[^{}]*\}|.", re.DOTALL)


def translate(pattern: str) -> re.Pattern[str]:
    """A glob as a regular expression for whole relative paths; one without a slash matches the file name only."""
    pattern = pattern.removeprefix("./")
    start = "" if "/" in pattern else "(?:.*/)?"
    try:
        return re.compile(start + "".join(map(_translate, _TOKENS.findall(pattern))))
    except re.error as error:
        raise SearchError(f"{pattern!r} is not a file pattern: {error}.") from error


def _translate(token: str) -> str:
    fixed = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    if token in fixed:
        return fixed[token]
    if token.startswith("[") and len(token) > 1:
        return "[" + token[1:].replace("!", "^", 1) if token[1] == "!" else token
    if token.startswith("{") and len(token) > 1:
        choices = token[1:-1].split(",")
        return "(?:" + "|".join("".join(map(_translate, _TOKENS.findall(c))) for c in choices) + ")"
    return re.escape(token)


class _RgText(msgspec.Struct):
    text: str | None = None


class _RgData(msgspec.Struct):
    path: _RgText | None = None
    lines: _RgText | None = None
    line_number: int | None = None


class _RgLine(msgspec.Struct):
    type: str
    data: _RgData


class _Ripgrep:
    """One run of ripgrep, in a thread; `stop` may be called from another."""

    def __init__(
        self,
        program: str,
        folder: str,
        pattern: str,
        glob: str | None,
        ignore_case: bool,
        limit: int,
    ) -> None:
        self._folder = folder
        self._limit = limit
        self._stopped = False
        self._process: subprocess.Popen[bytes] | None = None
        self._command = [program, "--json", "--no-messages", "--max-filesize", "10M", "--sort", "path"]
        self._command += ["--ignore-case"] if ignore_case else []
        self._command += ["--glob", glob] if glob is not None else []
        if not _in_repository(folder):
            self._command += [word for name in sorted(SKIPPED) for word in ("--glob", f"!**/{name}/**")]
        self._command += ["--regexp", pattern, "./"]

    def run(self) -> list[Match]:
        found: list[Match] = []
        decoder = msgspec.json.Decoder(_RgLine)
        # stderr is a file, not a pipe: the loop that reads the matches cannot drain a second pipe.
        with tempfile.TemporaryFile() as complaints:
            with self._start(complaints) as process:
                assert process.stdout is not None
                for raw in process.stdout:
                    line = decoder.decode(raw)
                    if line.type == "match":
                        found.append(_rg_match(line.data))
                    if len(found) >= self._limit:
                        process.kill()
                        return found
            complaints.seek(0)
            complaint = complaints.read(_PROBE_BYTES).decode(errors="replace").strip()
        if complaint and process.returncode == 2 and not found:
            raise SearchError(f"The search failed: {complaint}")
        return found

    def _start(self, complaints: IO[bytes]) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            self._command,
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=complaints,
            env=inherited(os.environ),
        )
        if self._stopped:  # stopped while the process was starting
            self._process.kill()
        return self._process

    def stop(self) -> None:
        """Kill the process, also one that is just starting; the thread then reads the end of the output."""
        self._stopped = True
        if self._process is not None:
            self._process.kill()


def _rg_match(data: _RgData) -> Match:
    path = data.path.text if data.path is not None and data.path.text is not None else "?"
    text = data.lines.text if data.lines is not None and data.lines.text is not None else ""
    return Match(path.removeprefix("./"), data.line_number or 0, text.rstrip("\n"))
