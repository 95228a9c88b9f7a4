"""`dragoman acp` with the official Python SDK as its client."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from acp.schema import (
    AllowedOutcome,
    ClientCapabilities,
    FileSystemCapabilities,
    ReadTextFileResponse,
    RequestPermissionResponse,
)

from acp import PROTOCOL_VERSION, RequestError, spawn_agent_process, text_block
from support.gateway_process import MARK, agent, clean_environment, gone, marked_processes, toml

TIMEOUT = 20


class Editor:
    """A client that allows everything once and remembers what it was told."""

    def __init__(self) -> None:
        self.updates: dict[str, list[Any]] = {}
        self.questions: list[Any] = []
        self._told = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        self.updates.setdefault(session_id, []).append(update)
        self._told.set()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **kwargs: Any
    ) -> RequestPermissionResponse:
        self.questions.append((session_id, tool_call))
        chosen = next(option for option in options if option.kind == "allow_once")
        outcome = AllowedOutcome(outcome="selected", option_id=chosen.option_id)
        return RequestPermissionResponse(outcome=outcome)

    async def read_text_file(self, session_id: str, path: str, **kwargs: Any) -> ReadTextFileResponse:
        return ReadTextFileResponse(content=f"content of {path}")

    def on_connect(self, conn: Any) -> None: ...

    def texts(self, session: str) -> list[str]:
        chunks = [u for u in self.updates.get(session, []) if u.session_update == "agent_message_chunk"]
        return [chunk.content.text for chunk in chunks]

    async def until_told(self, session: str, text: str) -> None:
        async with asyncio.timeout(TIMEOUT):
            while text not in self.texts(session):
                self._told.clear()
                await self._told.wait()


class Connected:
    def __init__(self, connection: Any, editor: Editor) -> None:
        self.connection, self.editor = connection, editor

    async def new(self, workspace: Path) -> str:
        answer = await asyncio.wait_for(
            self.connection.new_session(cwd=str(workspace), mcp_servers=[]), TIMEOUT
        )
        return str(answer.session_id)

    def prompt(self, session: str, text: str) -> asyncio.Task[Any]:
        turn = self.connection.prompt(session_id=session, prompt=[text_block(text)])
        return asyncio.ensure_future(asyncio.wait_for(turn, TIMEOUT))


@pytest.fixture
async def sdk(tmp_path: Path) -> AsyncIterator[Connected]:
    async with connected(tmp_path) as connection:
        yield connection


@asynccontextmanager
async def connected(tmp_path: Path) -> AsyncIterator[Connected]:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(toml({"agents": {"scripted": agent("--late-commands")}}))
    mark = str(tmp_path)
    env = {**clean_environment(), "DRAGOMAN_HOME": str(home), MARK: mark}
    editor = Editor()
    words = ("-m", "dragoman", "acp", "scripted")
    async with spawn_agent_process(editor, sys.executable, *words, env=env) as (connection, process):  # type: ignore[arg-type]
        capabilities = ClientCapabilities(
            fs=FileSystemCapabilities(read_text_file=True, write_text_file=False)
        )
        hello = await asyncio.wait_for(
            connection.initialize(protocol_version=PROTOCOL_VERSION, client_capabilities=capabilities),
            TIMEOUT,
        )
        assert hello.protocol_version == 1
        yield Connected(connection, editor)
    assert process.returncode == 0
    await gone(lambda: marked_processes(mark))


async def test_a_whole_turn_with_a_permission(sdk: Connected, workspace: Path) -> None:
    session = await sdk.new(workspace)
    script = f"say hello\nthink hard\ntoolopen call-1\npermission\nfsread {workspace}/a\ntool call-1"
    answer = await sdk.prompt(session, script)
    assert answer.stop_reason == "end_turn"
    assert [asked for asked, _ in sdk.editor.questions] == [session]
    texts = sdk.editor.texts(session)
    assert texts[0] == "hello"
    assert '"optionId": "yes"' in texts[1]
    assert f"content of {workspace}/a" in texts[2]


async def test_a_cancel(sdk: Connected, workspace: Path) -> None:
    session = await sdk.new(workspace)
    turn = sdk.prompt(session, "sleep-until-cancel")
    await sdk.editor.until_told(session, "sleeping")
    await sdk.connection.cancel(session_id=session)
    assert (await turn).stop_reason == "cancelled"


async def test_two_sessions_at_once(sdk: Connected, workspace: Path, tmp_path: Path) -> None:
    one, two = await sdk.new(workspace), await sdk.new(workspace)
    assert one != two
    first = sdk.prompt(one, f"wait-file {tmp_path / 'go'}\nsay one")
    second = await sdk.prompt(two, f"say two\ntouch {tmp_path / 'go'}")
    assert (second.stop_reason, (await first).stop_reason) == ("end_turn", "end_turn")
    await sdk.editor.until_told(one, "one")
    assert (sdk.editor.texts(one), sdk.editor.texts(two)) == (["one"], ["two"])


async def test_errors_arrive_as_request_errors(sdk: Connected, workspace: Path) -> None:
    session = await sdk.new(workspace)
    with pytest.raises(RequestError) as failure:
        await sdk.prompt(session, "crash")
    assert failure.value.code == -32603
    with pytest.raises(RequestError) as failure:
        await sdk.prompt("dgm_nobody", "say x")
    assert failure.value.code == -32002


async def test_extension_methods_pass(sdk: Connected) -> None:
    answer = await asyncio.wait_for(sdk.connection.ext_method("echo", {"n": 2**53 + 1}), TIMEOUT)
    assert answer == {"n": 2**53 + 1}
