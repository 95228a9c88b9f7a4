"""What a real bash runs and writes is among what the reader saw, or the line is opaque.

Lines are made at random and run in a box without network, where every program is a stand-in that records its words.
"""

from __future__ import annotations

import os
import random
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from dragoman.policy.act import Command
from dragoman.policy.shell.line import Line, read_line
from support import prerequisites
from support.policy.shell_lines import PROGRAMS, Maker
from support.sandboxes.sandbox_kinds import machine_folders

REAL = ("env", "timeout", "nice", "nohup", "setsid", "stdbuf", "xargs", "find", "sh", "bash", "ls")
STUB = """#!/bin/sh
{ printf '%s\\037' "${0##*/}" "$@" "$(printf '\\036')" >&9; } 2>/dev/null
exit 0
"""
DRIVER = """
for line in /tmp/in/*; do
    name=${line##*/}
    cd "/tmp/work/$name" || exit 1
    timeout -k 1 2 env PATH=/tmp/stubs /bin/bash -c "$(cat "$line")" name </dev/null >/dev/null 2>&1 9>>"/tmp/out/$name"
done
exit 0
"""


@dataclass
class Ran:
    """What one line did."""

    calls: list[list[str]]
    written: set[str]


def in_a_box(lines: list[str], folder: Path) -> list[Ran]:
    for name in ("in", "out", "work", "stubs"):
        (folder / name).mkdir()
    for program in PROGRAMS:
        (folder / "stubs" / program).write_text(STUB)
        (folder / "stubs" / program).chmod(0o755)
    for program in REAL:
        found = shutil.which(program)
        assert found is not None
        (folder / "stubs" / program).symlink_to(os.path.realpath(found) if program != "sh" else found)
    for index, line in enumerate(lines):
        (folder / "in" / f"{index:05}").write_text(line)
        work = folder / "work" / f"{index:05}"
        (work / "sub").mkdir(parents=True)
        for name in ("a.txt", "b.txt"):
            (work / name).write_text("text\n")
    binds = [
        word
        for name in ("in", "out", "work", "stubs")
        for word in ("--bind", str(folder / name), f"/tmp/{name}")
    ]
    box = [
        "bwrap",
        "--unshare-all",
        *machine_folders(),
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--tmpfs",
        "/tmp",
    ]
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/tmp/work/home", "LANG": "C.UTF-8"}
    command = [*box, *binds, "--die-with-parent", "--new-session", "/bin/bash", "-c", DRIVER]
    subprocess.run(command, env=environment, check=True, timeout=60 + len(lines), capture_output=True)
    return [_ran(folder, index) for index in range(len(lines))]


def _ran(folder: Path, index: int) -> Ran:
    recorded = (
        (folder / "out" / f"{index:05}").read_bytes() if (folder / "out" / f"{index:05}").exists() else b""
    )
    calls = [
        [os.fsdecode(word) for word in record.split(b"\x1f")[:-1]]
        for record in recorded.replace(b"\x1e\x1f", b"\x1e").split(b"\x1e")
        if record
    ]
    work = folder / "work" / f"{index:05}"
    written = {
        os.path.relpath(path, work)
        for path in work.rglob("*")
        if (path.is_file() and path.read_bytes() != b"text\n") or (path.is_dir() and path.name != "sub")
    }
    return Ran(calls, written)


def explains(command: Command, call: list[str]) -> bool:
    """Whether a command that was seen is the one that ran: unknown words may be any words."""
    words = list(command.words)
    words[0] = words[0].rpartition("/")[2]
    return _fits(words, set(command.unknown), 0, call, 0)


def _fits(words: list[str], unknown: set[int], at: int, call: list[str], where: int) -> bool:
    if at == len(words):
        return where == len(call)
    if at in unknown:
        return any(_fits(words, unknown, at + 1, call, later) for later in range(where, len(call) + 1))
    return where < len(call) and words[at] == call[where] and _fits(words, unknown, at + 1, call, where + 1)


def differences(line: str, seen: Line, ran: Ran, work: str) -> list[str]:
    found = [
        f"{line!r}: bash ran {call}, seen {[command.words for command in seen.commands]}"
        for call in ran.calls
        if not any(explains(command, call) for command in seen.commands)
    ]
    found += [
        f"{line!r}: what bash ran, {call}, is not harmless: {literal.opaque or literal.commands[0].effects}"
        for call in ran.calls
        for literal in [read_line(_quoted(call), cwd=work, workspace=work, home="/tmp/work/home")]
        if literal.opaque is not None or not _effects(literal) <= _effects(seen)
    ]
    facts = [*seen.paths, *(path for command in (*seen.commands, *seen.wrappers) for path in command.paths)]
    writes = {path.path for path in facts if path.access == "write"}
    unknown = any(path.access == "write" and not path.path.startswith("/") for path in facts)
    for name in ran.written:
        if os.path.join(work, name) not in writes and not unknown:
            found.append(f"{line!r}: bash wrote {name}, seen {sorted(writes)}")
    return found


def _quoted(call: list[str]) -> str:
    """The call as a line; every argument is quoted, since one such as `==` makes a line that is not understood."""
    return " ".join([shlex.quote(call[0]), *("'" + word.replace("'", "'\\''") + "'" for word in call[1:])])


def _effects(line: Line) -> set[str]:
    return {effect.option for command in line.commands for effect in command.effects}


def try_lines(seed: int, count: int, folder: Path) -> tuple[int, list[str]]:
    """How many lines were understood, and where bash did something that was not seen."""
    maker = Maker(seed)
    lines = [line for line in (maker.line() for _ in range(count)) if "\0" not in line]
    found: list[str] = []
    understood = 0
    for index, ran in enumerate(in_a_box(lines, folder)):
        work = f"/tmp/work/{index:05}"
        real = folder / "work" / f"{index:05}"
        seen = read_line(lines[index], cwd=str(real), workspace=str(real), home="/tmp/work/home")
        if seen.opaque is None:
            understood += 1
            found += differences(lines[index], seen, _moved(ran, work, str(real)), str(real))
    return understood, found


def _moved(ran: Ran, box: str, real: str) -> Ran:
    """The paths of the box as those outside of it."""
    return Ran([[word.replace(box, real) for word in call] for call in ran.calls], ran.written)


@pytest.fixture(autouse=True)
def box() -> None:
    if shutil.which("bwrap") is None:
        prerequisites.skip("bubblewrap", "it is not installed")


def test_what_bash_runs_was_seen(tmp_path: Path) -> None:
    understood, found = try_lines(18, 100, tmp_path)
    assert not found, "\n".join(found)
    assert understood > 20, "lines that are all opaque prove nothing"


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_what_bash_runs_was_seen_in_many_lines(tmp_path: Path) -> None:
    total = 0
    for batch in range(20):
        seed = random.SystemRandom().randrange(2**32)
        folder = tmp_path / str(batch)
        folder.mkdir()
        understood, found = try_lines(seed, 500, folder)
        assert not found, f"seed {seed}:\n" + "\n".join(found)
        total += understood
    assert total > 2000
