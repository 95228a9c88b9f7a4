"""What real agents were last seen to do, kept from run to run until their version changes."""

from __future__ import annotations

import json
import os

from real.install import CACHE, LATEST

FILE = CACHE / ("results-latest.json" if os.environ.get(LATEST) else "results.json")
BEHAVIOURS = (
    "hello",
    "thinking",
    "tool allowed",
    "tool rejected",
    "cancel in text",
    "cancel with a question open",
    "cancel in a running tool",
    "mode and model change",
    "list",
    "load",
    "resume",
    "API error",
    "crash",
)

Seen = dict[str, dict[str, bool | None]]
"""By agent with its version, by behaviour; None: it could not be tested."""

_seen: Seen = {}


def record(agent: str, version: str, behaviour: str, *, works: bool | None) -> None:
    """Of several tests of one behaviour all must pass; what could not be tested is not what it was before."""
    known = _seen.setdefault(f"{agent} {version}", {})
    known[behaviour] = works and known.get(behaviour, True) if works is not None else None


def keep() -> None:
    """Beside what is known of agents and behaviours that did not run this time."""
    if not _seen:
        return
    everything = read()
    for agent, seen in _seen.items():
        everything[agent] = {**everything.get(agent, {}), **seen}
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text(json.dumps(everything, indent=1, sort_keys=True) + "\n")


def read() -> Seen:
    return json.loads(FILE.read_text()) if FILE.exists() else {}
