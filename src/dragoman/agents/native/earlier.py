"""Finds the message at which an agent's own session is forked, by what the gateway says of it.

The gateway counts messages from the end, and gives the beginning of the text. An agent may have more messages than the
gateway, such as one that spoke into a running turn, or fewer, after it was restarted with a recap. So the text decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.wire.errors import RpcError, invalid_params
from dragoman.wire.json_types import JsonObject, as_object, own_meta

CUT = "\u2026"
"""The last character of a text that the gateway shortened."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """The message that a fork begins before."""

    drop: int
    """Messages from it to the end."""
    text: str

    @classmethod
    def read(cls, params: JsonObject) -> Earlier | None:
        """What the params of `session/fork` say; None if all is forked."""
        at = as_object(own_meta(params).get("at"))
        drop, text = at.get("drop"), at.get("text")
        if not isinstance(drop, int) or not isinstance(text, str):
            return None
        return cls(drop, " ".join(text.removesuffix(CUT).split()))

    def find(self, prompts: Sequence[str]) -> int:
        """The place of the message among the session's prompts; raises if it is not certain, or the first."""
        same = [place for place, prompt in enumerate(prompts) if self._is(prompt)]
        expected = len(prompts) - self.drop
        if expected not in same and len(same) != 1:
            raise _refusal("the message is not found in the agent's own session")
        place = expected if expected in same else same[0]
        if not place:
            raise _refusal("nothing is before the message in the agent's own session")
        return place

    def _is(self, prompt: str) -> bool:
        return bool(self.text) and self.text in " ".join(prompt.split())


def _refusal(why: str) -> RpcError:
    return invalid_params(f"The session cannot be forked there: {why}", "unknown_message")
