"""JSON-RPC envelopes, read without decoding their params (G-010 to G-018).

Ids, params, results and errors stay raw bytes. An id is echoed byte by byte, so `1`, `"1"` and `null` keep their type;
for look-ups `id_key` returns a key that tells them apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec import Raw

from dragoman.wire.errors import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, Malformed

ABSENT: Final = Raw()
"""Value of a missing member; compare with `is`."""

EMPTY: Final = b"{}"

IdKey = tuple[type, object]


class Envelope(msgspec.Struct, gc=False):
    """One JSON-RPC message; the members present decide whether it is a request, a notification or a response."""

    jsonrpc: str = ""
    id: Raw = ABSENT
    method: str = ""
    params: Raw = ABSENT
    result: Raw = ABSENT
    error: Raw = ABSENT


_envelope = msgspec.json.Decoder(Envelope)
_members = msgspec.json.Decoder(dict[str, Raw])
_entries = msgspec.json.Decoder(list[Raw])
_id = msgspec.json.Decoder(int | str | None | float)
_encode = msgspec.json.encode

# The exceptions of msgspec for bytes that are not JSON; the last two are not DecodeErrors.
_NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def decode(line: bytes) -> Envelope:
    """Decode one message; raises `Malformed` with the reason, and with the message's id if it has one."""
    if not line.isascii():
        _check_utf8(line)
    try:
        return _envelope.decode(line)
    except msgspec.ValidationError as error:
        raise Malformed(INVALID_REQUEST, f"Invalid request: {error}", find_id(line)) from error
    except _NOT_JSON as error:
        repaired = _without_lone_surrogates(line)
        if repaired != line:
            return decode(repaired)
        raise Malformed(PARSE_ERROR, f"Parse error: {error}") from error


def is_batch(line: bytes) -> bool:
    return line[:1] == b"[" or line.lstrip()[:1] == b"["


def decode_batch(line: bytes) -> list[bytes]:
    """The entries of an array of messages, still encoded."""
    if not line.isascii():
        _check_utf8(line)
    try:
        return [bytes(entry) for entry in _entries.decode(line)]
    except _NOT_JSON as error:
        repaired = _without_lone_surrogates(line)
        if repaired != line:
            return decode_batch(repaired)
        raise Malformed(PARSE_ERROR, f"Parse error: {error}") from error


def id_key(raw: bytes | Raw) -> IdKey | None:
    """Return a key under which `1`, `"1"`, `1.0` and `null` differ; None for a value that cannot be an id."""
    try:
        value = _id.decode(raw)
    except _NOT_JSON:
        return None
    return (type(value), value)


def find_id(line: bytes) -> bytes:
    """The raw id of a message that is broken elsewhere, or `null`."""
    try:
        raw = _members.decode(line).get("id", ABSENT)
    except _NOT_JSON:
        return b"null"
    return bytes(raw) if raw is not ABSENT and id_key(raw) is not None else b"null"


def find_id_in_prefix(prefix: bytes) -> bytes:
    """The raw id in the beginning of an oversize message (G-143), or `null`."""
    raw = dict(_first_members(prefix)).get(b"id", b"null")
    return raw if id_key(raw) is not None else b"null"


def is_response_prefix(prefix: bytes) -> bool:
    """Whether `prefix` is the beginning of a response."""
    return any(name in (b"result", b"error") for name, _ in _first_members(prefix))


_NAME = re.compile(rb'\s*"((?:[^"\\]|\\.)*)"\s*:\s*', re.DOTALL)
_PLAIN_VALUE = re.compile(rb'("(?:[^"\\]|\\.)*"|[-+.\w]+)\s*[,}]', re.DOTALL)


def _first_members(prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the members of the outermost object; the first whose value is no complete scalar comes last, as empty."""
    at = prefix.find(b"{") + 1
    if prefix[:at].strip() != b"{":
        return
    while name := _NAME.match(prefix, at):
        value = _PLAIN_VALUE.match(prefix, name.end())
        yield name[1], value[1] if value else b""
        if value is None:
            return
        at = value.end()


def members(raw: bytes | Raw) -> dict[str, Raw]:
    """Decode one level of an object, the values stay encoded; null counts as empty. Raises `Malformed` for others."""
    if len(raw) == 4 and bytes(raw) == b"null":
        return {}
    try:
        return _members.decode(raw)
    except _NOT_JSON as error:
        raise Malformed(INVALID_PARAMS, f"Expected an object: {error}") from error


def lenient_members(raw: bytes | Raw) -> dict[str, Raw]:
    """The members of an object; empty for any other value: a peer may put anything into `_meta`."""
    try:
        return members(raw)
    except Malformed:
        return {}


def request(id: bytes | int, method: str, params: bytes) -> bytes:
    raw_id = b"%d" % id if isinstance(id, int) else id
    return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}' % (raw_id, _encode(method), params)


def notification(method: str, params: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (_encode(method), params)


def response(id: bytes, result: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (id, result)


def failure(id: bytes, error: bytes) -> bytes:
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (id, error)


_ESCAPE = re.compile(
    rb"\\(?:(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def _without_lone_surrogates(line: bytes) -> bytes:
    """Replace lone surrogates with U+FFFD: JavaScript that cuts an emoji writes `\\ud83d`, which msgspec rejects."""
    return _ESCAPE.sub(lambda escape: rb"\ufffd" if escape[2] else escape[0], line)


def _check_utf8(line: bytes) -> None:
    # msgspec.Raw does not check strings, and invalid bytes must not be forwarded to the other side.
    try:
        line.decode()
    except UnicodeDecodeError as error:
        raise Malformed(PARSE_ERROR, f"Parse error: invalid UTF-8 at byte {error.start}") from error
