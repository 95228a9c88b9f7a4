"""`kill -9` in mid-stream, a restart, and nothing is missing."""

from __future__ import annotations

from pathlib import Path

from support.http_peer import HttpPeer
from support.rpc_peer import is_update, text_of

from .conftest import Serve

SEQ = {"clientCapabilities": {"_meta": {"dragoman": {"seq": True}}}}


async def test_a_websocket_client_resumes_without_a_gap(serve: Serve, workspace: Path) -> None:
    first = await serve()
    socket = await first.socket()
    await socket.initialize(**SEQ)
    session = await socket.new_session(workspace)
    turn = socket.start_prompt(session, "flood 5000 100\nsleep-until-cancel")
    seen = await socket.next_message(
        lambda m: is_update(session)(m) and m["params"]["_meta"]["dragoman"]["seq"] > 500
    )
    after = seen["params"]["_meta"]["dragoman"]["seq"]
    await first.gateway.kill()
    turn.cancel()  # type: ignore[attr-defined]
    had = numbers(socket.of(session)[: socket.of(session).index(seen["params"]["update"]) + 1])

    second = await serve()
    socket = await second.socket()
    await socket.initialize(**SEQ)
    resume = {"sessionId": session, "cwd": str(workspace), "_meta": {"dragoman": {"afterSeq": after}}}
    facts = (await socket.request("session/resume", resume))["_meta"]["dragoman"]
    done = await socket.prompt(session, "say back")
    assert done.stop_reason == "end_turn"
    got = numbers(socket.of(session))
    assert [*had, *got] == list(range(len(had) + len(got)))
    assert facts["seq"] >= after


async def test_an_http_client_initializes_anew_and_resumes(serve: Serve, workspace: Path) -> None:
    first = await serve()
    peer = HttpPeer(first.http())
    await peer.initialize()
    events = await peer.listen()
    session = await peer.new_session(workspace, events)
    updates = await peer.listen(session)
    await peer.prompt(session, "say one\nsay two\nsleep-until-cancel")
    one = await updates.text("one")
    await updates.text("two")
    await first.gateway.kill()

    second = await serve()
    again = HttpPeer(second.http())
    again.connection = peer.connection
    lost = await again.client.get("/acp", headers=again.headers(session, Accept="text/event-stream"))
    assert lost.status_code == 404
    again.connection = ""
    await again.initialize()
    updates = await again.listen(session)
    after = {"_meta": {"dragoman": {"afterSeq": int(one.id or 0)}}}
    resume = await again.ask(
        "session/resume", {"sessionId": session, "cwd": str(workspace), **after}, session
    )
    assert "result" in await updates.response_to(resume)
    await updates.text("two")
    assert "one" not in updates.texts
    await again.close()
    await peer.close()


def numbers(updates: list[dict[str, object]]) -> list[int]:
    """The numbers that a flood counted."""
    texts = (text_of(update) for update in updates)
    return [int(text.split()[0]) for text in texts if text[:1].isdigit()]
