"""Finds rules that cannot match, contradict themselves or fail their own examples; each message says what to change."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from dragoman.policy.act import Act
from dragoman.policy.decide import Policy
from dragoman.policy.rules import Rule, parts_of
from dragoman.policy.shell.line import read_line

KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other")
"""Kinds of tool call that the protocol knows."""
ROLES = ("observe", "approve", "control", "admin")
_WORKSPACE = "/workspace"


@dataclass(frozen=True, slots=True)
class Problem:
    file: str
    rule: str
    text: str
    severity: Literal["error", "warning"] = "error"
    """A rule with an error does not do what it says; a warning is about one that does more than people expect."""

    def __str__(self) -> str:
        return f"{self.file}: {self.rule}: {self.text}"


def check_rules(rules: Sequence[Rule], agents: Collection[str]) -> list[Problem]:
    """All problems of the rules of one origin, in their order."""
    found: list[Problem] = []
    for index, rule in enumerate(rules):
        texts = [*_words(rule), *_contradictions(rule), *_names(rule, agents)]
        if not texts:
            texts = [*_examples(rule), *_shadowed(rule, rules[:index])]
        found += [Problem(rule.file, rule.name, text) for text in texts]
        found += [
            Problem(rule.file, rule.name, text, "warning") for text in (_wide(rule) if not texts else ())
        ]
    return found


def _wide(rule: Rule) -> Iterator[str]:
    """A rule that allows every command, or every call at all; in a sandbox that is an ordinary rule."""
    config = rule.config
    if config.decision != "allow" or rule.source != "user" or config.boxed or not rule.on_kind_alone:
        return
    if not config.kind:
        yield (
            "it allows every call, commands too, also those that are not understood: "
            "say which with `kind` or `command`, or add `boxed = true`"
        )
    elif "execute" in config.kind:
        yield (
            "it allows every command, also those that are not understood: "
            "say which with `command`, or add `boxed = true`"
        )


def _words(rule: Rule) -> Iterator[str]:
    config = rule.config
    for prefix in rule.prefixes:
        if not prefix or not all(prefix):
            yield 'an empty item in `command` matches nothing: write the words, such as ["git", "status"]'
            continue
        for choice in prefix:
            for word in choice:
                if " " in word.strip() and len(prefix) == 1:
                    shown = ", ".join(f'"{part}"' for part in word.split())
                    yield f'"{word}" in `command` is one word with blanks and matches no program: write [{shown}]'
                elif not word:
                    yield "an empty word in `command` matches nothing: remove it"
    for path in config.paths:
        if not path.startswith(("/", "~/", "{workspace}")):
            yield f'"{path}" in `paths` matches nothing, paths are absolute: write "{{workspace}}/{path}"'
    for host in config.hosts:
        if "/" in host or "@" in host:
            yield f'"{host}" in `hosts` matches nothing: write the name of the host alone'
    for tool in config.mcp:
        if tool.count("/") != 1 or tool.startswith("/") or tool.endswith("/"):
            yield f'"{tool}" in `mcp` matches nothing: write "server/tool", or "server/*"'


def _contradictions(rule: Rule) -> Iterator[str]:
    config = rule.config
    if (config.approvals > 1 or config.approvers) and config.decision != "ask":
        yield f'`approvals` and `approvers` need decision = "ask", this rule says "{config.decision}"'
    if config.trust_label and config.decision != "allow":
        yield '`trust_label` is for decision = "allow": remove it'
    if config.exact and not (rule.prefixes and config.decision == "allow"):
        yield '`exact` is for rules on `command` with decision = "allow": remove it'
    if rule.prefixes and config.kind and "execute" not in config.kind:
        yield 'a command is of kind "execute", so the rule cannot match: remove `kind` or add "execute"'
    if rule.prefixes and config.mcp:
        yield "no call is a command and a tool of an MCP server: make two rules"
    if (
        config.outside_workspace
        and config.paths
        and all(path.startswith("{workspace}") for path in config.paths)
    ):
        yield "`paths` are inside the workspace and `outside_workspace = true` wants the others: remove one of them"
    if config.expires is not None:
        yield from _end(rule)
    if (config.match or config.not_match) and not rule.prefixes:
        yield "`match` and `not_match` are lines for `command`, which this rule does not have: remove them"


def _end(rule: Rule) -> Iterator[str]:
    try:
        datetime.fromisoformat(rule.config.expires or "")
    except ValueError:
        yield f'`expires`: expected a date such as "2027-01-31" or "2027-01-31T18:00+01:00", got "{rule.config.expires}"'
        return
    if rule.ends is not None and rule.ends <= datetime.now(UTC):
        yield f"it ended on {rule.config.expires} and matches nothing any more: remove it or set a later `expires`"


def _names(rule: Rule, agents: Collection[str]) -> Iterator[str]:
    from dragoman.config.schema import suggest

    for agent in rule.config.agent:
        if agent not in agents:
            yield f'there is no agent "{agent}"{suggest(agent, agents)}'
    for kind in rule.config.kind:
        if kind not in KINDS:
            yield f'"{kind}" is no kind of tool call{suggest(kind, KINDS)}; kinds are {", ".join(KINDS)}'
    for approver in rule.config.approvers:
        role = approver.partition(":")[2] if approver.startswith("role:") else None
        if role is not None and role not in ROLES:
            yield f'"{approver}" in `approvers`: roles are {", ".join(ROLES)}'
        elif not approver:
            yield "an empty name in `approvers`: write the name of a token, or role:approve"


class Bound:
    """How long examples may take, and how long each may be: those of a repository are chosen by its authors."""

    SECONDS = 0.1
    CHARACTERS = 1000

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until = clock() + self.SECONDS
        self.left_out = 0
        """Examples that were not tried."""

    def takes(self, line: str) -> bool:
        taken = len(line) <= self.CHARACTERS and self._clock() < self._until
        self.left_out += not taken
        return taken


def check_examples(rules: Sequence[Rule], bound: Bound | None = None) -> list[Problem]:
    """The problems of rules that do not do what their own examples say, as far as `bound` lets them be tried."""
    return [
        Problem(rule.file, rule.name, text)
        for rule in rules
        if rule.prefixes
        for text in _examples(rule, bound)
    ]


def _examples(rule: Rule, bound: Bound | None = None) -> Iterator[str]:
    for line in rule.config.match:
        if (bound is None or bound.takes(line)) and (why := _differs(rule, line, wanted=True)) is not None:
            yield f"`{line}` in `match` is not matched: {why}"
    for line in rule.config.not_match:
        if (bound is None or bound.takes(line)) and _differs(rule, line, wanted=False) is not None:
            yield f"`{line}` in `not_match` is matched: make `command` narrower or remove the example"


def _differs(rule: Rule, line: str, *, wanted: bool) -> str | None:
    """Why the rule does not do with an example what it should; circumstances such as the agent are left aside."""
    act = _act(rule, line)
    parts = parts_of(act)
    now = datetime.min.replace(tzinfo=UTC)
    if rule.decision != "allow":
        touched = rule.touches(act, parts, now) == "yes"
        return None if touched == wanted else "none of its commands begins like that"
    missing = next((why for part in parts if (why := rule.covers(part, act, now)) is not None), None)
    covered = missing is None and bool(parts)
    return None if covered == wanted else missing or "it has no command"


def _act(rule: Rule, line: str) -> Act:
    read = read_line(line, cwd=_WORKSPACE, workspace=_WORKSPACE, home="/home/example")
    config = rule.config
    return Act(
        agent=config.agent[0] if config.agent else "",
        workspace=_WORKSPACE,
        prompted_by=config.prompted_by[0] if config.prompted_by else "local",
        tool=config.tool[0] if config.tool else "",
        kind="execute",
        commands=read.commands,
        wrappers=read.wrappers,
        paths=read.paths,
        mode=config.mode[0] if config.mode else "",
        boxed=bool(config.boxed),
        watched=bool(config.watched),
        opaque=read.opaque,
    )


def _shadowed(rule: Rule, before: Sequence[Rule]) -> Iterator[str]:
    for earlier in before:
        if earlier.name == rule.name:
            yield f'another rule has the name "{rule.name}" too, and records could not tell them apart: rename one'
        if _is_empty(earlier) and earlier.decision == "deny":
            yield f"rule {earlier.name} denies everything, so this one never decides: give that rule a condition"
        elif rule.decision != "deny" and earlier.decision != "deny" and _is_wider(earlier, rule):
            yield f"rule {earlier.name} comes first and matches all that this one does, so it never decides: move it up"


_CONDITIONS = (
    *("kind", "tool", "agent", "paths", "hosts", "mcp", "mode", "prompted_by", "access", "outside_workspace"),
    *("boxed", "watched", "expires", "command"),
)


def _is_empty(rule: Rule) -> bool:
    return all(getattr(rule.config, key) in ([], None) for key in _CONDITIONS)


def _is_wider(earlier: Rule, rule: Rule) -> bool:
    """Whether all that a rule matches is decided by an earlier one; only where that is plain to see."""
    if _is_empty(earlier):
        return not rule.approved
    same = all(
        getattr(earlier.config, key) == getattr(rule.config, key) for key in _CONDITIONS if key != "command"
    )
    if (
        not same
        or earlier.config.exact
        or earlier.approved
        or rule.approved
        or not earlier.prefixes
        or not rule.prefixes
    ):
        return False
    return all(any(_within(prefix, wide) for wide in earlier.prefixes) for prefix in rule.prefixes)


def _within(prefix: tuple[frozenset[str], ...], wide: tuple[frozenset[str], ...]) -> bool:
    return len(wide) <= len(prefix) and all(
        narrow <= wider for narrow, wider in zip(prefix, wide, strict=False)
    )


def check_policy(policy: Policy, agents: Collection[str]) -> list[Problem]:
    """All problems of all rules in force."""
    return [
        *check_rules(policy.administrator, agents),
        *check_rules(policy.narrow, agents),
        *check_rules(policy.user, agents),
    ]
