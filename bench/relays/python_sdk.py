"""A minimal ACP relay on the official Python SDK: `python_sdk.py AGENT [ARGUMENT...]`.

It is an agent to the client and a client to the agent, typed through the SDK on both sides.
"""

import asyncio
import sys
from typing import Any

import acp


class TowardsAgent(acp.Client):
    """What the agent says goes up to the client."""

    upstream: acp.Client

    async def session_update(self, session_id: str, update: Any, **kwargs: Any) -> None:
        await self.upstream.session_update(session_id=session_id, update=update, **kwargs)


class TowardsClient(acp.Agent):
    """What the client says goes down to the agent."""

    def __init__(self, downstream: acp.Agent, towards_agent: TowardsAgent) -> None:
        self.downstream = downstream
        self.towards_agent = towards_agent

    def on_connect(self, conn: acp.Client) -> None:
        self.towards_agent.upstream = conn

    async def initialize(self, protocol_version: int, **kwargs: Any) -> acp.InitializeResponse:
        return await self.downstream.initialize(protocol_version=protocol_version, **kwargs)

    async def new_session(self, cwd: str, **kwargs: Any) -> acp.NewSessionResponse:
        return await self.downstream.new_session(cwd=cwd, **kwargs)

    async def prompt(self, session_id: str, prompt: list[Any], **kwargs: Any) -> acp.PromptResponse:
        return await self.downstream.prompt(session_id=session_id, prompt=prompt, **kwargs)

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        await self.downstream.cancel(session_id=session_id, **kwargs)


async def main() -> None:
    towards_agent = TowardsAgent()
    async with acp.spawn_agent_process(towards_agent, *sys.argv[1:]) as (downstream, _process):
        await acp.run_agent(TowardsClient(downstream, towards_agent))


if __name__ == "__main__":
    asyncio.run(main())
