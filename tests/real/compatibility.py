"""Writes `docs/reference/compatibility.md` from the last run: `python -m real.compatibility FILE`."""

from __future__ import annotations

import sys
from pathlib import Path

from dragoman.config.model import AgentConfig
from dragoman.gateway.access.mediation import mediation_of
from real import natures, results
from real.agents import AGENTS, RealAgent

HEAD = """# Compatibility

Agents and behaviours, as `make test-real` last saw them: the real programs from npm, offline, with a scripted model.
`claude` and `codex` are spoken to in their own tongues; the others speak ACP. `make test-real-latest`
tries the newest version of each and prints a table: agent, pinned, latest, result.
"""
WORDS = {True: "works", False: "**fails**", None: "not tested"}
MEANING = {
    "hello": "answers, and says which version it is",
    "thinking": "its thoughts come before its answer",
    "tool allowed": "asks, runs the command, shows it as completed",
    "tool rejected": "does not run it, shows it as failed, goes on",
    "cancel in text": "ends as cancelled in the middle of an answer; the next prompt works",
    "cancel with a question open": "the question is withdrawn, the call is failed",
    "cancel in a running tool": "ends at once, and so does the command; the conversation is remembered",
    "mode and model change": "by config options, and by `session/set_mode` and `session/set_model`",
    "list": "another gateway finds the session, also one that knows nothing but what the agent tells",
    "load": "another gateway shows the conversation, and the agent remembers it",
    "resume": "the same without showing it again; for gemini, which has neither, list and resume are Dragoman's own",
    "API error": "a failing model is an error with its words; the next prompt works",
    "crash": "a killed agent comes back and remembers",
}

MEDIATION = """\
How much of what an agent does reaches [the rules](../explanation/policy.md) before it happens: *full* is every tool
call, *asking* what the agent asks about, *none* nothing for sure. Agents that are not in this table are *none*: they
were not tested. The built-in agent is *full*. `policy.require` refuses what is below it. That a deny on reading a
file holds is tested for those that are *full*, and that a denied command does not run in the mode that never asks.
Agents that are *full* by a hook are started without it in a sandbox, and have another level there."""


def page(seen: results.Seen) -> str:
    names = [f"{agent.name} {agent.version}" for agent in AGENTS]
    lines = [HEAD, f"| Behaviour | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for behaviour in results.BEHAVIOURS:
        cells = [WORDS[seen.get(name, {}).get(behaviour)] for name in names]
        lines.append(f"| {behaviour} | {' | '.join(cells)} |")
    lines += ["", "| Behaviour | What works means |", "|---|---|"]
    lines += [f"| {behaviour} | {MEANING[behaviour]} |" for behaviour in results.BEHAVIOURS]
    lines += [
        "",
        "## Mediation",
        "",
        MEDIATION,
        "",
        "| Agent | Level | Why | Modes without any | In a sandbox |",
        "|---|---|---|---|---|",
    ]
    lines += [_mediation(agent) for agent in AGENTS]
    lines += ["", "## What still differs", "", "| Agent | | |", "|---|---|---|"]
    lines += [
        f"| {agent} {version} | {behaviour} | {_plain(what)} |"
        for (agent, version, behaviour), what in natures.OBSERVED.items()
        if behaviour != "mediation"
    ]
    return "\n".join(lines) + "\n"


def _mediation(agent: RealAgent) -> str:
    config = AgentConfig(kind=agent.kind, command=[agent.name])  # type: ignore[arg-type]
    found, boxed = mediation_of(config), mediation_of(config, boxed=True)
    modes = ", ".join(f"`{mode}`" for mode in sorted(found.never_asks))
    inside = "the same" if boxed == found else f"{boxed.level}: {boxed.why}"
    return f"| {agent.name} {agent.version} | {found.level} | {found.why} | {modes} | {inside} |"


def _plain(what: object) -> str:
    if isinstance(what, bool):
        return "yes" if what else "no"
    return ", ".join(sorted(map(str, what))) if isinstance(what, set) else str(what)


def main() -> None:
    Path(sys.argv[1]).write_text(page(results.read()))


if __name__ == "__main__":
    main()
