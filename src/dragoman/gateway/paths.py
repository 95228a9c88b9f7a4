"""The path map: the two-way translation between host paths and paths inside a sandbox (G-150).

A value is translated only if it is, as a whole, an absolute path equal to or below a mapped root, compared component
by component; the longest root wins. All else, relative paths and paths elsewhere included, comes back as the very
same object. What stands below the root is carried over as text, so translating there and back is the identity.

Prose is another matter: only what an error says is searched for paths (`text`), because a path in there that is the
other side's cannot be used, and tells what should not be told.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from urllib.parse import quote, unquote_to_bytes

_DRIVE = re.compile(r"[A-Za-z]:(?:[\\/]|\Z)")
_PCHAR = "!$&'()*+,;=:@~-._"
"""What RFC 3986 lets stand in a path's component without an escape."""
_URI = re.compile(
    r"(?P<start>file:(?://(?P<authority>[^/?#]*))?)(?P<path>/[^?#]*)(?P<end>.*)", re.IGNORECASE | re.DOTALL
)
"""RFC 8089: `file:///x` and `file:/x` are the same, schemes and hosts have no case."""
_GAP = re.compile(r"/(?:\.?/)*")
_LOCAL = frozenset({"", "localhost"})
_TOKEN = r"[^\s\"'`<>|]"
"""What prose does not end a path with."""
_PUNCTUATION = ".,;:!?)]}"
REMEMBERED = 512
"""Translated paths that are kept per direction; a path has a few hundred bytes."""


@dataclass(frozen=True, slots=True)
class Root:
    """One end of a mapping: a folder, POSIX or Windows."""

    text: str
    """Without a separator at the end: the root folder is empty."""
    windows: bool

    @classmethod
    def of(cls, path: str) -> Root:
        if _DRIVE.match(path):
            return cls(path.replace("/", "\\").rstrip("\\"), windows=True)
        return cls(posixpath.normpath("/" + path.lstrip("/")).rstrip("/"), windows=False)

    @property
    def parts(self) -> list[str]:
        return [part for part in self.text.replace("\\", "/" if self.windows else "\\").split("/") if part]

    def same(self, part: str, other: str) -> bool:
        return part.lower() == other.lower() if self.windows else part == other

    def rest_of(self, path: str) -> str | None:
        """What of `path` stands below this root, with `/` before each component; None if it is not there."""
        if self.windows:
            path = path.replace("\\", "/")
            own = self.text.replace("\\", "/")
            start, rest = path[: len(own)].lower() == own.lower(), path[len(own) :]
        else:
            start, rest = path[:1] == "/" and path.startswith(self.text), path[len(self.text) :]
        if not start or (rest and rest[0] != "/"):
            odd = self._rest_of_odd(path)
            if odd is None:
                return None
            rest = odd
        return None if ".." in rest and _climbs(rest.split("/")) else rest

    def _rest_of_odd(self, path: str) -> str | None:
        """As `rest_of` for a path that names nothing between the root's components: `//a/./b` is `/a/b`."""
        if self.windows or path[:1] != "/" or ("//" not in path and "/./" not in path):
            return None
        at = 0
        for part in self.parts:
            gap = _GAP.match(path, at)
            if gap is None or not path.startswith(part, gap.end()):
                return None
            at = gap.end() + len(part)
        return path[at:] if at == len(path) or path[at] == "/" else None

    def join(self, rest: str) -> str:
        if self.windows:
            return (self.text + rest.replace("/", "\\")) if rest else self.text
        return self.text + rest or "/"

    def uri_path(self) -> str:
        return "".join("/" + quote(part, safe=_PCHAR) for part in self.parts)


class Translation:
    """One direction of a path map."""

    def __init__(self, pairs: Iterable[tuple[Root, Root]]) -> None:
        # Stable: of two roots of one length the first named is tried first.
        self._pairs = sorted(pairs, key=lambda pair: -len(pair[0].parts))
        self.path = lru_cache(REMEMBERED)(self._path)
        """The path on the other side; agents name the same files over and over."""

    def _path(self, value: str) -> str:
        for source, target in self._pairs:
            rest = source.rest_of(value)
            if rest is not None:
                return target.join(rest)
        return value

    def value(self, value: str) -> str:
        """A path or a `file:` URI on the other side, whichever it is."""
        return self.uri(value) if value[:5].lower() == "file:" else self.path(value)

    def uri(self, value: str) -> str:
        """A `file:` URI on the other side; escapes below the root, query and fragment stay as they are."""
        found = _URI.fullmatch(value)
        if found is None or (found["authority"] or "").lower() not in _LOCAL:
            return value
        parts = found["path"].split("/")[1:]
        plain = [unquote_to_bytes(part).decode(errors="replace") for part in parts]
        for source, target in self._pairs:
            count = _matching(source, plain)
            if count is not None and not _climbs(plain[count:]):
                below = "".join("/" + part for part in parts[count:])
                return found["start"] + (target.uri_path() + below or "/") + found["end"]
        return value

    def text(self, value: str) -> str:
        """Prose with the paths in it on the other side: those that begin where a word could, whatever is around."""
        return self._in_text.sub(self._found, value)

    @cached_property
    def _in_text(self) -> re.Pattern[str]:
        roots = "|".join(_pattern(source) for source, _ in self._pairs)
        after = rf"(?:[/\\]{_TOKEN}*|(?![\w~+@%-]|\.\w))"
        uri = rf"(?i:file):(?://(?i:localhost)?)?(?:(?:{roots}){after}|/{_TOKEN}*)"
        return re.compile(rf"(?P<uri>{uri})|(?<![\w./\\~%+-])(?P<path>(?:/(?=/))*(?:{roots}){after})")

    def _found(self, match: re.Match[str]) -> str:
        whole = match[0]
        bare = whole.rstrip(_PUNCTUATION)
        return (self.uri(bare) if match["uri"] else self._path(bare)) + whole[len(bare) :]

    def covers(self, path: str) -> bool:
        """Whether the path is at or below a root."""
        return any(source.rest_of(path) is not None for source, _ in self._pairs)


class PathMap:
    """Host paths to box paths and back.

    Several host roots may lead to one box root (a workspace and the folder that it is a symlink to); the way back
    leads to the first of them.
    """

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        roots = [(Root.of(host), Root.of(box)) for host, box in pairs]
        self.to_box = Translation(roots)
        back: dict[Root, Root] = {}
        for host, box in roots:
            back.setdefault(box, host)
        self.to_host = Translation(back.items())
        self.changes = any(host != box for host, box in roots)
        """False where every path is the same on both sides."""


def _pattern(root: Root) -> str:
    """How a root stands in prose."""
    if not root.windows:
        return re.escape(root.text) or r"(?=/[\w.~])"
    return "(?i:" + r"[\\/]".join(map(re.escape, root.parts)) + ")"


def _matching(root: Root, parts: Sequence[str]) -> int | None:
    """How many components the root takes of a URI's, if they are the root's own, with nothing in between."""
    at = 0
    for own in root.parts:
        while at < len(parts) and parts[at] in ("", "."):
            at += 1
        if at == len(parts) or not root.same(parts[at], own):
            return None
        at += 1
    return at


def _climbs(parts: Sequence[str]) -> bool:
    """Whether `..` leads out of the folder that the parts start in."""
    if ".." not in parts:
        return False
    depth = 0
    for part in parts:
        depth += -1 if part == ".." else part not in ("", ".")
        if depth < 0:
            return True
    return False
