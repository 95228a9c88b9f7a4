"""The hook program and its socket: whatever goes wrong between them, the call is denied."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.agents.hooks.call import Manner
from dragoman.agents.hooks.passed import HERE, shell_line
from dragoman.agents.hooks.passing import VARIABLE
from dragoman.agents.hooks.server import HookServer
from dragoman.rpc.request import OnReply, Reply
from dragoman.wire import limits

ALLOWED = Reply(result=b'{"outcome":{"outcome":"selected","optionId":"allow"}}')
CALL: dict[str, Any] = {
    "session_id": "s1",
    "tool_name": "Read",
    "tool_use_id": "t1",
    "tool_input": {"file_path": "a"},
}


class Rules:
    """Answers at once, or never."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.reply: Reply | None = ALLOWED
        self.cancelled = asyncio.Event()
        self.asked = asyncio.Event()

    def hook_called(self, session_id: str, params: bytes, answered: OnReply) -> Callable[[], None]:
        self.calls.append(json.loads(params))
        self.asked.set()
        if self.reply is not None:
            answered(self.reply)
        return self.cancelled.set


@pytest.fixture
def rules() -> Rules:
    return Rules()


@pytest.fixture
async def server(rules: Rules, home: Path) -> AsyncIterator[HookServer]:
    folder = home / "hook"
    folder.mkdir()
    made = HookServer(folder, rules, Manner())
    await made.start()
    yield made
    made.close()


async def program(address: str, call: object = CALL, line: str | None = None) -> tuple[int, str, str]:
    given = call if isinstance(call, bytes) else json.dumps(call).encode()
    words = ["bash", "-c", line] if line else [sys.executable, "-I", "-S", str(HERE / "program.py")]
    started = await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"], VARIABLE: address},
    )
    async with asyncio.timeout(30):
        out, err = await started.communicate(given)
    assert started.returncode is not None
    return started.returncode, out.decode(), err.decode()


async def test_an_allowed_call_ends_with_nothing_said(server: HookServer, rules: Rules) -> None:
    assert await program(server.address) == (0, "", "")
    (question,) = rules.calls
    assert question["sessionId"] == "s1" and question["toolCall"]["rawInput"] == {"file_path": "a"}


async def test_a_wrong_secret_is_denied(server: HookServer, rules: Rules) -> None:
    code, _, err = await program(f"{server.address}x")
    assert code == 2 and "secret" in err and not rules.calls


@pytest.mark.parametrize(
    "call",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        {**CALL, "tool_input": "ls"},
        {**CALL, "session_id": 1},
        {"tool_name": "Read"},
    ],
)
async def test_a_malformed_call_is_denied(server: HookServer, rules: Rules, call: object) -> None:
    code, _, err = await program(server.address, call)
    assert code == 2 and err.startswith("Not allowed: The ") and not rules.calls


async def test_without_a_gateway_a_call_is_denied(server: HookServer) -> None:
    address = server.address
    server.close()
    code, _, err = await program(address)
    assert code == 2 and "cannot be asked" in err


async def test_a_gateway_that_ends_while_it_decides_denies(server: HookServer, rules: Rules) -> None:
    rules.reply = None
    waiting = asyncio.create_task(program(server.address))
    await asyncio.wait_for(rules.asked.wait(), 30)
    server.close()
    code, _, err = await waiting
    assert code == 2 and "ended before" in err


async def test_without_its_variable_the_program_denies() -> None:
    line = f"unset {VARIABLE}; {sys.executable} -I -S {HERE / 'program.py'}"
    code, _, err = await program("", line=line)
    assert code == 2 and VARIABLE in err


async def test_the_shell_line_denies_if_the_program_cannot_run(server: HookServer) -> None:
    assert await program(server.address, line=shell_line()) == (0, "", "")
    for broken in ("/missing/python", r'sh -c "kill -9 \$\$" sh'):
        code, _, err = await program(server.address, line=shell_line().replace(sys.executable, broken, 1))
        assert code == 2 and "the program that asks the rules failed" in err


async def test_a_call_of_a_megabyte_arrives_whole(server: HookServer, rules: Rules) -> None:
    call = {**CALL, "tool_input": {"content": "x" * (1 << 20)}}
    assert (await program(server.address, call))[0] == 0
    assert rules.calls[0]["toolCall"]["rawInput"] == call["tool_input"]


async def test_a_call_beyond_the_limit_is_denied_before_it_is_read(server: HookServer, rules: Rules) -> None:
    path, _, secret = server.address.rpartition("#")
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(f"{secret} {limits.MAX_MESSAGE_BYTES + 1}\n".encode())
    assert (await asyncio.wait_for(reader.read(), 30)).startswith(b"2\n")
    writer.close()


async def test_two_hundred_calls_at_once_are_each_answered(server: HookServer, rules: Rules) -> None:
    path, _, secret = server.address.rpartition("#")

    async def call(number: int) -> bytes:
        body = json.dumps({**CALL, "tool_use_id": f"t{number}"}).encode()
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(f"{secret} {len(body)}\n".encode() + body)
        answer = await reader.read()
        writer.close()
        return answer

    async with asyncio.timeout(30):
        answers = await asyncio.gather(*map(call, range(200)))
    assert answers == [b"0\n"] * 200
    assert len({each["toolCall"]["toolCallId"] for each in rules.calls}) == 200


async def test_a_hook_that_is_gone_withdraws_its_question(server: HookServer, rules: Rules) -> None:
    rules.reply = None
    path, _, secret = server.address.rpartition("#")
    body = json.dumps(CALL).encode()
    _, writer = await asyncio.open_unix_connection(path)
    writer.write(f"{secret} {len(body)}\n".encode() + body)
    await asyncio.wait_for(rules.asked.wait(), 30)
    writer.close()
    await asyncio.wait_for(rules.cancelled.wait(), 30)


async def test_an_agent_that_would_not_wait_is_answered_in_time(rules: Rules, home: Path) -> None:
    folder = home / "hook"
    folder.mkdir()
    rules.reply = None
    server = HookServer(folder, rules, Manner(patience=0.05))
    await server.start()
    code, _, err = await program(server.address)
    assert code == 2 and "as long as the agent waits" in err and rules.cancelled.is_set()
    server.close()


async def test_the_socket_is_private_and_goes_with_the_server(server: HookServer) -> None:
    server.close()
    assert not server.folder.exists()
