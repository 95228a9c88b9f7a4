"""How much of what an agent does reaches the rules before it happens: its mediation level.

full    every tool call reaches the rules before it runs
asking  only what the agent asks about
none    nothing is known to: the agent was not tested, or its mode never asks

An agent is known by its kind, or by its program: users give agents names of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.config.model import AgentConfig
from dragoman.gateway.ports.agent import program_names
from dragoman.wire.errors import FORBIDDEN, RpcError

NONE, ASKING, FULL = "none", "asking", "full"
ORDER = (NONE, ASKING, FULL)


@dataclass(frozen=True, slots=True)
class Mediation:
    level: str
    why: str
    never_asks: frozenset[str] = frozenset()
    """Modes in which the level is `none`."""

    def in_mode(self, mode: object) -> str:
        return NONE if mode in self.never_asks else self.level

    def shown(self, mode: object = None) -> dict[str, str]:
        """Level and why, for people; in a mode, if one is given."""
        if mode in self.never_asks:
            return {"level": NONE, "why": f"it never asks in the mode {mode!r}"}
        return {"level": self.level, "why": self.why}


BY_KIND = {
    "builtin": Mediation(FULL, "its tools ask the rules before each call"),
    "claude": Mediation(FULL, "a hook of its control protocol is called before each call, in every mode"),
    "codex": Mediation(
        ASKING, "it runs in its own sandbox without asking", frozenset({"full-access", "auto-review"})
    ),
}
BY_PROGRAM = {
    "claude-agent-acp": Mediation(
        ASKING, "it asks about what its own rules do not allow", frozenset({"bypassPermissions", "auto"})
    ),
    "codex-acp": Mediation(
        ASKING,
        "it runs in its own sandbox without asking",
        frozenset({"agent", "full-access", "agent-full-access"}),
    ),
    "opencode": Mediation(ASKING, "it asks about what its own `permission` settings name, by default little"),
    "gemini": Mediation(
        ASKING,
        "it does not ask about reads, and does not run its `BeforeTool` hooks when it speaks ACP",
        frozenset({"yolo"}),
    ),
    "qwen": Mediation(ASKING, "it does not ask about reads", frozenset({"yolo"})),
}
_TYPED = "its hook is called before each call, but not for text typed into a running command"
HOOKED_KINDS = {"codex": Mediation(ASKING, _TYPED, BY_KIND["codex"].never_asks)}
HOOKED = {
    "codex-acp": Mediation(ASKING, _TYPED, BY_PROGRAM["codex-acp"].never_asks),
    "opencode": Mediation(FULL, "a plugin of ours is called before each call"),
    "qwen": Mediation(FULL, "its `PreToolUse` hook is called before each call, in every mode"),
    "claude-agent-acp": Mediation(FULL, "a hook of Claude Code is called before each call, in every mode"),
}
"""Agents that are started with our hook, which is not done in a sandbox: there, the tables above hold."""
UNKNOWN = Mediation(NONE, "it was not tested whether it asks")


def mediation_of(agent: AgentConfig, *, boxed: bool = False) -> Mediation:
    """The mediation of an agent, also in a sandbox; see `docs/reference/compatibility.md`."""
    found = (BY_KIND if boxed else BY_KIND | HOOKED_KINDS).get(agent.kind)
    if found is not None:
        return found
    if agent.kind != "acp":
        return UNKNOWN
    known = BY_PROGRAM if boxed else BY_PROGRAM | HOOKED
    return next((known[name] for name in program_names(agent.command) if name in known), UNKNOWN)


def check_level(
    required: str | None, name: str, agent: AgentConfig, mode: object = None, *, boxed: bool = False
) -> None:
    """Raise if an agent, or its mode, is below `policy.require`."""
    if required is None:
        return
    mediation = mediation_of(agent, boxed=boxed)
    level = mediation.in_mode(mode)
    if ORDER.index(level) >= ORDER.index(required):
        return
    in_mode = mode in mediation.never_asks
    where = " in a sandbox" if boxed and mediation_of(agent).level != mediation.level else ""
    what = f"The mode {mode!r} of the agent {name}" if in_mode else f"The agent {name}{where}"
    why = "it never asks" if in_mode else mediation.why
    step = "switch to another mode" if in_mode else "use another agent"
    raise RpcError(
        FORBIDDEN,
        f'{what} has the mediation level "{level}" ({why}), but policy.require is "{required}": {step}, '
        "or lower policy.require. `dragoman agents list` shows the levels.",
        {"reason": "policy", "rule": "policy.require", "level": level, "required": required},
    )
