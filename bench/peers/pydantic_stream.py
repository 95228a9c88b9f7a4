"""pydantic-ai's own stream alone: for every line on stdin it streams one answer and prints the CPU seconds."""

from __future__ import annotations

import asyncio
import sys
import time

from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import ModelRequest
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


async def stream(model: OpenAIChatModel) -> float:
    started = time.process_time()
    async with model_request_stream(model, [ModelRequest.user_text_prompt("go")]) as response:
        async for _ in response:
            pass
    return time.process_time() - started


async def main(url: str) -> None:
    model = OpenAIChatModel("bench", provider=OpenAIProvider(base_url=url, api_key="none"))
    while await asyncio.to_thread(sys.stdin.readline):
        print(await stream(model), flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
