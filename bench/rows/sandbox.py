"""Sandboxes: what the path map costs, and what a box adds to an agent's start."""

from __future__ import annotations

import io
import json
import statistics
import subprocess
import sys
import tarfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import installs
from bench.contenders import AGENT, DRAGOMAN, PEERS, PLAIN, PYTHON_SDK, Arena, dragoman_command
from bench.delivery import check_flood
from bench.installs import NotAvailable
from bench.peers.client import Conversation
from bench.row import Measure, Must, Probe, Row
from bench.rows.flood import SMALL, calibrated_count, timed_flood

BARE_BUBBLE = "bwrap true"
BARE_EXEC = "podman exec true"
INSIDE = "/home/agent/workspace"
PYTHON = str(Path(sys.base_prefix, "bin", "python3"))
BARE_AGENT = [PYTHON, *AGENT[1:]]
STARTS = 5
IDLE_FLOOD, IDLE_PAIRS = 20_000, 10
BUBBLE = ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
PODMAN = ["podman", "--runtime", "/usr/sbin/runc"]
LIMITS = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"]

CONFIG = """\
default_agent = "local"
[agents.local]
command = {bare}
[agents.plain]
command = {agent}
[agents.mapped]
command = {agent}
sandbox = "mapped"
[agents.paths]
command = {paths}
sandbox = "mapped"
[agents.bubble]
command = {bare}
sandbox = "bubble"
[agents.container]
command = {bare}
sandbox = "container"
[sandboxes.mapped]
kind = "command"
command = ["{{agent...}}"]
workspace = {inside}
[sandboxes.bubble]
kind = "bubblewrap"
workspace = {inside}
[sandboxes.container]
kind = "podman"
image = {image}
engine = {engine}
options = {options}
network = false
workspace = {inside}
read_only = {shown}
[sessions]
journal = {journal}
"""


def config_home(arena: Arena, image: str = "none", *, journal: bool = True) -> Path:
    """A `DRAGOMAN_HOME` with an agent in every box."""
    home = arena.home(name=f"sandbox-{image.rpartition('/')[2]}-{journal}")
    values = {
        "journal": journal,
        "bare": BARE_AGENT,
        "agent": AGENT,
        "paths": [*AGENT, "paths"],
        "inside": INSIDE,
        "image": image,
        "engine": PODMAN,
        "options": LIMITS,
        "shown": ["/usr", sys.base_prefix, str(PEERS)],
    }
    (home / "config.toml").write_text(CONFIG.format(**{key: json.dumps(v) for key, v in values.items()}))
    return home


@contextmanager
def connected(
    arena: Arena, agent: str, image: str = "none", *, journal: bool = True
) -> Iterator[Conversation]:
    with arena.start(dragoman_command(agent), home=config_home(arena, image, journal=journal)) as talk:
        talk.initialize()
        yield talk


def mapped_flood(name: str) -> Probe:
    @contextmanager
    def probe(arena: Arena) -> Iterator[Measure]:
        with connected(arena, "paths", journal=name != PLAIN) as talk:
            sessions = [talk.new_session(arena.workspace)]
            count = calibrated_count(arena, name, talk, sessions, SMALL)
            yield lambda: timed_flood(arena, name, talk, sessions, count, SMALL)

    return probe


@contextmanager
def idle_map_probe(arena: Arena) -> Iterator[Measure]:
    """Two sessions of one process in turn: two processes of the same program differ by more than the map costs.

    What is compared is the processor time of the gateway, which the agents and the client do not touch. Without a
    journal, whose cost would hide that of the map.
    """
    home = config_home(arena, journal=False)
    with arena.start(dragoman_command("plain")[:-1], home=home) as talk:
        talk.initialize()
        mapped, plain = (talk.new_session(arena.workspace, agent) for agent in ("mapped", "plain"))

        def cost(session: str) -> float:
            talk.prepare(session, IDLE_FLOOD, SMALL)
            before = processor_seconds(talk.pid)
            received = talk.flood([session], IDLE_FLOOD, SMALL)
            spent = processor_seconds(talk.pid) - before
            arena.faults[DRAGOMAN] += check_flood(received.chunks, [session], IDLE_FLOOD)
            return spent

        def measure() -> float:
            """How fast the mapped one is, as a share of the other; in the order ABBA, so that drift cancels out."""
            shares = []
            for _ in range(IDLE_PAIRS):
                first, second, third, fourth = cost(mapped), cost(plain), cost(plain), cost(mapped)
                shares.append((second + third) / (first + fourth))
            return statistics.median(shares)

        cost(mapped), cost(plain)
        yield measure


