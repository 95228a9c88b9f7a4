"""The audit of a gateway: opened with its settings, and told what changes in them."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any

import dragoman
from dragoman.config.model import Config
from dragoman.config.paths import ADMINISTRATOR, Paths
from dragoman.gateway.ports.audit import Audit, NoAudit

if TYPE_CHECKING:
    from dragoman.policy.rulebook import Renewal


def open_audit(config: Config, paths: Paths) -> tuple[Audit, Callable[[], Awaitable[None]]]:
    """The audit of this process, and how it is closed."""
    if not config.audit.enabled:
        return NoAudit(), functools.partial(asyncio.sleep, 0)
    from dragoman.audit.gateway_audit import GatewayAudit

    started = {"version": dragoman.__version__, "pid": os.getpid()}
    audit = GatewayAudit(paths.audit_dir, config.audit, config.sessions.write_patience, started)
    audit.hide(_secrets_of(config))
    audit.watch([paths.config_file, ADMINISTRATOR, paths.trust_file])
    return audit, audit.close


def _secrets_of(config: Config) -> Iterator[str]:
    """Values in the configuration that no record may have."""
    for agent in config.agents.values():
        yield from agent.env.values()
        yield from agent.headers.values()
    if config.serve.auth_token is not None:
        yield config.serve.auth_token


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
