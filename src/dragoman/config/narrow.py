"""Finds settings of an untrusted workspace that let an agent do more than the user's own settings do.

A workspace may choose among the user's agents, but only one that is at least as restricted: the same sandbox or a
stricter one, no additional file or terminal service, no additional variable, no higher limit. What cannot be compared,
such as sandboxes of two kinds, counts as wider: then the user has to trust the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from dragoman.config.model import AgentConfig, Config
from dragoman.config.sandbox_model import SandboxConfig

_SHARE = ("session", "workspace", "all")
_NO_LIMIT_IS_ZERO = frozenset({"max_prompt_bytes"})
_ONE_BOX = (
    *("kind", "workspace", "elsewhere", "image", "host", "command", "home", "user", "engine", "options"),
)
"""Sandbox settings without an order: if they differ, the sandboxes cannot be compared."""
_LISTS = ("mounts", "pass_env", "hosts")
_SWITCHES = ("serve_fs", "serve_terminal", "auto_resume", "duet")
_REMOTE = ("url", "token", "headers", "ca", "insecure")
_UNASKED = re.compile(
    r"yolo|dangerous|danger-full|bypass|skip-?perm|allow-?all|full-?(auto|access)|(always|auto)-?(approve|accept|allow)"
    r"|trust-?all|no-?(confirm|approval|sandbox|permission)|never-?ask|acceptEdits",
    re.IGNORECASE,
)
"""Arguments and variables that stop known agents from asking for permission; new ones belong here."""
_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}


def widened(own: Config, wanted: Config) -> dict[tuple[str, ...], str]:
    """Keys by which `wanted` (with the workspace's file) allows more than `own` (without it), and the reasons."""
    found: dict[tuple[str, ...], str] = {}
    if wanted.default_agent != own.default_agent and (why := _wider_choice(own, wanted)):
        found["default_agent",] = why
    for key in own.limits.__struct_fields__:
        limit = getattr(own.limits, key)
        if not _at_most(getattr(wanted.limits, key), limit, zero=key in _NO_LIMIT_IS_ZERO):
            found["limits", key] = f"yours is {limit}"
    if wanted.protocol.batches == "accept" and own.protocol.batches != "accept":
        found["protocol", "batches"] = f'yours is "{own.protocol.batches}"'
    return found


def _wider_choice(own: Config, wanted: Config) -> str:
    """Why the workspace's default agent may do more than the user's; empty if it may not."""
    chosen = wanted.agents.get(wanted.default_agent)
    if chosen is None:
        return "you have no agent of that name"  # and in test mode the name would be a program to run
    default = own.agents.get(own.default_agent, AgentConfig())
    reasons = list(_wider_agent(default, chosen, own))
    return (
        f"compared to {own.default_agent}, your default agent, it {'; it '.join(reasons)}" if reasons else ""
    )


def _wider_agent(own: AgentConfig, chosen: AgentConfig, config: Config) -> Iterator[str]:
    if "remote" in (own.kind, chosen.kind):
        if own.kind != chosen.kind or any(getattr(own, key) != getattr(chosen, key) for key in _REMOTE):
            yield (
                "is a remote agent elsewhere"
                if chosen.kind == "remote"
                else "runs here, not on a remote machine"
            )
        return
    yield from _wider_box(own.sandbox, chosen.sandbox, config)
    for key in _SWITCHES:
        if getattr(chosen, key) and not getattr(own, key):
            yield f"has {key} = true"
    if chosen.sandbox_files == "workspace" and own.sandbox_files != "workspace":
        yield 'has sandbox_files = "workspace"'
    if _SHARE.index(chosen.share) > _SHARE.index(own.share):
        yield f'has share = "{chosen.share}"'
    if chosen.continue_command and chosen.continue_command != own.continue_command:
        yield "has a continue_command"
    for table in ("env", "secrets"):
        more = _more(getattr(own, table), getattr(chosen, table))
        if more:
            yield f"is given {', '.join(more)} ({table})"
    unasked = _unasked(chosen)
    if unasked and unasked != _unasked(own):
        yield "is started so that it goes on without asking"


def _wider_box(own: str | None, chosen: str | None, config: Config) -> Iterator[str]:
    ours, theirs = _box(own, config), _box(chosen, config)
    if ours is None or own == chosen:
        return
    if theirs is None:
        yield f"runs in no sandbox, while yours runs in {own}"
        return
    keys = list(_wider_settings(ours, theirs))
    if keys:
        yield f"runs in the sandbox {chosen}, which is wider than {own} in {', '.join(keys)}"


def _box(name: str | None, config: Config) -> SandboxConfig | None:
    """The settings of the named sandbox; None if the agent is not isolated."""
    if name is None:
        return None
    box = config.sandboxes.get(name) or SandboxConfig(kind="bubblewrap" if name == "bubblewrap" else "local")
    return None if box.kind == "local" else box


def _wider_settings(own: SandboxConfig, chosen: SandboxConfig) -> Iterator[str]:
    yield from (key for key in _ONE_BOX if getattr(own, key) != getattr(chosen, key))
    yield from (key for key in _LISTS if not set(getattr(chosen, key)) <= set(getattr(own, key)))
    if not set(chosen.read_only) <= {*own.read_only, *own.mounts}:
        yield "read_only"
    if _more(own.env, chosen.env):
        yield "env"
    for switch in ("network", "keep"):
        if getattr(chosen, switch) and not getattr(own, switch):
            yield switch
    if own.roots and not (chosen.roots and set(chosen.roots) <= set(own.roots)):
        yield "roots"
    if chosen.login_files != own.login_files and not (
        chosen.login_files is not None and set(chosen.login_files) <= set(own.login_files or ())
    ):
        yield "login_files"
    if not _at_most(_bytes(chosen.memory), _bytes(own.memory), zero=True):
        yield "memory"
    for key in ("cpus", "processes"):
        if not _at_most(getattr(chosen, key), getattr(own, key), zero=True):
            yield key


def _more(own: Mapping[str, str], chosen: Mapping[str, str]) -> list[str]:
    """Variables of `chosen` that `own` lacks or has with another value."""
    return [name for name, value in chosen.items() if own.get(name) != value]


def _unasked(agent: AgentConfig) -> list[str]:
    words = [*agent.command, *agent.env, *agent.env.values()]
    return [word for word in words if _UNASKED.search(word.rpartition("/")[2])]


def _at_most(chosen: float, own: float, *, zero: bool) -> bool:
    """Whether `chosen` is no higher than `own`; with `zero`, 0 means no limit. False for NaN."""
    if zero and own == 0:
        return chosen >= 0
    return chosen <= own and not (zero and chosen == 0)


def _bytes(memory: str | None) -> float:
    found = re.fullmatch(r"(\d+)([kmgt]?)b?", (memory or "").lower())
    return int(found[1]) * _UNITS[found[2]] if found else 0
