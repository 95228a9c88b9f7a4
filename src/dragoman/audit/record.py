"""The format of the audit: one JSON object per line, each with the hash of the line before. No IO.

    {"n":17,"at":"2026-11-18T03:31:02.123Z","kind":"decision",…,"prev":"9f3c…"}

`prev` is the SHA-256 of the line before as it was written, without its line feed; the first line has zeros. A line of
the kind `head` is signed: its last member, `sig`, is over all bytes before `,"sig"` and a closing brace.
"""

from __future__ import annotations

import base64
import re
from hashlib import sha256
from typing import Any

import msgspec

VERSION = 1
BEGINNING = "0" * 64
"""`prev` of a chain's first line."""
OURS = frozenset({"n", "at", "kind", "prev", "sig"})
"""Members that every record has; facts have other names."""

_encode = msgspec.json.Encoder().encode
UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_SIGNATURE = re.compile(rb',"sig":"([A-Za-z0-9+/=]{88})"\}\Z')


class Broken(Exception):
    """A line that is no record."""


def digest(line: bytes) -> str:
    """The hash of a line, given without its line feed."""
    return sha256(line).hexdigest()


def as_utf8(value: Any) -> Any:
    """The value with what is not Unicode, as in paths of other encodings, written as `\\udcff`."""
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, dict):
        return {as_utf8(name): as_utf8(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_utf8(item) for item in value]
    return value


def make_line(n: int, at: str, kind: str, facts: dict[str, Any], prev: str) -> bytes:
    """A record, without a line feed."""
    try:
        return _encode({"n": n, "at": at, "kind": kind, **facts, "prev": prev})
    except UnicodeEncodeError:
        return _encode({"n": n, "at": at, "kind": kind, **as_utf8(facts), "prev": prev})


def signed(line: bytes, signature: bytes) -> bytes:
    """A line with its signature as last member."""
    return line[:-1] + b',"sig":"' + base64.b64encode(signature) + b'"}'


def split_signature(line: bytes) -> tuple[bytes, bytes] | None:
    """The line as it was signed, and the signature; None if it has none."""
    found = _SIGNATURE.search(line)
    if found is None:
        return None
    return line[: found.start()] + b"}", base64.b64decode(found[1])


class Head(msgspec.Struct, frozen=True):
    """The members of a record that make the chain, and its session; the rest is not read."""

    n: int
    at: str
    kind: str
    prev: str
    session: Any = None


_head = msgspec.json.Decoder(Head)
_whole = msgspec.json.Decoder(dict[str, Any])


def read_head(line: bytes) -> Head:
    try:
        return _head.decode(line)
    except UNREADABLE as error:
        raise Broken(str(error)) from error


def read_record(line: bytes) -> dict[str, Any]:
    """All members of a record; it has at least a number, a time and a kind."""
    try:
        found = _whole.decode(line)
    except UNREADABLE as error:
        raise Broken(str(error)) from error
    if not (
        isinstance(found.get("n"), int)
        and isinstance(found.get("at"), str)
        and isinstance(found.get("kind"), str)
    ):
        raise Broken("it has no number, time or kind")
    return found
