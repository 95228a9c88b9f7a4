"""What was run on one revision, over any number of runs: `.cache/soak/REVISION.json`."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from fuzz.worker import Result

ROOT = Path(__file__).parents[2]
UNDER_TEST = ("src", "requirements", "pyproject.toml")
"""What the figures are about: a commit to anything else, such as the documentation, leaves them valid."""


def revision(root: Path = ROOT) -> str:
    """The last commit that changed the code under test, marked if that has changes which are not committed."""

    def git(*words: str) -> str:
        command = ["git", *words, "--", *UNDER_TEST]
        return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.strip()

    commit = git("log", "-1", "--abbrev=12", "--format=%h")
    return f"{commit}-dirty" if git("status", "--porcelain") else commit


class State(msgspec.Struct):
    faults_passed: bool = False
    parsers: dict[str, int] = {}
    endpoints: dict[str, int] = {}
    finds: list[str] = []
    most_grown: int = 0
    seconds: float = 0.0
    kills: int = 0
    """Rounds of `kill -9` (`fuzz.kills`)."""
    events_seen: int = 0
    """Events that clients had seen in those rounds, each compared with what was stored."""
    kill_seconds: float = 0.0


@dataclass
class Account:
    file: Path
    state: State
    _since: float = field(default_factory=time.monotonic)
    """When `seconds` were added up for the last time."""

    @classmethod
    def of_revision(cls) -> Account:
        file = ROOT / ".cache" / "soak" / f"{revision()}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        state = msgspec.json.decode(file.read_bytes(), type=State) if file.exists() else State()
        return cls(file, state)

    def save(self) -> None:
        """Whole or not at all: a run may be killed at any moment."""
        fresh = self.file.with_suffix(".new")
        fresh.write_bytes(msgspec.json.format(msgspec.json.encode(self.state), indent=1))
        fresh.replace(self.file)

    def add(self, counts: dict[str, int], name: str, result: Result) -> None:
        counts[name] = counts.get(name, 0) + result.inputs
        self.state.most_grown = max(self.state.most_grown, result.grown)
        now = time.monotonic()
        self.state.seconds, self._since = self.state.seconds + now - self._since, now
        if result.find:
            self.state.finds.append(f"{name}: {result.find}")
        self.save()
