"""An agent in one function. In config.toml:

[agents.counter]
kind = "python"
entry = "/path/to/examples/plain_agent.py:answer"
"""

from collections.abc import AsyncIterator

from dragoman.agent import Turn


async def answer(prompt: str, turn: Turn) -> AsyncIterator[str]:
    turn.state["count"] = turn.state.get("count", 0) + 1
    yield f"This is prompt number {turn.state['count']} of this session. "
    if await turn.allowed("Count the words"):
        yield f"It has {len(prompt.split())} words."
    else:
        yield "I was not allowed to count the words."
