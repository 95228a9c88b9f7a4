"""Tries the newest version of every agent and says what came of it: `python -m real.latest [NAME...]`.

Prints a table and never fails: a new version that breaks something is news, not a fault of this revision.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from real.agents import AGENTS, RealAgent
from real.install import CACHE, INSTALL, LATEST, PATIENCE, SOURCES

ROOT = Path(__file__).parents[2]
RUN_PATIENCE = 1800
"""Seconds for all tests of one agent."""


def packages(agent: RealAgent) -> list[str]:
    """What is installed for it; the first is the one whose version counts."""
    wanted = json.loads((SOURCES / agent.name / "package.json").read_text())["dependencies"]
    return sorted(wanted, key=lambda package: wanted[package] != agent.version)


def newest(agent: RealAgent) -> str:
    asked = ["npm", "view", packages(agent)[0], "version"]
    told = subprocess.run(asked, capture_output=True, text=True, timeout=PATIENCE)
    if told.returncode:
        raise OSError(f"npm does not tell: {_last_line(told.stderr)}")
    return told.stdout.strip()


def install(agent: RealAgent, version: str) -> None:
    folder = CACHE / "latest" / agent.name
    stamp = folder / ".installed"
    if stamp.exists() and stamp.read_text() == version:
        return
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    first, *others = packages(agent)
    wanted = {first: version, **dict.fromkeys(others, "latest")}
    (folder / "package.json").write_text(json.dumps({"private": True, "dependencies": wanted}))
    result = subprocess.run(INSTALL, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    if result.returncode:
        raise OSError(f"npm failed: {_last_line(result.stderr)}")
    stamp.write_text(version)


def run(agent: RealAgent, version: str) -> str:
    """What the tests say, in a few words."""
    command = [sys.executable, "-m", "pytest", "-m", "real", "tests/real", "-q", "-n", "1"]
    command += ["--ignore=tests/real/test_boxes.py"]  # of one agent, as it is pinned
    env = {**os.environ, LATEST: f"{agent.name}={version}"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=RUN_PATIENCE)
    log = CACHE / "latest" / f"{agent.name}.log"
    log.write_text(done.stdout + done.stderr)
    failed = re.findall(r"^FAILED \S+::(\w+)", done.stdout, re.MULTILINE)
    if failed:
        return f"{len(failed)} fail: {', '.join(dict.fromkeys(failed))} ({log.relative_to(ROOT)})"
    if done.returncode:
        return f"pytest ended with code {done.returncode} ({log.relative_to(ROOT)})"
    passed = re.search(r"(\d+) passed", done.stdout)
    return f"works ({passed[1] if passed else 0} tests)"


def tried(agent: RealAgent) -> tuple[str, str, str, str]:
    """Agent, pinned, latest, result."""
    version = "?"
    try:
        version = newest(agent)
        install(agent, version)
        return agent.name, agent.version, version, run(agent, version)
    except (OSError, subprocess.TimeoutExpired) as error:
        return agent.name, agent.version, version, f"not tried: {error}"


def main(names: list[str]) -> None:
    rows = [("Agent", "Pinned", "Latest", "Result")]
    for agent in AGENTS:
        if not names or agent.name in names:
            sys.stderr.write(f"{agent.name}: trying the newest version\n")
            rows.append(tried(agent))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for *cells, result in rows:
        start = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        sys.stdout.write(f"{start}  {result}\n")


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:200] if lines else "it says nothing"


if __name__ == "__main__":
    main(sys.argv[1:])
