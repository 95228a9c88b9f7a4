"""What a prompt may hold, and what is completed for old clients."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from msgspec import Raw

from dragoman.gateway.access.capabilities import AgentCapabilities
from dragoman.gateway.rewriting.content import prompt_params, read_prompt
from dragoman.wire.errors import RpcError

TEXT = {"type": "text", "text": "hi"}
LINK = {"type": "resource_link", "uri": "file:///a/b.txt", "name": "b.txt"}
IMAGE = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
ALL = {"image": True, "audio": True, "embeddedContext": True}


def agent(**prompt: Any) -> AgentCapabilities:
    return AgentCapabilities({"agentCapabilities": {"promptCapabilities": prompt}})


def check(raw: bytes, capabilities: AgentCapabilities | None = None, max_bytes: int = 0) -> list[bytes]:
    prompt = read_prompt({"prompt": Raw(raw)}, max_bytes)
    return [bytes(block) for block in prompt.for_agent(capabilities or agent(**ALL), "x")]


def refused(raw: bytes, capabilities: AgentCapabilities | None = None, max_bytes: int = 0) -> RpcError:
    with pytest.raises(RpcError) as caught:
        check(raw, capabilities, max_bytes)
    assert caught.value.code == -32602
    return caught.value


def data_of(kind: str, content: bytes) -> bytes:
    return json.dumps([{"type": kind, "data": base64.b64encode(content).decode()}]).encode()


@pytest.mark.rule("G-058")
class TestRefusals:
    @pytest.mark.parametrize("params", [{}, {"prompt": Raw(b"[]")}])
    def test_an_empty_prompt(self, params: dict[str, Raw]) -> None:
        with pytest.raises(RpcError) as caught:
            read_prompt(params, 0)
        assert (caught.value.code, caught.value.data) == (-32602, {"reason": "empty_prompt"})

    @pytest.mark.parametrize(
        "raw", [b"null", b'"hi"', b"{}", b"1", b"[1]", b"[null]", b'[{"type":1}]', b'[{"type":"text"},[]]']
    )
    def test_what_is_no_list_of_blocks(self, raw: bytes) -> None:
        assert refused(raw).data == {"reason": "content_type"}

    def test_a_prompt_over_the_limit_names_both_sizes(self) -> None:
        raw = json.dumps([{"type": "text", "text": "ü\n" * 50}]).encode()
        error = refused(raw, max_bytes=149)
        assert error.data == {"reason": "prompt_too_large"}
        assert "has 150 bytes" in error.message and "limits.max_prompt_bytes" in error.message
        assert check(raw, max_bytes=150)
        assert check(raw, max_bytes=0)

    @pytest.mark.parametrize(
        "block",
        [
            {"type": "text", "text": "x" * 10},
            {"type": "resource", "resource": {"uri": "file:///long/as/it/is", "text": "x" * 10}},
            {"type": "resource_link", "uri": "x" * 6, "name": "x" * 4},
        ],
        ids=lambda block: block["type"],
    )
    def test_text_counts_wherever_it_stands(self, block: dict[str, Any]) -> None:
        raw = json.dumps([block, block]).encode()
        assert check(raw, max_bytes=20)
        assert refused(raw, max_bytes=19).data == {"reason": "prompt_too_large"}

    def test_a_text_that_is_null_says_nothing(self) -> None:
        assert refused(b'[{"type":"text","text":null}]').data == {"reason": "empty_prompt"}

    def test_data_does_not_count(self) -> None:
        assert check(json.dumps([{**IMAGE, "data": "A" * 1000}]).encode(), max_bytes=10)

    @pytest.mark.parametrize(
        "texts", [[""], [" "], ["\n\t \r\n"], ["\u2003\u00a0"], [" ", "", "\n"]], ids=repr
    )
    def test_a_prompt_of_nothing_but_space(self, texts: list[str]) -> None:
        raw = json.dumps([{"type": "text", "text": text} for text in texts]).encode()
        assert refused(raw).data == {"reason": "empty_prompt"}
        assert check(raw[:-1] + b"," + json.dumps(IMAGE).encode() + b"]")
        assert check(raw[:-1] + b',{"type":"text","text":"."}]')

    @pytest.mark.parametrize(
        ("kind", "capability"), [("image", "image"), ("audio", "audio"), ("resource", "embeddedContext")]
    )
    @pytest.mark.parametrize("value", [False, None, "yes", {}])
    @pytest.mark.rule("G-035")
    def test_content_that_the_agent_lacks_is_named(self, kind: str, capability: str, value: Any) -> None:
        """D-14."""
        blocks = json.dumps([TEXT, {"type": kind, "mimeType": "x"}]).encode()
        error = refused(blocks, agent(**{**ALL, capability: value}))
        assert error.data == {
            "reason": "content_type",
            "contentType": kind,
            "capability": f"promptCapabilities.{capability}",
        }
        assert kind in error.message and "The agent x" in error.message


class TestPassing:
    @pytest.mark.parametrize(
        "block",
        [
            b'{"type":"text","text":"\\u0061","x":null,"n":1e2,"_meta":{"big":12345678901234567890123}}',
            b'{ "type" : "resource_link" , "name" : "" , "uri" : "x" }',
            b'{"type":"image","mimeType":"","data":"not base64"}',
            b'{"type":"resource","resource":{"uri":"x","text":"y"}}',
            b'{"type":"brand_new","x":1.0}',
            b'{"no":"type"}',
        ],
    )
    @pytest.mark.rule("G-002")
    def test_a_valid_block_passes_byte_by_byte(self, block: bytes) -> None:
        assert check(b"[" + block + b" , " + block + b"]") == [block, block]

    @pytest.mark.parametrize("block", [TEXT, LINK, {"type": "brand_new"}])
    def test_the_baseline_needs_no_capability(self, block: dict[str, Any]) -> None:
        assert check(json.dumps([block]).encode(), agent())

    def test_params_differ_only_in_session_and_blocks(self) -> None:
        params = {"sessionId": Raw(b'"dgm_x"'), "prompt": Raw(b"[1]"), "_meta": Raw(b'{"n":1.0}')}
        assert prompt_params(params, "agent-1", [Raw(b'{"type": "text"}')], {}) == (
            b'{"sessionId":"agent-1","prompt":[{"type": "text"}],"_meta":{"n":1.0}}'
        )


class TestCompletion:
    @pytest.mark.parametrize(
        ("uri", "name"),
        [
            ("file:///a/b.txt", "b.txt"),
            ("file:///a/b/", "b"),
            ("https://example.org/x?y=1", "x?y=1"),
            ("plain", "plain"),
            ("/", "/"),
            ("", ""),
        ],
    )
    def test_a_link_without_a_name_gets_the_last_part_of_its_uri(self, uri: str, name: str) -> None:
        """D-15."""
        (block,) = check(json.dumps([{"type": "resource_link", "uri": uri, "x": None}]).encode())
        assert json.loads(block) == {"type": "resource_link", "uri": uri, "x": None, "name": name}

    @pytest.mark.parametrize(
        ("kind", "content", "mime"),
        [
            ("image", b"\x89PNG\r\n\x1a\n" + b"\0" * 100, "image/png"),
            ("image", b"\xff\xd8\xff\xe0", "image/jpeg"),
            ("image", b"GIF89a", "image/gif"),
            ("image", b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
            ("audio", b"RIFF\x10\0\0\0WAVEfmt ", "audio/wav"),
            ("audio", b"ID3\x04", "audio/mpeg"),
            ("audio", b"OggS\0", "audio/ogg"),
            ("audio", b"fLaC\0", "audio/flac"),
            ("image", b"<svg/>", "application/octet-stream"),
            ("audio", b"", "application/octet-stream"),
        ],
    )
    def test_data_without_a_type_is_sniffed(self, kind: str, content: bytes, mime: str) -> None:
        """D-16."""
        (block,) = check(data_of(kind, content))
        assert json.loads(block)["mimeType"] == mime

    @pytest.mark.parametrize("data", ["!", "a", "ü", 5, None, {}])
    def test_data_that_cannot_be_read_is_just_bytes(self, data: Any) -> None:
        (block,) = check(json.dumps([{"type": "image", "data": data}]).encode())
        assert json.loads(block)["mimeType"] == "application/octet-stream"

    def test_only_what_lacks_something_is_touched(self) -> None:
        blocks = check(
            b'[{"type":"text","n":1e2},{"type":"resource_link","uri":"a/b"},{"type":"text","n":1.0}]'
        )
        assert [blocks[0], blocks[2]] == [b'{"type":"text","n":1e2}', b'{"type":"text","n":1.0}']
