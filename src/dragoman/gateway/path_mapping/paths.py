"""The path map: the two-way translation between host paths and paths inside a sandbox (G-150).

A value is translated only if it is, as a whole, an absolute path equal to or below a mapped root, compared component
by component; the longest root wins. All else, relative paths and paths elsewhere included, comes back as the very
same object. A path that goes into a box is normalised (`/a//b/../c/` is `/a/c`). The way back gives the client's own
spelling: of that very path as it was last told, and of what is below a folder as the folder was told. What a box says is
carried over as text.

Prose is another matter: only what an error says is searched for paths (`text`), because a path in there that is the
other side's cannot be used, and tells what should not be told.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
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
    spelled: str
    """How it is called in what is translated to it."""

    @classmethod
    def of(cls, path: str, *, as_spelled: bool = False) -> Root:
        """`as_spelled`: what is translated to it begins with the very text of `path`."""
        if _DRIVE.match(path):
            text = path.replace("/", "\\").rstrip("\\")
            return cls(text, True, text)
        text = _normal(path).rstrip("/")
        return cls(text, False, path.rstrip("/") if as_spelled else text)

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
        return self.spelled + rest or "/"

    def uri_path(self) -> str:
        return "".join("/" + quote(part, safe=_PCHAR) for part in self.parts)


class Translation:
    """One direction of a path map."""

    def __init__(self, pairs: Iterable[tuple[Root, Root]]) -> None:
        # Stable: of two roots of one length the first named is tried first.
        self._pairs = sorted(pairs, key=lambda pair: -len(pair[0].parts))
        self.path: Callable[[str], str] = lru_cache(REMEMBERED)(self._path)
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


class Inwards(Translation):
    """The direction into a box: paths are normalised, and how they were spelled is remembered for the way back."""

    def __init__(self, pairs: Iterable[tuple[Root, Root]]) -> None:
        super().__init__(pairs)
        self.told: dict[str, str] = {}
        """Paths in the box whose client spelled them otherwise than the map would."""
        self._normalised = lru_cache(REMEMBERED)(self._path)
        self.path = self._remembered

    def _remembered(self, value: str) -> str:
        path = self._normalised(value)
        self.told.pop(path, None)  # the last spelling counts
        if path != value and _is_odd(value):
            self.told[path] = value
            if len(self.told) > REMEMBERED:
                del self.told[next(iter(self.told))]
        return path

    def _path(self, value: str) -> str:
        if not _is_odd(value):
            return super()._path(value)
        normal = _normal(value)
        path = super()._path(normal)
        # Of a path that is the same inside only the spelling changes; one that is elsewhere is left alone.
        return path if path != normal or self.covers(normal) else value


class Outwards(Translation):
    """The direction out of a box."""

    def __init__(self, pairs: Iterable[tuple[Root, Root]], told: Mapping[str, str]) -> None:
        super().__init__(pairs)
        self._told = told
        self._mapped = self.path
        self.path = self._known

    def _known(self, value: str) -> str:
        told = self._told.get(value)
        return self._mapped(value) if told is None else told


class PathMap:
    """Host paths to box paths and back.

    Several host roots may lead to one box root (a workspace and the folder that it is a symlink to); the way back
    leads to the first of them.
    """

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        roots = [(Root.of(host, as_spelled=True), Root.of(box)) for host, box in pairs]
        self.to_box = Inwards(roots)
        back: dict[str, tuple[Root, Root]] = {}
        for host, box in roots:
            back.setdefault(box.text, (box, host))
        self.to_host = Outwards(back.values(), self.to_box.told)
        self.changes = any(host.text != box.text or host.spelled != host.text for host, box in roots)
        """False where every path is the same on both sides."""


def _is_odd(path: str) -> bool:
    """Whether a path that is not relative has another spelling that is plainer."""
    if not path.startswith("/") or path == "/":
        return False
    return ("//" in path or "/." in path or path.endswith("/")) and _normal(path) != path


def _normal(path: str) -> str:
    return posixpath.normpath("/" + path.lstrip("/"))


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
