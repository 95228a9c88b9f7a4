"""Checks which kinds of sandbox work here, and each that is configured or used."""

from __future__ import annotations

import os
from collections.abc import Iterator

from dragoman.cli.doctor.finding import Context, Finding

ISOLATING = ("bubblewrap", "podman", "docker")


def check(context: Context) -> Iterator[Finding]:
    from dragoman.sandbox.doctor import examine_kinds, examine_sandboxes

    config = context.loaded.config
    used = {agent.sandbox for agent in config.agents.values()} | {rule.sandbox for rule in config.workspaces}
    kinds = examine_kinds()
    for kind in kinds:
        if kind.works:
            yield Finding("ok", kind.kind, kind.detail)
        elif kind.kind in used:
            yield Finding("error", kind.kind, kind.detail, _instead(kind.detail, context.platform))
        else:
            yield Finding("ok", kind.kind, f"not usable here, and nothing uses it: {kind.detail}")
    for box in examine_sandboxes(config):
        about = f"sandbox {box.name}"
        fix = "" if box.works else f"do what this says, or change sandboxes.{box.name}"
        yield Finding("ok" if box.works else "error", about, box.detail, fix)
    if os.geteuid() == 0:
        works = any(kind.works for kind in kinds if kind.kind in ISOLATING)
        inside = "; in one it is root to the files that it is shown" if works else ", and none works here"
        told = f"this is root: an agent without a sandbox may change the whole machine{inside}"
        yield Finding("warning", "root", told, "run Dragoman as an ordinary user")


def _instead(detail: str, platform: str) -> str:
    if platform == "darwin":
        return "use podman, docker or ssh, or leave the sandbox out: docs/how-to/macos.md"
    return "install or allow it, or use another kind: docs/how-to/sandbox.md"
