"""Runs one prompt until its stop reason: a slash command, or a turn with the model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dragoman.builtin.commands import slash
from dragoman.builtin.commands.custom import CustomCommand
from dragoman.builtin.errors import ToolError
from dragoman.builtin.models.choice import installed
from dragoman.builtin.models.preload import load
from dragoman.wire.errors import invalid_params
from dragoman.wire.json_types import own_meta

if TYPE_CHECKING:
    from dragoman.builtin.session import Session

Json = dict[str, Any]

UNANSWERED = "unanswered"
"""In place of a stop reason: the turn ended, and there was no model that could have answered."""
NO_MODEL = """\
I am Dragoman's built-in agent, and no language model is configured, so I cannot answer that: I am a set of \
tools, not a language model.

Without one you can still use `/read`, `/search`, `/edit`, `/run`, `/diff` and `/plan` (`/help` lists them all).

To get a language model:

"""


async def run_turn(session: Session, prompt: Sequence[Json]) -> str:
    """Answer a prompt; returns the stop reason. Cancelling the task ends the turn as `cancelled`."""
    text = _text(prompt)
    if not prompt or (not text.strip() and len(prompt) == 1 and prompt[0].get("type") == "text"):
        raise invalid_params("The prompt is empty", "prompt")
    for block in prompt:
        if _is_recap(block):  # not written by the user
            continue
        session.history.record({"sessionUpdate": "user_message_chunk", "content": block})
    try:
        session.name_after(text)
        session.save()
        return await _answer(session, prompt, text)
    except asyncio.CancelledError:
        return "cancelled"
    finally:
        session.save()


async def _answer(session: Session, prompt: Sequence[Json], text: str) -> str:
    own = [block for block in prompt if not _is_recap(block)]
    named = slash.parse(text) if own and own[0].get("type") == "text" else None
    command = slash.find(session, named[0]) if named is not None else None
    if isinstance(command, CustomCommand):
        assert named is not None
        recap = [block for block in prompt if _is_recap(block)]
        prompt = [*recap, {"type": "text", "text": command.prompt(named[1])}, *own[1:]]
    elif command is not None:
        assert named is not None
        return await _command(session, command, named[1])
    elif named is not None and session.model is None:
        session.say(f"There is no command `/{named[0]}`. `/help` lists them.")
        return "end_turn"
    if session.model is None:
        session.say(NO_MODEL + session.models.guidance())
        return UNANSWERED
    if not installed():
        session.say(
            f"The model {session.model} is configured, but what speaks to models is not installed: "
            "`pip install 'dragoman[agent]'`."
        )
        return UNANSWERED
    await asyncio.to_thread(load, "dragoman.builtin.loop")
    from dragoman.builtin.loop import converse

    return await converse(session, prompt)


async def _command(session: Session, command: slash.Command, rest: str) -> str:
    try:
        await command.run(session, rest)
    except slash.Usage as usage:
        session.say(f"Usage: {usage}")
    except (ToolError, FileNotFoundError) as error:
        session.say(str(error))
    return "end_turn"


def _text(prompt: Sequence[Json]) -> str:
    """The text that the user wrote."""
    texts = [block for block in prompt if block.get("type") == "text" and not _is_recap(block)]
    return "\n".join(str(block.get("text", "")) for block in texts)


def _is_recap(block: Json) -> bool:
    """Whether the block is the gateway's recap of a conversation that this agent lacks, in front of the user's text."""
    return own_meta(block).get("recap") is True
