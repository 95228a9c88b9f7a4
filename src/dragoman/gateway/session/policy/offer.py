"""Our own answers to a permission question, and what the agent is told for each.

With `policy.remember = "gateway"` clients are offered these instead of the agent's options, so that what holds for
longer is remembered here: listed, revocable, and no wider than the act. The agent is told "once" or "no".

Some questions stay the agent's own: which mode follows (a finished plan), which answer is meant, and those without an
option that is surely for once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dragoman.gateway.json_types import JsonObject, as_object, decode_object, encode, own_meta
from dragoman.gateway.session.policy.verdict import choose_option, is_lasting

if TYPE_CHECKING:
    from dragoman.policy.act import Act
    from dragoman.policy.memory.memory import Scope
    from dragoman.policy.memory.pattern import Pattern

PREFIX = "dragoman:"
ONCE, SESSION, PROJECT, REJECT = (f"{PREFIX}{name}" for name in ("once", "session", "project", "reject"))
SCOPES: dict[str, Scope] = {SESSION: "session", PROJECT: "project"}
"""The smaller one first: clients that pick an option by its kind take the first one for always."""
MAX_NAME = 100
"""Characters of a pattern in the name of an option."""
_MODE_TOOL = re.compile(r"(?:exit|enter)_?plan(?:_?mode)?|plan_(?:exit|enter)|switch_?mode", re.IGNORECASE)
"""Tools that change the mode: Claude Code, Gemini CLI, Qwen Code, OpenCode."""


@dataclass(frozen=True, slots=True)
class Offer:
    act: Act
    once: str
    """The agent's option for once."""
    reject: str | None
    """The agent's option for no; None if it has none, or one for always, which is among `own`."""
    own: tuple[JsonObject, ...]
    """Options of the agent that are offered as they are."""
    patterns: tuple[Pattern, ...]
    """What would be remembered; empty if it can be answered only once."""

    @property
    def options(self) -> list[JsonObject]:
        made = [_option(ONCE, "Allow once", "allow_once")]
        if self.patterns:
            what = self.words
            made.append(_option(SESSION, f"Allow {what} in this session", "allow_always"))
            made.append(_option(PROJECT, f"Allow {what} in this project", "allow_always"))
        if not any(str(option.get("kind")).startswith("reject") for option in self.own):
            made.append(_option(REJECT, "Reject", "reject_once"))
        return [*made, *self.own]

    @property
    def words(self) -> str:
        from dragoman.policy.memory.pattern import words_of

        words = words_of(self.patterns, self.act.workspace)
        return words if len(words) <= MAX_NAME else f"{words[:MAX_NAME]}…"

    def facts(self) -> JsonObject | None:
        """What would be remembered, for clients that let a person choose; None if nothing can be."""
        if not self.patterns:
            return None
        return {
            "pattern": [pattern.text(self.act.workspace) for pattern in self.patterns],
            "scopes": ["session", "project", "everywhere"],
            "until": ["1h", "today"],
        }

    def scope_of(self, result: JsonObject) -> Scope | None:
        return SCOPES.get(str(_chosen(result))) if self.patterns else None

    def allows(self, result: JsonObject) -> bool:
        """Whether the answer is one of ours that allows."""
        return _chosen(result) in (ONCE, *SCOPES)

    def for_agent(self, answer: bytes) -> bytes:
        """The answer in the agent's own terms. It was read before: an option in it is one that was offered."""
        result = decode_object(answer)
        chosen = _chosen(result)
        if not isinstance(chosen, str) or not chosen.startswith(PREFIX):
            return answer
        told = self.once if self.allows(result) else self.reject
        outcome = as_object(result.get("outcome"))
        said: JsonObject = {**outcome, "optionId": told} if told is not None else {"outcome": "cancelled"}
        meta = {key: value for key, value in as_object(result.get("_meta")).items() if key != "dragoman"}
        rest = {key: value for key, value in result.items() if key != "_meta"}
        return encode({**rest, "outcome": said, **({"_meta": meta} if meta else {})})


def make_offer(
    act: Act, tool: JsonObject, options: object, modes: Sequence[object], patterns: Sequence[Pattern]
) -> Offer | None:
    """Our answers in place of the agent's options; None if the question stays the agent's own.

    `modes` are the ids of the session's modes: an option with such an id chooses one.
    """
    offered = [as_object(option) for option in options] if isinstance(options, list) else []
    once = choose_option("allow", offered)
    if act.question or once is None or sum(_is_once(option) for option in offered) != 1:
        return None
    if act.label_only and choose_option("deny", offered) is None:
        return None  # something that a person is told, or asked, with one answer
    if _changes_mode(act, tool) or any(option.get("optionId") in modes for option in offered):
        return None
    own = [option for option in offered if own_meta(option).get("kindGuessed")]
    reject = next(
        (
            str(option["optionId"])
            for option in offered
            if option.get("kind") == "reject_once" and option not in own and "optionId" in option
        ),
        None,
    )
    if reject is None:
        own += [option for option in offered if option.get("kind") == "reject_always" and option not in own]
    own = [option for option in own if not str(option.get("optionId")).startswith(PREFIX)]
    return Offer(act, once, reject, tuple(own), tuple(patterns))


def _is_once(option: JsonObject) -> bool:
    return option.get("kind") == "allow_once" and not is_lasting(option)


def _changes_mode(act: Act, tool: JsonObject) -> bool:
    return "switch_mode" in (act.kind, tool.get("kind")) or _MODE_TOOL.fullmatch(act.tool) is not None


def _chosen(result: JsonObject) -> object:
    return as_object(result.get("outcome")).get("optionId")


def _option(id: str, name: str, kind: str) -> JsonObject:
    return {"optionId": id, "name": name, "kind": kind}
