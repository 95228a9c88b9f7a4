"""What was run on one revision, over any number of runs: `.cache/soak/REVISION.json`."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import msgspec

from fuzz.run import HERE, Result

ROOT = HERE.parents[1]


class State(msgspec.Struct):
    faults_passed: bool = False
    parsers: dict[str, int] = {}
    endpoints: dict[str, int] = {}
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

    @classmethod
    def of_revision(cls) -> Account:
        said = ["git", "describe", "--always", "--abbrev=12", "--dirty", "--exclude=*"]
        revision = subprocess.run(said, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
        file = ROOT / ".cache" / "soak" / f"{revision}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        state = msgspec.json.decode(file.read_bytes(), type=State) if file.exists() else State()
        return cls(file, state)

    def save(self) -> None:
        self.file.write_bytes(msgspec.json.format(msgspec.json.encode(self.state), indent=1))

    def add(self, counts: dict[str, int], name: str, result: Result, seconds: float) -> None:
        counts[name] = counts.get(name, 0) + result.inputs
        self.state.most_grown = max(self.state.most_grown, result.grown)
        self.state.seconds += seconds
        self.save()
        print(
            f"{name:20} {counts[name]:>10,} inputs, {result.inputs / max(seconds, 0.001):>8,.0f} a second",
            flush=True,
        )
