"""Checks the content of a prompt before it goes to an agent (G-035, G-058, D-14 to D-16)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import NamedTuple

import msgspec
from msgspec import Raw

from dragoman.gateway.access.capabilities import AgentCapabilities
from dragoman.gateway.json_types import JsonObject, decode_object, encode
from dragoman.wire.errors import RpcError, invalid_params
from dragoman.wire.message import ABSENT

NEEDED_CAPABILITY = {"image": "image", "audio": "audio", "resource": "embeddedContext"}
_SIGNATURES = (  # magic bytes, for images and audio that come without a mimeType (D-16)
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"RIFF", "audio/wav"),
    (b"ID3", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
)


class _Head(msgspec.Struct, gc=False):
    """The members of a content block that are checked; the data itself is not decoded."""

    type: str = ""
    name: str | None = None
    mimeType: str | None = None  # noqa: N815  the wire's spelling
    text: Raw = ABSENT
    uri: Raw = ABSENT
    resource: Raw = ABSENT


class _Resource(msgspec.Struct, gc=False):
    text: Raw = ABSENT


_heads = msgspec.json.Decoder(list[_Head])
_blocks = msgspec.json.Decoder(list[Raw])
_string = msgspec.json.Decoder(str | None)
_resource = msgspec.json.Decoder(_Resource)


class Prompt(NamedTuple):
    """A prompt that is neither empty nor too long; `for_agent` checks it for one agent."""

    blocks: list[Raw]
    heads: list[_Head]

    def for_agent(self, agent: AgentCapabilities, agent_name: str) -> list[Raw]:
        """The blocks, with members added that v1 requires; raises for content that the agent does not support."""
        blocks = list(self.blocks)
        for index, head in enumerate(self.heads):
            _check_capability(head.type, agent, agent_name)
            if (head.type == "resource_link" and head.name is None) or (
                head.type in ("image", "audio") and head.mimeType is None
            ):
                blocks[index] = Raw(encode(_completed(decode_object(blocks[index]))))
        return blocks


def read_prompt(params: Mapping[str, Raw], max_bytes: int) -> Prompt:
    """Read a prompt; raises if it is malformed, empty, or has more than `max_bytes` of text (0: no limit)."""
    raw = params.get("prompt", ABSENT)
    if raw is ABSENT:
        raise invalid_params("prompt is required: a list of content blocks", "empty_prompt")
    try:
        heads, blocks = _heads.decode(raw), _blocks.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise invalid_params(f"prompt must be a list of content blocks: {error}", "content_type") from error
    for head in heads:
        if head.type != "text" or _text(head.text).strip():
            break
    else:  # never forwarded: gemini never answers again after an empty prompt (quirk empty_prompt)
        raise invalid_params("The prompt is empty", "empty_prompt")
    # JSON is at least as long as its text, so that the text of a short prompt need not be counted.
    if max_bytes and len(raw) > max_bytes and (size := sum(map(_text_bytes, heads))) > max_bytes:
        raise invalid_params(
            f"The prompt has {size} bytes of text, at most {max_bytes} are allowed (limits.max_prompt_bytes)",
            "prompt_too_large",
        )
    return Prompt(blocks, heads)


def _text(raw: Raw) -> str:
    """The decoded string; of any other value its JSON."""
    if raw is ABSENT:
        return ""
    try:
        return _string.decode(raw) or ""
    except msgspec.DecodeError:
        return bytes(raw).decode(errors="replace")


def _text_bytes(head: _Head) -> int:
    """Bytes of text in a block, as UTF-8; images and other data are limited by `max_message_bytes` alone."""
    if head.type == "resource_link":
        return _length(head.name or "") + _length(_text(head.uri))
    if head.type != "resource":
        return _length(_text(head.text))
    try:
        return _length(_text(_resource.decode(head.resource).text))
    except msgspec.DecodeError:
        return len(head.resource)


def _length(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def _check_capability(kind: str, agent: AgentCapabilities, agent_name: str) -> None:
    capability = NEEDED_CAPABILITY.get(kind)
    if capability is not None and not agent.prompt(capability):
        raise unsupported_content(agent_name, kind, capability)


def unsupported_content(agent_name: str, kind: str, capability: str) -> RpcError:
    return invalid_params(
        f"The agent {agent_name} does not take {kind} content (it lacks promptCapabilities.{capability})",
        "content_type",
        contentType=kind,
        capability=f"promptCapabilities.{capability}",
    )


def _completed(block: JsonObject) -> JsonObject:
    if block.get("type") == "resource_link":
        uri = str(block.get("uri", ""))
        block["name"] = uri.rstrip("/").rpartition("/")[2] or uri
    else:
        block["mimeType"] = _sniff(str(block.get("data", "")))
    return block


def _sniff(data: str) -> str:
    try:
        start = base64.b64decode(data[:64] + "=" * (-len(data[:64]) % 4))
    except (binascii.Error, ValueError):
        return "application/octet-stream"
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    return next((mime for magic, mime in _SIGNATURES if start.startswith(magic)), "application/octet-stream")


def prompt_params(
    params: Mapping[str, Raw], agent_session_id: str, blocks: list[Raw], changes: JsonObject
) -> bytes:
    """The params as the agent gets them: only the session id, completed blocks and `changes` differ."""
    return encode({**params, "sessionId": agent_session_id, "prompt": blocks, **changes})
