"""What the rules say about a tool call, and the offered option that says the same (G-100).

The engine and its readers (`dragoman.policy`) are imported with the first question, so that they cost nothing before.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dragoman.config.model import Decision, PolicyConfig
from dragoman.gateway.json_types import JsonObject, as_object, own_meta

if TYPE_CHECKING:
    from dragoman.gateway.path_mapping.paths import PathMap
    from dragoman.policy.act import Act
    from dragoman.policy.decide import Policy, Wanted
    from dragoman.policy.decide import Verdict as Decided
    from dragoman.policy.memory.file import Remembered
    from dragoman.policy.requests.request import Surroundings

# Kinds of offered options in order of preference. Never `allow_always`: a rule decides about one call, and what an agent
# remembers would hold when the rule is gone.
_PREFERRED: dict[Decision, tuple[str, ...]] = {
    "allow": ("allow_once",),
    "deny": ("reject_once", "reject_always"),
}
_PLAIN = re.compile(r"[\w./+@%-]+")
"""A path that is one word in a shell line, however it is quoted."""
_LASTING = re.compile(
    r"\b(always|every time|from now on|remember|(don.?t|do not|never|stop) ask|(this|the|whole) (session|project))",
    re.IGNORECASE,
)
"""Labels of options that hold for longer than once, whatever their kind says."""

_REFUSAL = re.compile(
    r"(no|reject|deny|refuse|decline|cancel|abort|block|disallow)\b|(do not|don.?t|never) (allow|run|do)\b",
    re.IGNORECASE,
)
_CONSENT = re.compile(r"(yes|allow|approve|accept|permit|always allow)\b", re.IGNORECASE)
"""How labels begin that refuse or consent."""
_KINDS = {
    "allow_once": "Allow once",
    "allow_always": "Always allow",
    "reject_once": "Reject",
    "reject_always": "Always reject",
}

DEFAULT = "default"
"""The name in a verdict for which there was no rule."""


@dataclass(frozen=True, slots=True)
class Verdict:
    decision: Decision
    rule: str
    """Name of the rule that decided, for the record (G-104)."""
    why: str = field(default="", compare=False)
    reason: str | None = field(default=None, compare=False)
    """For the agent."""
    act: JsonObject = field(default_factory=dict, compare=False)
    """The facts that it was decided on."""
    wanted: tuple[Wanted, ...] = ()
    """The approvals that it needs; empty: anyone who may answer decides."""
    subject: Act | None = field(default=None, compare=False)
    """The act itself."""
    level: int = field(default=6, compare=False)
    """Of the order of authority: which one decided."""
    rules: Policy | None = field(default=None, compare=False, repr=False)
    """The rules that it was decided by: others may be in force when it is recorded."""


def decide(
    policy: Policy | PolicyConfig,
    tool: JsonObject,
    around: Surroundings | None = None,
    remembered: Remembered | None = None,
) -> Verdict:
    """What the rules in force say about a tool call; without a matching one, the user is asked."""
    from dragoman.policy.decide import policy_of
    from dragoman.policy.requests.request import Surroundings, act_of_request

    engine = policy_of(policy) if isinstance(policy, PolicyConfig) else policy
    act = act_of_request(tool, around or Surroundings())
    return _with_facts(engine, engine.decide(act, remembered.rules(act) if remembered is not None else ()))


def decide_service(
    policy: Policy,
    method: str,
    params: JsonObject,
    around: Surroundings,
    remembered: Remembered | None = None,
) -> Verdict:
    """What the rules say about a call of `fs/*` or `terminal/create`; what no rule is about is allowed."""
    from dragoman.policy.requests.service import act_of_service

    act = act_of_service(method, params, around)
    found = policy.decide_unasked(act, remembered.rules(act) if remembered is not None else ())
    return _with_facts(policy, found)


def decide_switch(policy: Policy, mode: str, around: Surroundings) -> Verdict:
    """What the rules say about a switch to a mode; only rules that name it, or `switch_mode`, are about it."""
    from dragoman.policy.requests.service import act_of_switch

    found = policy.decide_unasked(act_of_switch(mode, around))
    return _with_facts(policy, found)


def _with_facts(policy: Policy, found: Decided) -> Verdict:
    return Verdict(
        found.decision,
        found.rule,
        found.why,
        found.reason,
        found.act.facts(),
        found.wanted,
        found.act,
        found.level,
        policy,
    )


def decide_unasked(
    policy: Policy, tool: JsonObject, around: Surroundings, remembered: Remembered | None = None
) -> Verdict:
    """What the rules say about a tool call that its agent does not ask about; what no rule is about is allowed."""
    from dragoman.policy.requests.request import act_of_request

    act = act_of_request(tool, around)
    found = policy.decide_unasked(act, remembered.rules(act) if remembered is not None else ())
    return _with_facts(policy, found)


def decide_command(
    policy: Policy, tool: JsonObject, host: str, around: Surroundings, remembered: Remembered | None = None
) -> Verdict:
    """What the rules say about a command that the gateway runs for a client; what no rule is about is allowed."""
    from dragoman.policy.requests.service import act_of_command_call

    act = act_of_command_call(tool, host, around)
    found = policy.decide_unasked(act, remembered.rules(act) if remembered is not None else ())
    return _with_facts(policy, found)


def line_to_host(paths: PathMap | None) -> Callable[[str], str] | None:
    """Translates the paths in a shell line of a sandbox; None if host paths might become several words in it."""
    if paths is None or not all(_PLAIN.fullmatch(root) for root in paths.to_host.targets):
        return None
    return paths.to_host.text


def choose_option(decision: Decision, options: object) -> str | None:
    """The id of the offered option for a decision, found by its kind and never by its id; None if there is none.

    Several options that allow once are answers to a question (Claude Code's AskUserQuestion): no rule knows which one
    the person means.
    """
    offered = [as_object(option) for option in options] if isinstance(options, list) else []
    if decision == "allow" and is_choice(offered):
        return None
    for kind in _PREFERRED.get(decision, ()):
        for option in offered:
            told = option.get("optionId")
            if option.get("kind") != kind or not isinstance(told, str) or is_forged(option):
                continue
            if any(
                _means_more(decision, other)
                for other in offered
                if other.get("optionId") == told and other is not option
            ):
                continue  # of two options with one id, the agent may take the other
            guessed = own_meta(option).get("kindGuessed")
            if decision == "allow" and (guessed or is_lasting(option) or _switches(option)):
                continue
            return told
    return None


def _means_more(decision: Decision, other: JsonObject) -> bool:
    """Whether an agent that takes this option instead does more than was decided."""
    return decision == "allow" or not str(other.get("kind")).startswith("reject")


def is_forged(option: JsonObject) -> bool:
    """Whether an option's label says the opposite of its kind: an allow that is called "Reject"."""
    kind, name = str(option.get("kind")), str(option.get("name")).strip()
    return bool(
        (kind.startswith("allow") and _REFUSAL.match(name))
        or (kind.startswith("reject") and _CONSENT.match(name))
    )


def named_by_kind(options: object) -> list[JsonObject] | None:
    """The options with the names of forged ones corrected, so that a person sees what they do; None if none is."""
    offered = options if isinstance(options, list) else []
    if not any(is_forged(as_object(option)) for option in offered):
        return None
    return [
        {
            **option,
            "name": f"{_KINDS.get(option['kind'], option['kind'])} (the agent calls it {option['name']!r})",
        }
        if is_forged(as_object(option))
        else option
        for option in offered
    ]


def is_choice(options: object) -> bool:
    """Whether the person is to choose among several answers, instead of to permit something."""
    offered = [as_object(option) for option in options] if isinstance(options, list) else []
    once = [option for option in offered if option.get("kind") == "allow_once" and not _switches(option)]
    return len(once) > 1


def _switches(option: JsonObject) -> bool:
    """Whether an option also switches the mode: Qwen Code 0.24 offers one where its classifier is not reached."""
    return str(option.get("optionId")).startswith("proceed_once_and_switch_to_")


def once_only(options: object) -> object:
    """The options without those that allow for longer than once; all of them if there would be no way to allow."""
    offered = [as_object(option) for option in options] if isinstance(options, list) else []
    if not any(option.get("kind") == "allow_once" for option in offered):
        return options
    return [option for option in offered if option.get("kind") != "allow_always"]


def is_lasting(option: JsonObject) -> bool:
    """Whether an option's label says that it holds for longer than once."""
    return bool(_LASTING.search(str(option.get("name"))))
