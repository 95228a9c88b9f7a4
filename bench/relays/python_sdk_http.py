"""The official Python SDK's `AcpServer` on hypercorn: `python_sdk_http.py PORT`.

Its agent lives in the server, so that nothing but the SDK's own way to a client is measured. It understands the same
prompts as `bench/peers/agent.py`; the updates are built anew for each session because the SDK wants them as models.
"""

import asyncio
import os
import sys
from typing import Any

from acp.http.asgi import create_asgi_app
from hypercorn.asyncio import serve
from hypercorn.config import Config

import acp

PADDED = len('{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""}}')


class Flooding(acp.Agent):
    def __init__(self, connection: acp.Client) -> None:
        self.connection = connection
        self.sessions = 0
        self.prepared: dict[str, list[Any]] = {}

    async def initialize(self, protocol_version: int, **kwargs: Any) -> acp.InitializeResponse:
        return acp.InitializeResponse(protocol_version=1)

    async def new_session(self, cwd: str, **kwargs: Any) -> acp.NewSessionResponse:
        self.sessions += 1
        return acp.NewSessionResponse(session_id=f"bench-{os.getpid()}.{self.sessions}")

    async def prompt(self, session_id: str, prompt: list[Any], **kwargs: Any) -> acp.PromptResponse:
        words = prompt[0].text.split()
        if words[0] == "prepare":
            self.prepared[session_id] = updates(session_id, int(words[1]), int(words[2]))
        else:
            for update in self.prepared.pop(session_id, None) or updates(session_id, 1, 0):
                await self.connection.session_update(session_id=session_id, update=update)
        return acp.PromptResponse(stop_reason="end_turn")


def updates(session_id: str, count: int, size: int) -> list[Any]:
    tag = session_id.removeprefix("bench-")
    text = f"#{tag}:{{:08d}}#".format
    padding = "x" * max(0, size - PADDED - len(text(0)))
    return [acp.update_agent_message_text(text(number) + padding) for number in range(count)]


if __name__ == "__main__":
    config = Config()
    config.bind = [f"127.0.0.1:{sys.argv[1]}"]
    config.accesslog = None
    asyncio.run(serve(create_asgi_app(Flooding), config))
