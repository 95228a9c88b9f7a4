"""Stores files of a work tree as git would, and puts them into an index; git itself reads none of them.

    ls-files ─► names ─► reading.py (no symlinks) ─► fast-import ─► update-index --index-info

A file whose attributes convert it (line ends, `ident`, an encoding) is given to git in a folder of ours.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from dragoman.checkpoints import writing
from dragoman.checkpoints.names import shown
from dragoman.checkpoints.reading import EXECUTABLE, REGULAR, Content, TooLarge, Tree
from dragoman.commits.checkout import Checkout
from dragoman.commits.scratch import Scratch
from dragoman.gateway.ports.checkpoints import LeftOut
from dragoman.gateway.ports.commits import CommitError
from dragoman.gateway.ports.worktrees import WorktreeError
from dragoman.worktrees.git import git_directories, read_ref

ATTRIBUTES = ("filter", "text", "crlf", "eol", "ident", "working-tree-encoding")
UNSET = (b"unspecified", b"unset")
GITLINK = b"160000"
LISTED_AS_LEFT_OUT = 200


@dataclass
class Limits:
    files: int
    file_bytes: int
    bytes: int


@dataclass
class Stored:
    """What was put into the index, and what was not."""

    zero: bytes
    """The id that stands for no object."""
    written: list[tuple[bytes, bytes, bytes]] = field(default_factory=list)
    """Mode, object, path."""
    removed: list[bytes] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    more: int = 0

    def leave_out(self, path: bytes, entry: LeftOut) -> None:
        if len(self.left_out) < LISTED_AS_LEFT_OUT:
            self.left_out.append(entry)
        else:
            self.more += 1


def changed_names(git: Scratch, index: Path, limit: int, own: str | None) -> list[bytes]:
    """Paths that differ from the index or are not in it; one that ends with `/` is a repository of its own."""
    exclude = [f"--exclude={own}"] if own is not None else []
    with (
        git.started("ls-files", "-z", "-o", "--exclude-standard", *exclude, index=index) as finding,
        git.started("ls-files", "-z", "-m", "-d", index=index) as comparing,
    ):
        others, changed = finding.names(limit), comparing.names(limit)
    if max(len(others), len(changed)) > limit:
        raise CommitError(
            f"More than {limit} files of {git.tree} differ from its last commit (checkpoints.max_files): let "
            ".gitignore name what is made by programs, or raise the limit",
            "too_many_files",
        )
    finding.check()
    comparing.check()
    return sorted({*others, *changed})


def put_entries(git: Scratch, index: Path, stored: Stored) -> None:
    """Bring an index to what was stored; a path is removed before, which ends a conflict."""
    rows = [b"0 %s\t%s\0" % (stored.zero, name) for name in stored.removed]
    for mode, object_id, name in stored.written:
        rows += [b"0 %s\t%s\0" % (stored.zero, name), b"%s %s\t%s\0" % (mode, object_id, name)]
    if rows:
        words = ("update-index", "-z", "--add", "--remove", "--replace", "--index-info")
        git.run(*words, given=b"".join(rows), index=index)


class Snapshot:
    """Stores files in the objects of a git of ours, and their entries in an index."""

    def __init__(self, checkout: Checkout, git: Scratch, index: Path, limits: Limits) -> None:
        self._checkout = checkout
        self._git = git
        self._index = index
        self._limits = limits
        self._hash = hashlib.sha256 if checkout.sha256 else hashlib.sha1

    def store(self, names: Iterable[bytes]) -> Stored:
        """Store the present content of these paths; those that do not exist any more are removed from the index."""
        stored = Stored(b"0" * (64 if self._checkout.sha256 else 40))
        modes = self._modes()
        plain: list[bytes] = []
        for name in names:
            if name.endswith(b"/"):
                stored.leave_out(name, LeftOut(shown(name), "repository"))
            elif modes.get(name) == GITLINK and (commit := self._submodule(name)):
                stored.written.append((GITLINK, commit, name))
            else:
                plain.append(name)
        attributes = self.attributes_of(plain)
        with (
            self._git.started("fast-import", "--quiet", "--done", "--depth=0") as importing,
            Tree(self._git.tree) as tree,
        ):
            pipe = importing.process.stdin
            assert pipe is not None
            try:
                for piece in self._pieces(tree, plain, attributes, modes, stored):
                    pipe.write(piece)
                pipe.write(b"done\n")
                pipe.flush()
            except BrokenPipeError:
                pass  # its exit code says why
        importing.check()
        put_entries(self._git, self._index, stored)
        return stored

    def _pieces(
        self,
        tree: Tree,
        names: list[bytes],
        attributes: dict[bytes, dict[str, bytes]],
        modes: dict[bytes, bytes],
        stored: Stored,
    ) -> Iterator[bytes]:
        """The contents as blobs of a fast-import stream; `stored` is filled on the way."""
        room = self._limits.bytes
        for name in names:
            told = attributes.get(name, {})
            if told.get("filter", b"unset") not in UNSET:
                stored.leave_out(name, LeftOut(shown(name), "filter"))
                continue
            content = self._content(tree, name, stored)
            if content is None:
                continue
            room -= len(content.data)
            if room < 0:
                raise CommitError(
                    f"{self._git.tree} has more than {self._limits.bytes} bytes that differ from its last commit "
                    "(checkpoints.max_bytes): let .gitignore name what is made by programs, or raise the limit",
                    "too_many_bytes",
                )
            mode = content.mode
            if mode in (REGULAR, EXECUTABLE):
                if not self._checkout.settings.true("core.filemode", default=True):
                    mode = modes.get(name, REGULAR) if modes.get(name) in (REGULAR, EXECUTABLE) else REGULAR
                if self.converts(told, content.data):
                    stored.written.append((mode, self._converted(tree, name, content), name))
                    continue
            head = b"blob %d\0" % len(content.data)
            object_id = self._hash(head + content.data).hexdigest().encode()
            stored.written.append((mode, object_id, name))
            yield b"blob\ndata %d\n" % len(content.data)
            yield content.data
            yield b"\n"

    def _content(self, tree: Tree, name: bytes, stored: Stored) -> Content | None:
        try:
            found = tree.read(name, self._limits.file_bytes)
        except TooLarge as error:
            stored.leave_out(name, LeftOut(shown(name), "too_large", error.size))
            return None
        except OSError:
            stored.leave_out(name, LeftOut(shown(name), "unreadable"))
            return None
        if found is None:
            stored.removed.append(name)
        return found

    def _modes(self) -> dict[bytes, bytes]:
        """The modes of submodules, and of all files where the file system has none."""
        found = {}
        all_modes = not self._checkout.settings.true("core.filemode", default=True)
        for row in self._git.run("ls-files", "-z", "-s", index=self._index).split(b"\0"):
            head, _, path = row.partition(b"\t")
            if all_modes or head.startswith(GITLINK):
                found[path] = head[:6]
        return found

    def _submodule(self, name: bytes) -> bytes:
        """The commit that a submodule has checked out, read as data; empty if it has none."""
        folder = str(Path(self._git.tree, os.fsdecode(name)))
        try:
            if not stat.S_ISDIR(os.lstat(folder).st_mode):
                return b""
            own, common = git_directories(folder)
        except (OSError, WorktreeError):
            return b""
        found = read_ref(own, "HEAD")
        return (found or read_ref(common, "HEAD")).encode()

    # -- attributes

    def attributes_of(self, names: list[bytes]) -> dict[bytes, dict[str, bytes]]:
        """What `.gitattributes` says of each path, as far as it changes what is stored."""
        if not names:
            return {}
        printed = self._git.run(
            *("check-attr", "-z", "--stdin", *ATTRIBUTES), given=b"\0".join(names) + b"\0", index=self._index
        )
        fields = printed.split(b"\0")
        found: dict[bytes, dict[str, bytes]] = {}
        for path, name, value in zip(fields[::3], fields[1::3], fields[2::3], strict=False):
            if value != b"unspecified":
                found.setdefault(path, {})[name.decode()] = value
        return found

    def converts(self, told: dict[str, bytes], data: bytes) -> bool:
        """Whether git stores other bytes than these, of a file with such attributes."""
        if (
            told.get("ident", b"unset") not in UNSET
            or told.get("working-tree-encoding", b"unset") not in UNSET
        ):
            return True
        if b"\r\n" not in data or told.get("text") == b"unset" or told.get("crlf") == b"unset":
            return False
        by_setting = self._checkout.settings.get("core.autocrlf").lower() not in (
            "",
            "false",
            "no",
            "off",
            "0",
        )
        return by_setting or any(name in told for name in ("text", "crlf", "eol"))

    def _converted(self, tree: Tree, name: bytes, content: Content) -> bytes:
        """The object of a file that git converts: it gets a copy of it, with the attributes that hold for it."""
        with tempfile.TemporaryDirectory(dir=self._git.directory) as place, Tree(place) as copy:
            above = name
            while above:
                above = above.rpartition(b"/")[0]
                path = above + b"/.gitattributes" if above else b".gitattributes"
                found = tree.read(path, 1 << 20)
                if found is not None:
                    writing.write(copy, path, found)
            writing.write(copy, name, content)
            words = ("update-index", "-z", "--add", "--replace", "--stdin")
            self._git.run(*words, given=name + b"\0", index=self._index, tree=place)
        row = self._git.run("ls-files", "-z", "-s", "--", os.fsdecode(name), index=self._index)
        return row.split()[1]
