"""Terminals of one client for commands that an agent runs by itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from dragoman.gateway.rewriting.updates import update_line
from dragoman.gateway.session.terminals.terminal_mirror import TerminalMirror
from dragoman.rpc.request import OnReply, Reply
from dragoman.wire.errors import internal


class Client:
    """Keeps what it is asked for."""

    def __init__(self) -> None:
        self.peer = self
        self.asked: list[OnReply] = []

    def request(self, method: str, params: bytes, on_reply: OnReply) -> int:
        self.asked.append(on_reply)
        return len(self.asked)


class Follower:
    command, args, connected = "follow", (), False

    def write(self, text: str) -> None: ...

    def end(self, code: int) -> None: ...


def tell(mirror: TerminalMirror, call: str, status: str) -> None:
    update = {"sessionUpdate": "tool_call_update", "toolCallId": call, "status": status, "content": []}
    mirror.view(update_line("s1", {**update, "_meta": {"terminal_info": {"terminal_id": call}}}))


async def test_a_client_that_refused_one_terminal_is_not_asked_for_those_announced_before() -> None:
    client = Client()
    gateway = SimpleNamespace(followers=SimpleNamespace(open=Follower))
    session = SimpleNamespace(id="s1", cwd="/", turn=object(), gateway=gateway)
    attachment: Any = SimpleNamespace(client=client, session=session, show_alone=lambda line: None)
    mirror = TerminalMirror(attachment)
    for call in ("one", "two"):
        tell(mirror, call, "pending")
    tell(mirror, "one", "in_progress")
    client.asked[0](Reply.failed(internal("no terminals today", "none")))
    tell(mirror, "two", "in_progress")
    assert len(client.asked) == 1
    mirror.close()
