"""What answers of a person are remembered for longer than once: offered, checked, stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dragoman.gateway.json_types import JsonObject, decode_object, own_meta
from dragoman.gateway.session.policy.offer import Offer, make_offer
from dragoman.gateway.session.policy.verdict import Verdict
from dragoman.wire.errors import invalid_params

NOT_REMEMBERED = "Nothing is remembered, the answer holds once."
TRIES = 3
"""To store an answer while other processes write, each after waiting for them with a bound."""

if TYPE_CHECKING:
    from dragoman.gateway.access.identity import Identity
    from dragoman.policy.act import Act
    from dragoman.policy.decide import Policy
    from dragoman.policy.memory.file import Remembered
    from dragoman.policy.memory.memory import Memory


async def add_later(kept: Remembered, memory: Memory, tell: Callable[[str], None]) -> None:
    """Wait in a thread for another process that writes, then store a memory; bounded, and told if it fails."""
    from dragoman.policy.memory.pattern import NotRemembered

    for tries_left in reversed(range(TRIES)):
        await asyncio.to_thread(kept.wait_for_lock)
        try:
            kept.add(memory, wait=False)
            return
        except NotRemembered as error:
            if not tries_left:
                tell(f"{NOT_REMEMBERED} {error}")


def memory_facts(memory: Memory | None) -> JsonObject:
    if memory is None:
        return {}
    told = {"id": memory.id, "scope": memory.scope, "until": memory.until, "words": memory.words}
    return {"remembered": told}


def question_facts(verdict: Verdict | None, offer: Offer | None) -> JsonObject:
    """What a person who is asked is shown besides the call."""
    if verdict is None:
        return {}
    facts: JsonObject = {
        "rule": verdict.rule,
        "why": verdict.why,
        "level": verdict.level,
        "act": verdict.act,
    }
    remember = offer.facts() if offer is not None else None
    return facts if remember is None else {**facts, "remember": remember}


@dataclass(frozen=True, slots=True)
class Remembering:
    rules: Policy
    kept: Remembered | None
    """None if each agent remembers for itself."""
    later: Callable[[Memory], None]
    """Stores a memory as soon as no other process writes the file, without holding the event loop."""

    def offer(
        self, verdict: Verdict | None, tool: JsonObject, options: object, modes: Sequence[object]
    ) -> Offer | None:
        """Our own answers to a question that is left to a person; None if the agent's options are offered.

        In a followed session there is no verdict: what is offered are its owner's answers already.
        """
        act = verdict.subject if verdict is not None else None
        if act is None or self.kept is None:
            return None
        from dragoman.policy.memory.memory import memory_of
        from dragoman.policy.memory.pattern import patterns_of

        patterns = patterns_of(act) or []
        if patterns:
            tried = memory_of(act, patterns, "session", None, call="", who="", now=self.kept.now())
            if not self._would_allow(tried, act):
                patterns = []  # a rule asks whatever is remembered
        return make_offer(act, tool, options, modes, patterns)

    def check(self, offer: Offer | None, answer: bytes, who: Identity) -> None:
        """Raise an error if the person wishes to remember what cannot be, so that the question stays open."""
        from dragoman.policy.memory.pattern import NotRemembered

        try:
            self._memory(offer, answer, "", who)
        except NotRemembered as error:
            raise invalid_params(f"{error} The question is still open.", "not_remembered") from error

    def wished(
        self, offer: Offer | None, answer: bytes, call: str, who: Identity | None, tell: Callable[[str], None]
    ) -> Memory | None:
        """What a person wishes to have remembered, for `store`; what cannot be is told, and the answer holds once."""
        if who is None:
            return None
        from dragoman.policy.memory.pattern import NotRemembered

        try:
            return self._memory(offer, answer, call, who)
        except NotRemembered as error:
            tell(f"{NOT_REMEMBERED} {error}")
            return None

    def store(self, memory: Memory | None, facts: JsonObject, tell: Callable[[str], None]) -> JsonObject:
        """Remember, once the answer is recorded; returns the facts of the answer, as far as they are true then."""
        if memory is None or self.kept is None:
            return facts
        from dragoman.policy.memory.file import Busy
        from dragoman.policy.memory.pattern import NotRemembered

        try:
            self.kept.add(memory, wait=False)
        except Busy:
            self.later(memory)
        except NotRemembered as error:
            tell(f"{NOT_REMEMBERED} {error}")
            return {name: value for name, value in facts.items() if name != "remembered"}
        return facts

    def _memory(self, offer: Offer | None, answer: bytes, call: str, who: Identity) -> Memory | None:
        """What an answer would have us remember; None if it is for once. Raises `NotRemembered`."""
        kept, result = self.kept, decode_object(answer)
        if offer is None or kept is None or not offer.allows(result):
            return None
        from dragoman.policy.memory.memory import Wish, memory_of, read_wish
        from dragoman.policy.memory.pattern import NotRemembered

        act, told = offer.act, own_meta(result).get("remember")
        if told is None:
            scope = offer.scope_of(result)
            if scope is None:
                return None
            wish = Wish(scope=scope)
        else:
            wish = read_wish(told)
        if not who.may_control:
            raise NotRemembered(f"{who.name} has the role {who.role}, which answers once: control is needed.")
        if not offer.patterns:
            raise NotRemembered(
                "This is answered only once: a rule asks each time, or not all of it is known."
            )
        patterns = wish.patterns(offer.patterns, act.workspace)
        memory = memory_of(act, patterns, wish.scope, wish.until, call=call, who=who.name, now=kept.now())
        if not self._would_allow(memory, act):
            raise NotRemembered(f"This pattern does not cover what is asked: {memory.words}.")
        return memory

    def _would_allow(self, memory: Memory, act: Act) -> bool:
        """Whether the act would not be asked about again."""
        return self.rules.decide(act, memory.rules()).decision == "allow"
