"""Runs the git program on a repository of ours, so that nothing a project contains can make it run a program.

Theory of operation. Every call names our own git directory, and a work tree at most as a place to read. The environment
is built here: no variable of ours or of the user reaches git, and no configuration but our repository's own. It has no
filters, hooks, external diffs or fsmonitor, so that a project's `.gitattributes` and `.git/config` have nothing to name.
`info/attributes` of our repository overrides what attributes could still convert (line ends, encodings, `$Id$`) or hide
(`-diff`): what is recorded is the bytes of each file.
"""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from dragoman.gateway.ports.checkpoints import CheckpointError

PATIENCE = 60.0
"""Seconds for one call of git: a network disk may hang, and a thread must not hang with it."""
LONGEST_COMPLAINT = 300
CHUNK = 1 << 16

NO_GIT = (
    "There is no program `git` on the PATH, so no checkpoints are made: install git, then restart Dragoman."
)

CONFIG = b"""[core]
\trepositoryformatversion = 0
\tbare = false
\tfilemode = true
\tsymlinks = true
\tignorecase = false
\tautocrlf = false
\tsafecrlf = false
\tfsmonitor = false
\tuntrackedcache = false
\thookspath = /dev/null
\tattributesfile = /dev/null
\texcludesfile = /dev/null
\tfsync = none
\tcompression = 1
\tlogallrefupdates = false
\tquotepath = true
[gc]
\tauto = 0
[maintenance]
\tauto = false
[diff]
\texternal =
\trenames = true
\trenamelimit = 2000
\tignoresubmodules = all
[fastimport]
\tunpacklimit = 100
"""
ATTRIBUTES = b"* -text !eol -crlf -ident !filter !working-tree-encoding !diff !merge !whitespace\n"


class Program:
    """The git program, and its processes that run."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._running: set[Running] = set()
        self._stopped = False

    def stop(self) -> None:
        """End all processes, and start no more."""
        self._stopped = True
        for running in list(self._running):
            running.give_up()

    @contextmanager
    def watching(self, running: Running) -> Iterator[None]:
        """End a process that runs too long, or longer than this program may."""
        timer = threading.Timer(PATIENCE, running.give_up)
        timer.daemon = True
        timer.start()
        self._running.add(running)
        if self._stopped:
            running.give_up()
        try:
            yield
        finally:
            timer.cancel()
            self._running.discard(running)


class Git:
    """The git program with one git directory of ours."""

    def __init__(self, program: Program, directory: Path) -> None:
        self.program = program
        self.directory = directory

    def environment(self, index: Path | None = None, tree: str | None = None) -> dict[str, str]:
        found = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": "/nonexistent",
            "LC_ALL": "C",
            "GIT_DIR": str(self.directory),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_LITERAL_PATHSPECS": "1",
        }
        if index is not None:
            found["GIT_INDEX_FILE"] = str(index)
        if tree is not None:
            found["GIT_WORK_TREE"] = tree
        return found

    def run(
        self,
        *words: str,
        given: bytes = b"",
        index: Path | None = None,
        tree: str | None = None,
        accepted: Sequence[int] = (0,),
    ) -> bytes:
        """Run to the end and return what it printed; raises `CheckpointError`."""
        with self.started(*words, index=index, tree=tree) as running:
            try:
                printed, _ = running.process.communicate(given)
            except BrokenPipeError:
                printed = b""
        running.check(accepted)
        return printed

    @contextmanager
    def started(self, *words: str, index: Path | None = None, tree: str | None = None) -> Iterator[Running]:
        """A running git; at the end of the block it is waited for, or ended if the block raises."""
        with tempfile.TemporaryFile() as complaints:
            try:
                process = subprocess.Popen(
                    [self.program.path, *words],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=complaints,
                    env=self.environment(index, tree),
                    cwd=tree or self.directory,
                )
            except OSError as error:
                raise CheckpointError(_not_started(error, tree or str(self.directory))) from error
            running = Running(process, words[0], complaints)
            with self.program.watching(running):
                try:
                    yield running
                except BaseException:
                    process.kill()
                    raise
                finally:
                    running.finish()


def find_git() -> Program | None:
    """The git program; one that is found in the current folder does not count."""
    found = shutil.which("git")
    return Program(found) if found is not None and Path(found).is_absolute() else None


class Running:
    """A git process; the caller reads or writes its pipes."""

    def __init__(self, process: subprocess.Popen[bytes], name: str, complaints: IO[bytes]) -> None:
        self.process = process
        self._name = name
        self._complaints = complaints
        self._said = b""
        self._late = False

    def give_up(self) -> None:
        self._late = True
        self.process.kill()

    def finish(self) -> None:
        """Close the pipes, wait for the end, and keep what it complained of."""
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                if pipe is not None:
                    pipe.close()
            except OSError:
                pass  # it ended before it read everything; its exit code says so
        self.process.wait()
        self._complaints.seek(0)
        self._said = self._complaints.read(LONGEST_COMPLAINT)

    def check(self, accepted: Sequence[int] = (0,)) -> None:
        """Raise if it failed; call it after the block."""
        if self._late:
            raise CheckpointError(
                f"git {self._name} was ended: it took longer than {PATIENCE:g} s, or Dragoman ends."
            )
        if self.process.returncode not in accepted:
            said = self._said.decode(errors="replace").strip().removeprefix("fatal: ")
            raise CheckpointError(
                f"git {self._name} failed: {said or f'exit code {self.process.returncode}'}"
            )

    def blob(self, object_id: str) -> bytes:
        """The content of an object, from a `cat-file --batch`; raises `OSError` if it is gone or ended."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(object_id.encode() + b"\n")
        self.process.stdin.flush()
        words = self.process.stdout.readline().split()
        if len(words) != 3:
            raise OSError(errno.EIO, f"The recorded content {object_id} cannot be read")
        return self.process.stdout.read(int(words[2]) + 1)[:-1]

    def names(self, limit: int) -> list[bytes]:
        """The names that it prints, each ended by NUL; at most one more than `limit`, then it is ended."""
        assert self.process.stdout is not None
        parts: list[bytes] = []
        count = 0
        while piece := self.process.stdout.read(CHUNK):
            parts.append(piece)
            count += piece.count(b"\0")
            if count > limit:
                self.process.kill()
                break
        return b"".join(parts).split(b"\0")[: min(count, limit + 1)]


def _not_started(error: OSError, folder: str) -> str:
    if not Path(folder).is_dir():
        return f"The folder {folder} does not exist any more."
    return f"git could not be started: {error.strerror}"
