"""The checks of `dragoman doctor`, one module for each subject; `CHECKS` has their order."""

from __future__ import annotations

from dragoman.cli.doctor.checks import (
    agents,
    audit,
    checkpoints,
    clock,
    configuration,
    integrations,
    limits,
    platform,
    policy,
    private_files,
    sandboxes,
    serve,
    store,
    terminal,
    worktrees,
)
from dragoman.cli.doctor.finding import Check

CHECKS = (
    Check(
        "configuration",
        "syntax, unknown keys, wrong types, with file and line; what of a workspace's file is ignored",
        configuration.check,
    ),
    Check(
        "files",
        "secrets and stored sessions: whether other users can read them",
        private_files.check,
    ),
    Check(
        "agents",
        "each agent that is installed or configured: its program, version, login, and whether it answers `initialize`",
        agents.check,
        60.0,
    ),
    Check(
        "store",
        "the directory and every journal: damage, sessions that only one of them has, space and size",
        store.check,
        120.0,
    ),
    Check("search", "the search index: damaged, or behind the journals", store.check_search, 60.0),
    Check(
        "checkpoints",
        "recorded files of sessions or projects that are gone, and their size",
        checkpoints.check,
        60.0,
    ),
    Check(
        "worktrees",
        "folders that are gone, branches and folders without a record, and their size",
        worktrees.check,
        60.0,
    ),
    Check(
        "policy",
        "rules that cannot match or fail their examples; rule files that others may write",
        policy.check,
    ),
    Check("audit", "the chains (of a large audit the newest), the key, the anchors, the disk", audit.check, 60.0),
    Check(
        "serve",
        "a running `dragoman serve`: whether it answers and which version it is; whether the port is free",
        serve.check,
    ),
    Check("sandboxes", "which kinds work here; the configured ones; what it means to be root", sandboxes.check, 60.0),
    Check("editors", "editors that are configured to start a Dragoman that is gone", integrations.check_editors),
    Check("service", "the unit of `dragoman service`: its program and its state", integrations.check_service),
    Check("terminal", "`TERM`, colours, UTF-8 and size", terminal.check),
    Check("clock", "the clock against this installation, the disk and the stored times", clock.check),
    Check("limits", "open files, processes, and inotify", limits.check),
    Check("system", "what differs on WSL and macOS", platform.check),
)  # fmt: skip
"""In the order in which they are shown."""
