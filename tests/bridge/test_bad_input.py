"""What a page should not send: told in a sentence, and the socket stays open."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from server.conftest import Serve
from support.clients.bridge_page import Page
from support.serve_process import Refused, ServeProcess

BAD = [
    (b"{not json", "bad_json"),
    (b"[1,2]", "bad_request"),
    (b'{"no":"type"}', "bad_request"),
    (b'{"type":"dance"}', "unknown_type"),
    (b'{"type":"load_session","sessionId":"dgm_nobody"}', "unknown_session"),
    (b'{"type":"load_session","sessionId":7}', "unknown_session"),
    (b'{"type":"send_message","sessionId":"dgm_nobody","content":"hi"}', "unknown_session"),
    (b'{"type":"send_message","sessionId":"dgm_nobody","content":7}', "bad_request"),
    (b'{"type":"send_message","content":"hi"}', "bad_request"),
    (b'{"type":"send_message","sessionId":"dgm_nobody","content":" \\n\\t"}', "empty_prompt"),
    (
        b'{"type":"send_message","sessionId":"dgm_nobody","content":[{"type":"text","text":""}]}',
        "empty_prompt",
    ),
    (b'{"type":"cancel_turn","sessionId":"dgm_nobody"}', "unknown_session"),
    (b'{"type":"history","sessionId":"dgm_nobody","beforeSeq":1}', "unknown_session"),
    (b'{"type":"permission_response","requestId":"nothing","outcome":{}}', "already_answered"),
    (b'{"type":"new_session"}', "cwd"),
    (b'{"type":"new_session","cwd":"~nobody-of-this-name/x"}', "cwd"),
    (b'{"type":"list_sessions","cursor":"garbage"}', "bad_cursor"),
    (b'{"type":"ping","clientMessageId":7}', "bad_request"),
    (b'{"type":"ping","clientMessageId":"' + b"x" * 300 + b'"}', "bad_request"),
    (b'{"type":"complete_path","prefix":7}', "bad_request"),
]


async def test_every_mistake_has_a_code_and_a_sentence(page: Page) -> None:
    for sent, code in BAD:
        page.socket.send(sent)
        error = await page.next("error")
        assert error["code"] == code, sent
        assert error["message"]
        assert "-32" not in json.dumps(error)
    assert (await page.ask("ping"))["type"] == "ack"


async def test_a_message_that_is_too_long_is_refused(serve: Serve) -> None:
    page = await Page.open(await serve(limits={"max_message_bytes": 4096}))
    assert (await page.next("hello"))["limits"] == {"maxMessageBytes": 4096}
    page.socket.send({"type": "ping", "filler": "x" * 5000})
    assert (await page.next("error"))["code"] == "too_large"
    assert (await page.ask("ping"))["type"] == "ack"


async def test_strangers_are_refused_before_the_upgrade(serving: ServeProcess) -> None:
    for headers, status in (({}, 401), ({**serving.bearer, "Origin": "http://evil.example"}, 403)):
        with pytest.raises(Refused) as refused:
            await Page.open(serving, headers=headers)
        assert refused.value.status == status


async def test_a_load_that_asks_for_nonsense_is_refused(page: Page, workspace: Path) -> None:
    session = await page.new_session(workspace)
    for nonsense in ({"afterSeq": -1}, {"afterSeq": "x"}, {"tail": True}):
        refused = await page.ask("load_session", sessionId=session, **nonsense)
        assert refused["code"] == "bad_request"
    assert (await page.turn(session, "say still here"))[-1]["type"] == "turn_complete"
