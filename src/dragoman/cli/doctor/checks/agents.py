"""Checks agents: their program, version, login, and whether they answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from dragoman.agents.known import find_agent
from dragoman.agents.probe import ProbeResult, probe_all
from dragoman.cli.doctor.finding import Context, Finding, counted
from dragoman.config.check import PLAIN_SANDBOXES
from dragoman.config.model import Config

PATIENCE = 30.0
"""Seconds that an agent may take for `initialize`; all are asked at once."""
TESTED: Mapping[str, str] = {
    "claude": "2.1.325",
    "codex": "0.166.0",
    "claude-acp": "0.99.1",
    "codex-acp": "2.6.0",
    "opencode": "1.18.33",
    "gemini": "0.61.0",
    "qwen": "0.24.4",
}
"""Versions known to work: those of docs/reference/compatibility.md."""


def check(context: Context) -> Iterator[Finding]:
    from dragoman.cli.agents.listing import describe_all
    from dragoman.config.files.installed import installed_agents

    config = context.loaded.config
    context.say("versions of agents")
    rows = describe_all(context.loaded, installed_agents(context.paths))
    configured = {name for name in config.agents if context.loaded.origin("agents", name) != "known agent"}
    wanted = [row for row in rows if row["installed"] or row["name"] in configured or row["default"]]
    asked = {
        row["name"]: find_agent(config, row["name"])
        for row in wanted
        if row["installed"] or _is_elsewhere(row["sandbox"], config)
    }
    answered = 0

    def told(name: str, result: ProbeResult) -> None:
        nonlocal answered
        answered += 1
        context.say(f"{answered} of {counted(len(asked), 'agent')} answered, last {name}")

    limit = min(PATIENCE, config.limits.start_timeout)
    boxes = partial(_boxes, context)
    results = probe_all(asked, limit, boxes, told)
    for row in wanted:
        yield from describe(row, results.get(row["name"]))
    others = len(rows) - len(wanted)
    yield Finding(
        "ok", "others", f"{counted(others, 'known agent')} not installed: `dragoman agents list` shows how"
    )


def _is_elsewhere(sandbox: str | None, config: Config) -> bool:
    """Whether the program is in an image or on another machine, so that only an answer shows that it is there."""
    box = config.sandboxes.get(sandbox) if sandbox is not None else None
    return box is not None and box.kind not in PLAIN_SANDBOXES


def _boxes(context: Context, custody: Any) -> Any:
    from dragoman.sandbox import Sandboxes

    return Sandboxes(context.loaded.config, context.paths, custody)


def describe(row: Mapping[str, Any], result: ProbeResult | None) -> Iterator[Finding]:
    """What is to be said of an agent: `row` of `dragoman agents list`, and its answer; None if it is not installed."""
    name, about = row["name"], f"agent {row['name']}"
    again = f"then `dragoman agents check {name}`"
    if result is None:
        program = row["command"][0] if row["command"] else ""
        fix = row["install"] or f"install {program}, or correct agents.{name}.command or PATH; {again}"
        yield Finding("error", about, f'its program "{program}" is not on this machine', fix)
        return
    if not result.ok:
        look = f"run {row['program']} by hand" if row["program"] else "look at its command, URL or sandbox"
        fix = _login(row) if row["loggedIn"] is False else f"{look}; {again}"
        yield Finding("error", about, f"does not answer: {result.error}", fix)
        return
    version = row["version"] or _told_version(result)
    detail = f"{version or 'version not known'}, answered in {result.seconds:.1f} s"
    if row["kind"] == "builtin" and row["loggedIn"] is False:
        fix = f"{_login(row)}, or choose another default_agent"
        yield Finding(
            "warning" if row["default"] else "ok",
            about,
            f"{detail}; it has no language model",
            fix if row["default"] else "",
        )
    elif row["loggedIn"] is False:
        yield Finding("warning", about, f"{detail}; it is not logged in", _login(row))
    tested = TESTED.get(name)
    if tested is not None and version and _numbers(version) < _numbers(tested):
        fix = row["install"] or "update it"
        yield Finding("warning", about, f"{detail}; older than {tested}, which is known to work", fix)
    elif row["loggedIn"] is not False:
        newer = tested is not None and version and _numbers(version) > _numbers(tested)
        note = f"; newer than {tested}, the last that was tested" if newer else ""
        yield Finding("ok", about, f"{detail}{note}")


def _login(row: Mapping[str, Any]) -> str:
    return str(row["login"] or f"log in with {row['program'] or row['name']}")


def _told_version(result: ProbeResult) -> str | None:
    info = (result.result or {}).get("agentInfo") or {}
    version = info.get("version") if isinstance(info, dict) else None
    return version[:40] if isinstance(version, str) else None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
