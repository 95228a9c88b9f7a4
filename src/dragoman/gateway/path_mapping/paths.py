"""The path map: the two-way translation between host paths and paths inside a sandbox (G-150).

A value is translated only if all of it is an absolute path equal to or below a mapped root, compared component by
component; the longest root wins. Any other value, such as a relative path or a path elsewhere, is returned as the same
object. A path that goes into a sandbox is normalised (`/a//b/../c/` is `/a/c`). The way back restores the client's own
spelling: of a path as the client last sent it, and of paths below a root as the root was spelled. Paths from a sandbox
are not normalised.

Only errors are searched for paths inside text (`text`): a path of the other side in an error is of no use, and reveals
what should stay hidden.
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
"""Characters that RFC 3986 allows in a path component without an escape, besides letters and digits."""
_URI = re.compile(
    r"(?P<start>file:(?://(?P<authority>[^/?#]*))?)(?P<path>/[^?#]*)(?P<end>.*)", re.IGNORECASE | re.DOTALL
)
"""RFC 8089: `file:///x` and `file:/x` are the same, schemes and hosts are case-insensitive."""
_GAP = re.compile(r"/(?:\.?/)*")
_LOCAL = frozenset({"", "localhost"})
_TOKEN = r"[^\s\"'`<>|]"
"""A character that does not end a path in text."""
_PUNCTUATION = ".,;:!?)]}"
REMEMBERED = 512
"""Translated paths that are cached per direction; a path has a few hundred bytes."""


@dataclass(frozen=True, slots=True)
class Root:
    """One end of a mapping: a folder, POSIX or Windows."""

    text: str
    """The path without a separator at the end; empty for the root folder."""
    windows: bool
    spelled: str
    """The spelling used in paths that are translated to this root."""

    @classmethod
    def of(cls, path: str, *, as_spelled: bool = False) -> Root:
        """`as_spelled`: paths translated to this root begin with the text of `path`, not with its normal form."""
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
        """The part of `path` below this root, with `/` before each component; None if it is not below."""
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
        """As `rest_of` for a path with empty or `.` components inside the root: `//a/./b` is `/a/b`."""
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
        # The sort is stable: of two roots of equal length the first one given is tried first.
        self._pairs = sorted(pairs, key=lambda pair: -len(pair[0].parts))
        self.path: Callable[[str], str] = lru_cache(REMEMBERED)(self._path)
        """Translates a path, with a cache: agents name the same files over and over."""

    def _path(self, value: str) -> str:
        for source, target in self._pairs:
            rest = source.rest_of(value)
            if rest is not None:
                return target.join(rest)
        return value

    def value(self, value: str) -> str:
        """Translate a path or a `file:` URI."""
        return self.uri(value) if value[:5].lower() == "file:" else self.path(value)

    def uri(self, value: str) -> str:
        """Translate a `file:` URI; escapes below the root, query and fragment stay as they are."""
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
        """Translate the paths inside a text: those that begin where a word could begin."""
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

    @property
    def targets(self) -> list[str]:
        """The roots that paths are translated to."""
        return [target.spelled for _, target in self._pairs]

    def covers(self, path: str) -> bool:
        """Whether the path is at or below a root."""
        return any(source.rest_of(path) is not None for source, _ in self._pairs)


class Inwards(Translation):
    """The direction into a sandbox: paths are normalised; their spelling is remembered for the way back."""

    def __init__(self, pairs: Iterable[tuple[Root, Root]]) -> None:
        super().__init__(pairs)
        self.spellings: dict[str, str] = {}
        """The client's spelling by path in the sandbox, where it is not the normal form."""
        self._normalised = lru_cache(REMEMBERED)(self._path)
        self.path = self._remembered

    def _remembered(self, value: str) -> str:
        path = self._normalised(value)
        self.spellings.pop(path, None)  # the last spelling counts
        if path != value and _is_odd(value):
            self.spellings[path] = value
            if len(self.spellings) > REMEMBERED:
                del self.spellings[next(iter(self.spellings))]
        return path

    def _path(self, value: str) -> str:
        if not _is_odd(value):
            return super()._path(value)
        normal = _normal(value)
        path = super()._path(normal)
        # A path that is the same inside is normalised too; a path elsewhere is left unchanged.
        return path if path != normal or self.covers(normal) else value


class Outwards(Translation):
    """The direction out of a sandbox; uses the client's spelling of a path where it is known."""

    def __init__(self, pairs: Iterable[tuple[Root, Root]], spellings: Mapping[str, str]) -> None:
        super().__init__(pairs)
        self._told = spellings
        self._mapped = self.path
        self.path = self._known

    def _known(self, value: str) -> str:
        spellings = self._told.get(value)
        return self._mapped(value) if spellings is None else spellings


class PathMap:
    """Both directions of the mapping.

    Several host roots may map to one sandbox root (a workspace and the folder that it is a symlink to); the way back
    leads to the first of them.
    """

    def __init__(self, pairs: Sequence[tuple[str, str]]) -> None:
        roots = [(Root.of(host, as_spelled=True), Root.of(box)) for host, box in pairs]
        self.to_box = Inwards(roots)
        back: dict[str, tuple[Root, Root]] = {}
        for host, box in roots:
            back.setdefault(box.text, (box, host))
        self.to_host = Outwards(back.values(), self.to_box.spellings)
        self.changes = any(host.text != box.text or host.spelled != host.text for host, box in roots)
        """False if every path is the same on both sides."""


def _is_odd(path: str) -> bool:
    """Whether an absolute path is not in its normal form."""
    if not path.startswith("/") or path == "/":
        return False
    return ("//" in path or "/." in path or path.endswith("/")) and _normal(path) != path


def _normal(path: str) -> str:
    return posixpath.normpath("/" + path.lstrip("/"))


def _pattern(root: Root) -> str:
    """The regular expression for a root inside a text."""
    if not root.windows:
        return re.escape(root.text) or r"(?=/[\w.~])"
    return "(?i:" + r"[\\/]".join(map(re.escape, root.parts)) + ")"


def _matching(root: Root, parts: Sequence[str]) -> int | None:
    """How many of a URI's components the root covers, empty and `.` components included; None if it does not match."""
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
