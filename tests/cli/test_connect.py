"""`dragoman acp --connect`: a running `dragoman serve`, here a scripted one on its socket, does the work."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from support.command_line import CommandLine
from support.gateway_process import Start
from support.rpc_peer import RpcPeer, is_request

PROMPT = {"sessionId": "dgm_1", "prompt": [{"type": "text", "text": "hi"}]}


class Served:
    """What listens where `dragoman serve` would, and the editor that is relayed to it."""

    def __init__(self) -> None:
        self.arrived: asyncio.Queue[RpcPeer] = asyncio.Queue()

    async def editor(self) -> RpcPeer:
        async with asyncio.timeout(20):
            return await self.arrived.get()


Serve = Callable[[], contextlib.AbstractAsyncContextManager[Served]]


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("h")


@pytest.fixture
def serve(home: Path) -> Serve:
    @asynccontextmanager
    async def served() -> AsyncIterator[Served]:
        (home / "run").mkdir(exist_ok=True)
        found = Served()
        peers: list[RpcPeer] = []

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            peers.append(RpcPeer(reader, writer))
            found.arrived.put_nowait(peers[-1])

        path = home / "run" / "dragoman.sock"
        server = await asyncio.start_unix_server(accept, path, limit=2**26)
        try:
            yield found
        finally:
            server.close()
            for peer in peers:
                await peer.close()

    return served


async def test_messages_pass_both_ways(dragoman: Start, serve: Serve) -> None:
    async with serve() as served:
        client = await dragoman("acp")
        editor = await served.editor()
        asked = client.start_request("session/list", {"odd": [1, None, "ü"]}, id="a-1")
        request = await editor.next_message(is_request("session/list"))
        assert request == {
            "jsonrpc": "2.0",
            "id": "a-1",
            "method": "session/list",
            "params": {"odd": [1, None, "ü"]},
        }
        editor.reply(request, {"sessions": []})
        assert (await client.response(asked))["result"] == {"sessions": []}
        asked = editor.start_request("session/request_permission", {"x": 1}, id=0)
        client.reply(await client.next_message("session/request_permission"), {"outcome": {}})
        assert (await editor.response(asked))["result"] == {"outcome": {}}
        assert not (client.home / "dragoman.db").exists(), "the other process has the sessions"


async def test_the_agent_that_was_asked_for_is_named(dragoman: Start, serve: Serve) -> None:
    async with serve() as served:
        client = await dragoman("acp", "scripted")
        editor = await served.editor()
        for method, meta, expected in (
            ("initialize", None, {"dragoman": {"agent": "scripted"}}),
            ("session/new", {"a": 1}, {"a": 1, "dragoman": {"agent": "scripted"}}),
            ("session/new", {"dragoman": {"agent": "mine"}}, {"dragoman": {"agent": "mine"}}),
        ):
            client.start_request(method, {"cwd": "/x", **({"_meta": meta} if meta else {})})
            params = (await editor.next_message(is_request(method)))["params"]
            params.pop("clientCapabilities", None)  # with the relay's own wish for numbers
            assert params == {"cwd": "/x", "_meta": expected}
        client.start_request("session/load", {"sessionId": "dgm_1"})
        assert (await editor.next_message("session/load"))["params"] == {"sessionId": "dgm_1"}


async def test_the_end_of_stdin_cancels_what_this_editor_began(dragoman: Start, serve: Serve) -> None:
    async with serve() as served:
        client = await dragoman("acp")
        editor = await served.editor()
        done = client.start_request("session/prompt", {**PROMPT, "sessionId": "dgm_0"})
        editor.reply(await editor.next_message("session/prompt"), {"stopReason": "end_turn"})
        await client.response(done)
        running = client.start_request("session/prompt", PROMPT)
        prompt = await editor.next_message("session/prompt")
        client.leave()
        assert (await editor.next_message("session/cancel"))["params"] == {"sessionId": "dgm_1"}
        editor.reply(prompt, {"stopReason": "cancelled"})
        assert (await client.response(running))["result"] == {"stopReason": "cancelled"}
        assert await client.wait_exit() == 0
        await editor.ended()
        assert [m["params"]["sessionId"] for m in editor.received if m.get("method") == "session/cancel"] == [
            "dgm_1"
        ]


async def test_requests_in_flight_are_answered_when_the_other_process_ends(
    dragoman: Start, serve: Serve
) -> None:
    async with serve() as served:
        client = await dragoman("acp")
        editor = await served.editor()
        asked = client.start_request("session/list", {})
        await editor.next_message(is_request("session/list"))
        editor.eof()
        assert "dragoman serve ended the connection" in (await client.response(asked))["error"]["message"]
        assert await client.wait_exit() == 1


async def test_it_ends_when_the_other_process_does(dragoman: Start, serve: Serve) -> None:
    async with serve() as served:
        client = await dragoman("acp")
        editor = await served.editor()
        editor.eof()
        assert await client.wait_exit() == 1
        assert "dragoman serve ended the connection" in client.stderr


async def test_a_flood_passes_whole_at_the_pace_of_the_slower_side(dragoman: Start, serve: Serve) -> None:
    async with serve() as served:
        client = await dragoman("acp")
        editor = await served.editor()
        client.pause()
        count, text = 4000, "x" * 4000
        for number in range(count):
            editor.notify("session/update", {"n": number, "text": text})
        flood = asyncio.create_task(editor.drain())
        await asyncio.wait([flood], timeout=0.5)
        assert not flood.done(), "16 MB are not taken in for an editor that does not read"
        client.resume()
        await flood
        await client.next_message(lambda message: message.get("params", {}).get("n") == count - 1)
        assert [message["params"]["n"] for message in client.received] == list(range(count))


async def test_without_serve_it_works_by_itself(dragoman: Start, workspace: Path) -> None:
    client = await dragoman("acp", "scripted")
    await client.initialize()
    assert (await client.prompt(await client.new_session(workspace), "say hi")).texts == ["hi"]


@pytest.mark.parametrize("mode", ["auto", "never"])
async def test_a_socket_that_nobody_listens_on_does_not_matter(
    dragoman: Start, home: Path, workspace: Path, mode: str
) -> None:
    stale(home)
    client = await dragoman("acp", "scripted", "--connect", mode)
    await client.initialize()
    assert (await client.prompt(await client.new_session(workspace), "say hi")).texts == ["hi"]


async def test_never_means_never(dragoman: Start, serve: Serve) -> None:
    async with serve() as served:
        client = await dragoman("acp", "scripted", "--connect", "never")
        assert "agentCapabilities" in await client.initialize()
        assert served.arrived.empty()


@pytest.mark.parametrize("with_stale_socket", [False, True])
def test_always_says_what_to_do_if_there_is_none(shell: CommandLine, with_stale_socket: bool) -> None:
    if with_stale_socket:
        stale(shell.home)
    done = shell.run("acp", "--connect", "always")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"no `dragoman serve` listens on {shell.home}/run/dragoman.sock: start one" in done.stderr


@pytest.mark.parametrize("option", [["--port", "0"], ["--sandbox", "local"]])
def test_always_excludes_what_happens_here(shell: CommandLine, option: list[str]) -> None:
    done = shell.run("acp", "--connect", "always", *option)
    assert done.returncode == 2
    assert f"--connect always cannot be combined with {option[0]}" in done.stderr


async def test_what_is_not_json_is_the_other_sides_to_answer(dragoman: Start, serve: Serve) -> None:
    async with serve() as served:
        client = await dragoman("acp", "scripted")
        editor = await served.editor()
        client.send_bytes(b'["session/new"]\n')
        assert (await editor.next_message(lambda message: "batch" in message))["batch"] == ["session/new"]
        editor.notify("bye", {})
        assert json.dumps(await client.next_message("bye"))


def stale(home: Path) -> None:
    (home / "run").mkdir(exist_ok=True)
    with socket.socket(socket.AF_UNIX) as gone:
        gone.bind(str(home / "run" / "dragoman.sock"))
