"""An agent with the official SDK (pip install agent-client-protocol); entry = "/path/to/examples/sdk_agent.py:Echo"."""

from typing import Any
from uuid import uuid4

from acp.interfaces import Agent, Client

from acp import InitializeResponse, NewSessionResponse, PromptResponse, update_agent_message_text


class Echo(Agent):
    def on_connect(self, conn: Client) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **kwargs: Any) -> InitializeResponse:
        return InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd: str, **kwargs: Any) -> NewSessionResponse:
        return NewSessionResponse(session_id=uuid4().hex)

    async def prompt(self, session_id: str, prompt: list[Any], **kwargs: Any) -> PromptResponse:
        for block in prompt:
            text = f"You said: {getattr(block, 'text', '?')}"
            await self.client.session_update(session_id, update_agent_message_text(text))
        return PromptResponse(stop_reason="end_turn")
