"""A permission question: what people may choose, and what each choice means to the agent."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.agents.adapter import Upstream
from dragoman.agents.json_types import JsonObject
from dragoman.wire.errors import RpcError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Choice:
    """One option with the answer that it stands for."""

    option: JsonObject
    answer: object


def choice(id: str, name: str, kind: str, answer: object) -> Choice:
    return Choice({"optionId": id, "name": name, "kind": kind}, answer)


def picked(offered: Sequence[Choice], outcome: object, otherwise: object) -> object:
    """The answer that was chosen; anything but a plain choice is `otherwise`."""
    if isinstance(outcome, dict) and outcome.get("outcome") == "selected":
        for each in offered:
            if each.option["optionId"] == outcome.get("optionId"):
                return each.answer
    return otherwise


async def ask(handle: Upstream, session_id: str, tool: JsonObject, offered: Sequence[Choice]) -> object:
    """The outcome; None if nobody could be asked."""
    options = [each.option for each in offered]
    question = {"sessionId": session_id, "toolCall": tool, "options": options}
    try:
        return (await handle.ask("session/request_permission", question)).get("outcome")
    except RpcError as error:
        log.warning("permission question failed: %s", error, extra={"agent_session": session_id})
        return None