def processor_seconds(pid: int) -> float:
    """What a process has had of the processors, in nanosecond steps where the kernel tells."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    except OSError as error:
        raise NotAvailable("the processor time of a process is read from /proc") from error


@contextmanager
def sdk_paths_flood(arena: Arena) -> Iterator[Measure]:
    relay = [*installs.python_sdk(), str(installs.RELAYS / "python_sdk.py"), *AGENT, "paths"]
    with arena.start(relay) as talk:
        talk.initialize()
        sessions = [talk.new_session(arena.workspace)]
        count = calibrated_count(arena, PYTHON_SDK, talk, sessions, SMALL)
        yield lambda: timed_flood(arena, PYTHON_SDK, talk, sessions, count, SMALL)


def session_seconds(arena: Arena, talk: Conversation) -> float:
    started = time.perf_counter()
    talk.new_session(arena.workspace)
    return time.perf_counter() - started


def added_by(arena: Arena, boxed: Conversation, local: Conversation) -> float:
    """Milliseconds that a box adds to a session's start; in turn, so that both see the same machine."""
    pairs = [(session_seconds(arena, boxed), session_seconds(arena, local)) for _ in range(STARTS)]
    return 1000 * statistics.median(inside - beside for inside, beside in pairs)


def command_milliseconds(words: list[str]) -> float:
    times = []
    for _ in range(STARTS):
        started = time.perf_counter()
        subprocess.run(words, check=True, capture_output=True, stdin=subprocess.DEVNULL)
        times.append(time.perf_counter() - started)
    return 1000 * statistics.median(times)


@contextmanager
def bubble_probe(arena: Arena) -> Iterator[Measure]:
    require([*BUBBLE, "true"])
    with connected(arena, "bubble") as boxed, connected(arena, "local") as local:
        local.new_session(arena.workspace)  # takes the agent that was started ahead
        yield lambda: added_by(arena, boxed, local)


@contextmanager
def bare_bubble_probe(arena: Arena) -> Iterator[Measure]:
    require([*BUBBLE, "true"])
    yield lambda: command_milliseconds([*BUBBLE, "true"])


@contextmanager
def container_probe(arena: Arena) -> Iterator[Measure]:
    with image() as name, connected(arena, "container", name) as boxed, connected(arena, "local") as local:
        for talk in (boxed, local):
            talk.new_session(arena.workspace)  # the first one makes the container
        yield lambda: added_by(arena, boxed, local)


@contextmanager
def bare_exec_probe(arena: Arena) -> Iterator[Measure]:
    with image() as name:
        words = ["run", "--detach", "--rm", "--network=none", *LIMITS, "--volume", "/usr:/usr:ro", name]
        made = subprocess.run(
            [*PODMAN, *words, "sleep", "1000"], check=True, capture_output=True, text=True
        ).stdout.strip()
        try:
            yield lambda: command_milliseconds([*PODMAN, "exec", made, "true"])
        finally:
            subprocess.run([*PODMAN, "rm", "--force", "--time", "0", made], check=False, capture_output=True)


@contextmanager
def image() -> Iterator[str]:
    """An image of folders alone, into which this machine's programs are mounted."""
    require([*PODMAN, "info"])
    name = f"localhost/dragoman-bench-{uuid.uuid4().hex[:8]}"
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for folder in ("usr", "proc", "sys", "dev", "etc", "tmp", "root"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(entry)
        for link in ("bin", "sbin", "lib", "lib64"):
            entry = tarfile.TarInfo(link)
            entry.type, entry.linkname = tarfile.SYMTYPE, f"usr/{link}"
            tar.addfile(entry)
    made = subprocess.run(
        [*PODMAN, "import", "-", name], input=archive.getvalue(), capture_output=True, check=False
    )
    if made.returncode:
        raise NotAvailable(f"podman cannot import an image: {made.stderr.decode(errors='replace')[-200:]}")
    try:
        require([*PODMAN, "run", "--rm", "--network=none", *LIMITS, "-v", "/usr:/usr:ro", name, "true"])
        yield name
    finally:
        subprocess.run([*PODMAN, "rmi", "--force", name], check=False, capture_output=True)


def require(words: list[str]) -> None:
    try:
        done = subprocess.run(words, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise NotAvailable(f"{words[0]}: {error.strerror}") from error
    if done.returncode:
        raise NotAvailable(f"{words[0]}: {done.stderr.decode(errors='replace')[-200:]}")


ROWS = (
    Row(
        "map-idle",
        "120-byte updates with a path map and no path in them, against no map",
        "×",
        {PLAIN: idle_map_probe},
        (Must(">=", 0.97, None, PLAIN),),
    ),
    Row(
        "map-busy",
        "tool calls full of mapped paths",
        "msg/s",
        {DRAGOMAN: mapped_flood(DRAGOMAN), PLAIN: mapped_flood(PLAIN), PYTHON_SDK: sdk_paths_flood},
        (Must(">=", 4, PYTHON_SDK), Must(">=", 5, PYTHON_SDK, PLAIN)),
    ),
    Row(
        "bubble-start",
        "what bubblewrap adds to a session's start",
        "ms",
        {DRAGOMAN: bubble_probe, BARE_BUBBLE: bare_bubble_probe},
        (Must("<=", 3, BARE_BUBBLE),),
    ),
    Row(
        "container-start",
        "what a running container adds to a session's start",
        "ms",
        {DRAGOMAN: container_probe, BARE_EXEC: bare_exec_probe},
        (Must("<=", 2, BARE_EXEC),),
        served=True,
    ),
)
