"""A recorded tree with a few files changed."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from dragoman.checkpoints.git import Git, Running
from dragoman.checkpoints.objects.commits import store
from dragoman.gateway.ports.checkpoints import CheckpointError

FOLDER = b"40000"
LARGEST = 1 << 24
"""Bytes of a tree that is read here."""

Entry = tuple[bytes, bytes]
"""Mode, and the object's id as bytes."""


class Trees:
    """Reads and changes the trees of a repository; made by `reading`."""

    def __init__(self, git: Git, stack: ExitStack) -> None:
        self._git = git
        self._stack = stack
        self._running: Running | None = None
        self._read: dict[str, dict[bytes, Entry]] = {}

    def entry(self, tree: str, path: bytes) -> Entry | None:
        """The file at a path; None if the tree has none there."""
        *folders, name = path.split(b"/")
        for folder in folders:
            mode, object_id = self._entries(tree).get(folder, (b"", b""))
            if mode != FOLDER:
                return None
            tree = object_id.hex()
        found = self._entries(tree).get(name)
        return found if found is not None and found[0] != FOLDER else None

    def changed(self, tree: str, changes: Mapping[bytes, Entry | None]) -> str | None:
        """The id of the tree with these files changed, or removed if None; None if nothing is left in it."""
        entries = dict(self._entries(tree))
        below: dict[bytes, dict[bytes, Entry | None]] = {}
        for path, entry in changes.items():
            name, _, rest = path.partition(b"/")
            if rest:
                below.setdefault(name, {})[rest] = entry
            elif entry is None:
                entries.pop(name, None)
            else:
                entries[name] = entry
        for name, inner in below.items():
            made = self.changed(entries[name][1].hex(), inner)
            if made is None:
                del entries[name]
            else:
                entries[name] = FOLDER, bytes.fromhex(made)
        return self._store(entries) if entries else None

    def _store(self, entries: Mapping[bytes, Entry]) -> str:
        ordered = sorted(entries, key=lambda name: name + b"/" if entries[name][0] == FOLDER else name)
        body = b"".join(b"%s %s\0%s" % (entries[name][0], name, entries[name][1]) for name in ordered)
        return store(self._git.directory, b"tree", body)

    def _entries(self, tree: str) -> dict[bytes, Entry]:
        if tree not in self._read:
            body = _loose(self._git.directory, tree)
            self._read[tree] = _parsed(self._packed(tree) if body is None else body)
        return self._read[tree]

    def _packed(self, tree: str) -> bytes:
        if self._running is None:
            self._running = self._stack.enter_context(self._git.started("cat-file", "--batch"))
        return self._running.blob(tree)


@contextmanager
def reading(git: Git) -> Iterator[Trees]:
    with ExitStack() as stack:
        yield Trees(git, stack)


def _loose(directory: Path, tree: str) -> bytes | None:
    """A tree that is a file of its own; None if it is in a pack."""
    try:
        data = (directory / "objects" / tree[:2] / tree[2:]).read_bytes()
    except FileNotFoundError:
        return None
    try:
        found = zlib.decompressobj().decompress(data, LARGEST)
    except zlib.error as error:
        raise CheckpointError(f"The recorded tree {tree} is damaged: {error}") from error
    head, _, body = found.partition(b"\0")
    if head != b"tree %d" % len(body):
        raise CheckpointError(f"The recorded tree {tree} is damaged, or too large.")
    return body


def _parsed(body: bytes) -> dict[bytes, Entry]:
    entries = {}
    place = 0
    while place < len(body):
        end = body.index(b"\0", place)
        mode, _, name = body[place:end].partition(b" ")
        entries[name] = mode, body[end + 1 : end + 21]
        place = end + 21
    return entries
