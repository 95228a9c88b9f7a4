"""`dragoman serve` with npm's official SDK as its client, over both transports."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from support.npm_packages import installed
from support.serve_process import ServeProcess

# Before node 22 its WebSocket has to be asked for; later versions take the flag all the same.
NODE = ("node", "--experimental-websocket", "--no-warnings")


@pytest.mark.parametrize("scheme", ["ws", "http"])
async def test_a_whole_conversation_with_permission_cancel_and_load(
    serving: ServeProcess, workspace: Path, scheme: str
) -> None:
    script = str(installed() / "network.mjs")
    url = f"{scheme}://127.0.0.1:{serving.port}/acp"
    process = await asyncio.create_subprocess_exec(
        *(*NODE, script, str(workspace), url, serving.token),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, f"{output.decode()}\n{errors.decode()}"
    seen = json.loads(output)
    first, second = seen["first"], seen["second"]
    assert (first["stops"], first["questions"]) == (["end_turn", "cancelled"], 1)
    assert (first["texts"][0], first["texts"][-1]) == ("hello", "sleeping")
    assert second["stops"] == ["end_turn"]
    assert second["texts"] == [*first["texts"], "more"], "the replay, then what is new"
