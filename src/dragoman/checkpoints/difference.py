"""What differs between two trees: files, renames, modes, counts and hunks, as git's own diff finds them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dragoman.checkpoints.git import Git
from dragoman.checkpoints.names import shown
from dragoman.gateway.ports.checkpoints import Change, Hunk, Status

PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/")
NOTHING: Final = "000000"
SUBMODULE: Final = "160000"
HUNK_BYTES = 256 << 10
"""Bytes of the hunks that are listed for one file; a patch has all of them."""
_STATUS: dict[str, Status] = {
    "A": "added",
    "D": "deleted",
    "M": "modified",
    "R": "renamed",
    "T": "type_changed",
}
_HUNK = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", re.MULTILINE)
_SECTION = re.compile(rb"^diff --git ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Entry:
    """A file in a tree."""

    mode: str
    object: str


@dataclass(frozen=True, slots=True)
class Raw:
    """One file that differs; None where it does not exist."""

    path: bytes
    old_path: bytes
    status: str
    old: Entry | None
    new: Entry | None


def raw(git: Git, since: str, until: str | Path, *, renames: bool = False) -> list[Raw]:
    """The files that differ, in git's order; a path is an index that stands for its tree."""
    if since == until:
        return []
    words = ("-z", "-M" if renames else "--no-renames", "--raw", "--full-index", since)
    if isinstance(until, Path):
        return list(_raw(git.run("diff-index", "--cached", *words, index=until)))
    return list(_raw(git.run("diff-tree", "-r", *words, until)))


def _raw(printed: bytes) -> Iterator[Raw]:
    fields = iter(printed.split(b"\0"))
    for head in fields:
        if not head:
            return
        old_mode, new_mode, old_object, new_object, status = head.decode().removeprefix(":").split()
        old_path = next(fields)
        path = next(fields) if status[0] in "RC" else old_path
        yield Raw(path, old_path, status[0], _entry(old_mode, old_object), _entry(new_mode, new_object))


def _entry(mode: str, object_id: str) -> Entry | None:
    return None if mode == NOTHING else Entry(mode, object_id)


def paths(git: Git, since: str, until: str) -> set[bytes]:
    return {found.path for found in raw(git, since, until)}


def patch(git: Git, since: str, until: str | Path) -> bytes:
    """A patch that `git apply` takes, binary files included."""
    if since == until:
        return b""
    return _text(git, since, until, "--binary")


def _text(git: Git, since: str, until: str | Path, *how: str) -> bytes:
    words = ("diff", *PLAIN, "-M", *how, "--full-index")
    if isinstance(until, Path):
        return git.run(*words, "--cached", since, index=until)
    return git.run(*words, since, until)


def changes(git: Git, since: str, until: str | Path, shared: set[bytes]) -> list[Change]:
    found = raw(git, since, until, renames=True)
    if not found:
        return []
    text = _text(git, since, until)
    starts = [match.start() for match in _SECTION.finditer(text)]
    sections = iter([text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)])
    result = []
    for one in found:
        section = next(sections, b"")
        if one.status == "T":  # a file that became a symlink is shown as removed and added
            section += next(sections, b"")
        result.append(_change(one, section, bool({one.path, one.old_path} & shared)))
    return result


def _change(one: Raw, section: bytes, shared: bool) -> Change:
    hunks = list(hunks_of(section))
    body = b"\n".join(hunk.lines for hunk in hunks)
    old_mode = one.old.mode if one.old is not None else None
    new_mode = one.new.mode if one.new is not None else None
    listed: list[Hunk] = []
    size = 0
    for hunk in hunks:
        size += len(hunk.lines)
        if size > HUNK_BYTES:
            break
        listed.append(hunk.told())
    return Change(
        path=shown(one.path),
        status=_STATUS.get(one.status, "modified"),
        added=_count(body, b"+"),
        removed=_count(body, b"-"),
        old_path=shown(one.old_path) if one.old_path != one.path else None,
        old_mode=old_mode if old_mode != new_mode else None,
        new_mode=new_mode if old_mode != new_mode else None,
        binary=not hunks and b"\nBinary files " in section,
        submodule=SUBMODULE in (old_mode, new_mode),
        shared=shared,
        hunks=listed,
        truncated=len(listed) < len(hunks),
    )


def _count(body: bytes, sign: bytes) -> int:
    return body.count(b"\n" + sign)


@dataclass(frozen=True, slots=True)
class RawHunk:
    """A hunk in bytes."""

    number: int
    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    lines: bytes
    """With the line `@@ …`, without the last line end."""

    def told(self) -> Hunk:
        return Hunk(
            self.number,
            self.old_start,
            self.old_lines,
            self.new_start,
            self.new_lines,
            self.lines.decode(errors="replace"),
        )

    def side(self, sign: bytes) -> bytes:
        """The text before (`-`) or after (`+`) the change."""
        kept: list[bytes] = []
        for line in self.lines.split(b"\n")[1:]:
            if line[:1] in (b" ", sign):
                kept.append(line[1:] + b"\n")
                taken = True
            elif line[:1] == b"\\" and taken:
                kept[-1] = kept[-1][:-1]
            else:
                taken = False
        return b"".join(kept)


def hunks_of(section: bytes) -> Iterator[RawHunk]:
    heads = list(_HUNK.finditer(section))
    ends = [match.start() - 1 for match in heads[1:]] + [len(section.removesuffix(b"\n"))]
    for number, (head, end) in enumerate(zip(heads, ends, strict=False), start=1):
        old_start, old_lines, new_start, new_lines = (
            int(value) if value is not None else 1 for value in head.groups()
        )
        yield RawHunk(number, old_start, old_lines, new_start, new_lines, section[head.start() : end])


def without_hunk(new: bytes, hunk: RawHunk) -> bytes | None:
    """The content after a change with one hunk undone; None if the hunk is not of this content."""
    lines = new.split(b"\n")
    pieces = [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    start = hunk.new_start - 1 if hunk.new_lines else hunk.new_start
    if b"".join(pieces[start : start + hunk.new_lines]) != hunk.side(b"+"):
        return None
    return b"".join([*pieces[:start], hunk.side(b"-"), *pieces[start + hunk.new_lines :]])
