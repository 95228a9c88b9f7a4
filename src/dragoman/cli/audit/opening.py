"""The audit of a gateway: opened with its settings, and told what changes in them."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any

import dragoman
from dragoman.agents.secrets import on_resolved
from dragoman.config.model import Config
from dragoman.config.paths import ADMINISTRATOR, Paths
from dragoman.gateway.ports.audit import Audit

if TYPE_CHECKING:
    from dragoman.policy.rulebook import Renewal

PUBLIC = frozenset(
    {
        *(
            "HOME",
            "LANG",
            "LANGUAGE",
            "LOGNAME",
            "PATH",
            "PWD",
            "SHELL",
            "TEMP",
            "TERM",
            "TMP",
            "TMPDIR",
            "TZ",
            "USER",
        ),
    }
)
"""Variables whose values are no secrets."""


def open_audit(config: Config, paths: Paths) -> tuple[Audit, Callable[[], Awaitable[None]]]:
    """The audit of this process, and how it is closed."""
    if not config.audit.enabled:
        return Audit(), functools.partial(asyncio.sleep, 0)
    from dragoman.audit.gateway_audit import GatewayAudit

    started = {"version": dragoman.__version__, "pid": os.getpid()}
    audit = GatewayAudit(paths.audit_dir, config.audit, config.sessions.write_patience, started)
    audit.hide(secrets_of(config))
    audit.watch([paths.config_file, ADMINISTRATOR, paths.trust_file])
    stop_hiding = on_resolved(audit.hide)

    async def close() -> None:
        stop_hiding()
        await audit.close()

    return audit, close


def secrets_of(config: Config) -> Iterator[str]:
    """Values in the configuration that no record may have; those of `secrets` are resolved with their agent's start."""
    for agent in config.agents.values():
        yield from (value for name, value in agent.env.items() if not is_public(name))
        yield from agent.headers.values()
    if config.serve.auth_token is not None:
        yield config.serve.auth_token


def is_public(variable: str) -> bool:
    """Whether the value of a variable is no secret: hidden, it would make paths and languages unreadable."""
    return variable in PUBLIC or variable.startswith(("LC_", "XDG_"))


def record_renewal(audit: Audit, renewal: Renewal) -> None:
    """Record changed rules before they hold, or why they do not."""
    from dragoman.audit.configuration import describe

    facts: dict[str, Any] = {
        "workspace": renewal.workspace,
        "files": [describe(file) for file in renewal.files],
        "before": renewal.before,
        "after": renewal.after,
        "by": "file",
    }
    if renewal.trouble is not None:
        audit.record("policy_refused", {**facts, "why": renewal.trouble})
    else:
        audit.record("policy_changed", {**facts, "wider": list(renewal.wider)})
