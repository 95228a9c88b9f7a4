"""The fault matrix of docs/reference/reliability.md: `make reliability` runs its tests and writes what came of it.

Each row names the tests that hold a promise against its faults. The page has their last result with date and revision;
the figures of the fuzzing are those that `make soak` has counted for a revision (`fuzz.soak`).
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "reliability.md"
NOT_RUN = "not yet run"


@dataclass(frozen=True)
class Row:
    promise: str
    faults: str
    tests: tuple[str, ...]
    """Files, or tests in them, below `tests/`."""
    full: str = ""
    """The command of a longer form, which is not part of `make reliability`."""

    @property
    def command(self) -> str:
        return f'`make again TIMES=1 TESTS="{" ".join(f"tests/{test}" for test in self.tests)}"`'


ROWS = (
    Row(
        "Sessions last: no event that a client saw is lost or shown twice",
        "`kill -9` of the gateway, of the owner in mid-turn, at points of append, rotation, prune, takeover and "
        "conversion; a runtime folder or lock file that vanishes",
        (
            "sessions/test_faults.py",
            "store/test_crash.py",
            "store/test_kill_points.py",
            "store/test_leases.py",
            "sessions/test_takeover.py",
            "sessions/test_owner_death.py",
        ),
        "make kills",
    ),
    Row(
        "What is damaged in a journal is found, said, and never served as truth",
        "a tail cut at every byte, a changed byte anywhere, missing and truncated segments, a newer format, a lost "
        "directory",
        ("store/test_damage.py", "bridge/test_damage.py", "upkeep/test_check.py", "fuzz/test_fuzz.py"),
        "make soak",
    ),
    Row(
        "A store of the version before is converted, and a back-up comes back",
        "a conversion and a restore that are interrupted, old processes that still run, damaged and foreign archives, a "
        "full disk",
        (
            "upkeep/test_conversion.py",
            "upkeep/test_archive.py",
            "upkeep/test_restore.py",
            "cli/test_store_commands.py",
        ),
        "make test-long",
    ),
    Row(
        "A disk that fails costs no turn, and what was not kept is said",
        "a full and a read-only disk, `EIO`, a quota, a slow disk, writes that fail for a moment and for long, a "
        "damaged or foreign database",
        (
            "sessions/test_keeping.py",
            "sessions/test_bad_input.py",
            "sessions/test_answers.py",
            "store/test_database.py",
            "store/test_journal.py",
        ),
    ),
    Row(
        "Several views see the same events in the same order, each once",
        "clients that attach at any moment of a turn or a flood, from other processes, that stop reading, that leave",
        (
            "sessions/test_seam.py",
            "sessions/test_several_clients.py",
            "sessions/test_neighbours.py",
            "bridge/test_seam.py",
        ),
        "make soak",
    ),
    Row(
        "Every prompt is answered exactly once",
        "agents that crash, are killed, fall silent, ignore a cancel, answer late or print rubbish",
        ("acp/test_agent_failures.py", "acp/test_cancellation.py", "sessions/test_revival.py"),
    ),
    Row(
        "Nothing is left running",
        "`kill -9` of the gateway, of the watcher and of both; daemons without an environment; reused process ids",
        ("agents/test_custody.py", "agents/test_daemons.py"),
    ),
    Row(
        "Messages pass as they were sent",
        "unknown members, explicit nulls, numbers beyond 64 bits, repeated members, ids in text",
        (
            "acp/test_passthrough.py",
            "wire/test_framing.py",
            "wire/test_message.py",
            "gateway/test_updates.py",
        ),
    ),
    Row(
        "A hostile or careless agent harms no client",
        "members of other types, questions of one name, made-up numbers, our own names used, control characters",
        ("server/test_hostile_agents.py", "sessions/test_reserved.py", "cli/test_hostile_output.py"),
    ),
    Row(
        "A hostile or careless client harms no other",
        "noise on every port, requests that can be read in two ways, silent and stalled peers, floods of frames",
        (
            "server/test_fuzz.py",
            "server/test_smuggling.py",
            "server/test_hostile.py",
            "server/test_floods.py",
        ),
        "make soak",
    ),
    Row(
        "No input breaks a parser or an endpoint",
        "inputs changed at random, and guided by coverage in the full form",
        ("fuzz/test_fuzz.py",),
        "make soak",
    ),
    Row(
        "Who may come in is checked before anything else, and a proxy is believed only if it is trusted",
        "rebound names, foreign origins, forged and broken forwarding headers, revoked tokens, stolen cookies",
        (
            "server/test_admission.py",
            "server/test_trusted_proxies.py",
            "server/test_page_secret.py",
            "server/test_tokens.py",
        ),
    ),
    Row(
        "A token has its share and no more",
        "requests, sessions and turns that come together, in batches, through several fronts, from many addresses",
        ("server/test_quotas.py", "server/test_shares.py", "server/test_limits.py"),
        "make test-long",
    ),
    Row(
        "A restart loses nothing",
        "`SIGTERM` with turns, streams and sockets open; clients that come back by each way",
        ("server/test_restart.py", "server/test_shutdown.py", "deploy/test_restart.py"),
    ),
    Row(
        "A lost connection to a remote agent is made up for",
        "floods cut in the middle, half-open connections, prompts that never arrived, the death of the other side",
        ("agents/remote/test_reconnect.py", "agents/remote/test_half_open.py"),
    ),
    Row(
        "An agent in a box stays in it",
        "symlinks, races of files, mounts, other processes, the network, capabilities, system calls",
        (
            "sandbox/test_escapes.py",
            "sandbox/test_file_races.py",
            "sandbox/test_rights.py",
            "sandbox/test_seccomp.py",
        ),
    ),
    Row(
        "The image, Compose and the proxies of `deploy/` work as they are written",
        "a read-only root, an unprivileged user, a missing projects folder, two clients behind one proxy",
        ("deploy/test_proxies.py", "deploy/test_units.py", "deploy/test_wheel.py"),
        "make test-long",
    ),
)

HEAD = (
    "| Promise | Faults it was tried against | Command that repeats it | Last result |\n|---|---|---|---|\n"
)
BEGIN, END = "<!-- matrix: make reliability -->\n", "<!-- end of the matrix -->\n"


def existing(test: str) -> bool:
    return (ROOT / "tests" / test).is_file()


def line(row: Row, result: str) -> str:
    full = f"; in full `{row.full}`" if row.full else ""
    return f"| {row.promise} | {row.faults} | {row.command}{full} | {result} |\n"


def results_in(page: str) -> dict[str, str]:
    """By promise, what the page says now."""
    cells = (row.strip("|\n ").split(" | ") for row in page.splitlines() if row.startswith("| "))
    return {row[0].strip(): row[-1].strip() for row in cells if len(row) == 4}


def matrix(results: dict[str, str]) -> str:
    return HEAD + "".join(line(row, results.get(row.promise, NOT_RUN)) for row in ROWS)


def refresh(page: str, results: dict[str, str]) -> str:
    before, rest = page.split(BEGIN)
    return before + BEGIN + matrix(results) + END + rest.split(END)[1]


def run(row: Row) -> str:
    """The row's tests, as a cell."""
    with tempfile.NamedTemporaryFile(suffix=".xml") as report:
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", f"--junitxml={report.name}"]
        files = [f"tests/{test}" for test in row.tests]
        done = subprocess.run([*command, *files], cwd=ROOT, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            sys.stderr.write(done.stdout[-20_000:] + done.stderr[-2_000:])
        (suite,) = ElementTree.parse(report.name).getroot().iter("testsuite")
    counts = Counter({name: int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")})
    failed = counts["failures"] + counts["errors"]
    passed = counts["tests"] - failed - counts["skipped"]
    said = [f"{passed} passed"]
    said += [f"**{failed} failed**"] if failed else []
    said += [f"{counts['skipped']} skipped"] if counts["skipped"] else []
    return f"{', '.join(said)}; {datetime.now(UTC):%Y-%m-%d}, {revision()}"


def revision() -> str:
    said = ["git", "describe", "--always", "--abbrev=12", "--exclude=*"]
    return subprocess.run(said, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def main(chosen: str) -> None:
    """Rows whose promise holds `chosen`, all without it; each is written as soon as it is known."""
    for row in ROWS:
        if re.search(chosen, row.promise, re.IGNORECASE):
            page = PAGE.read_text()
            results = {**results_in(page), row.promise: run(row)}
            PAGE.write_text(refresh(page, results))
            print(f"{row.promise}: {results[row.promise]}", flush=True)


if __name__ == "__main__":
    main("".join(sys.argv[1:2]))
