"""Agents in their own tongues beside their npm adapters: `python -m real.bench [ROUNDS]`, in interleaved rounds.

Time is that of `session/new` as a client sees it, and beside it, without a limit, with a first turn: Claude Code is
answered for before it has started. Memory is the PSS of everything on the agent's side of the gateway after that turn.
Both sides keep their homes from round to round, as people do, and both run the same program: an adapter that brings
another version of it is told to take ours.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from bench.noise import NOISY, ForeignLoad

from real.agents import AGENTS, RealAgent
from real.client import STARTING, RealGateway
from real.conftest import OTHERS, PROXIES
from real.install import installed
from real.model_server import ModelServer

PAIRS = (("claude", "claude-agent-acp"), ("codex", "codex-acp"))
SAME_PROGRAM = {"claude-agent-acp": ("CLAUDE_CODE_EXECUTABLE", "claude")}
"""The variable that tells an adapter its program, and whose it is; codex-acp comes with the version that we run."""
BY_NAME = {agent.name: agent for agent in AGENTS}
LEAST_TIME, LEAST_MEMORY = 0.8, 0.85
ROUNDS = 5

Sample = tuple[float, float, float]
"""Milliseconds to the session, to the end of its first turn, and megabytes."""


async def measure(agent: RealAgent, model: ModelServer, home: Path) -> Sample:
    workspace, own = home / "workspace", home / "agent"
    for folder in (workspace, own):
        folder.mkdir(parents=True, exist_ok=True)
    table = agent.table(installed(agent.name), own, model.url)
    if agent.name in SAME_PROGRAM:
        variable, name = SAME_PROGRAM[agent.name]
        table["env"][variable] = str(BY_NAME[name].program_in(installed(name)))
    config = {"default_agent": agent.name, "agents": {agent.name: table}}
    gateway = await RealGateway.start(home / "gateway", "acp", agent.name, config=config)
    assert isinstance(gateway, RealGateway)
    try:
        await gateway.greet({})
        # What is warmed up at `initialize` is no part of `session/new`, for either.
        await gateway.request("session/list", {}, STARTING)
        started = time.perf_counter()
        session = await gateway.open_session(workspace)
        took = (time.perf_counter() - started) * 1000
        turn = await gateway.prompt(session, "hello there")
        assert turn.stop_reason == "end_turn", turn.response
        whole = (time.perf_counter() - started) * 1000
        return took, whole, sum(map(pss, agents_side(gateway)))
    finally:
        await gateway.stop()


def agents_side(gateway: RealGateway) -> list[int]:
    """All processes but the gateway and its watcher."""
    ours = {gateway.process.pid}
    return [pid for pid, line in gateway.processes().items() if pid not in ours and "watcher" not in line]


def pss(pid: int) -> float:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


async def measure_all(rounds: int) -> dict[str, list[Sample]]:
    samples: dict[str, list[Sample]] = {name: [] for pair in PAIRS for name in pair}
    model = ModelServer()
    await model.start()
    with tempfile.TemporaryDirectory(prefix="real-", ignore_cleanup_errors=True) as homes:
        for number in range(rounds + 1):  # the first fills the disk cache and the homes, and does not count
            for name, taken in samples.items():
                sample = await measure(BY_NAME[name], model, Path(homes, name))
                if number:
                    taken.append(sample)
    await model.stop()
    return samples


def main() -> int:
    for name in list(os.environ):
        if name.upper().startswith(OTHERS) or name.lower() in PROXIES:
            del os.environ[name]
    load = ForeignLoad()
    samples = asyncio.run(measure_all(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS))
    failed = False
    for pair in PAIRS:
        for index, what, unit, limit in (
            (0, "session/new", "ms", LEAST_TIME),
            (1, "and a turn", "ms", None),
            (2, "PSS", "MB", LEAST_MEMORY),
        ):
            ours, theirs = (statistics.median(sample[index] for sample in samples[name]) for name in pair)
            good = limit is None or ours <= limit * theirs
            failed = failed or not good
            verdict = "" if limit is None else f"(must be <= {limit}) {'ok' if good else 'FAIL'}"
            print(f"{what:12} {pair[0]:7} {ours:7.0f} {unit}   {pair[1]:17} {theirs:7.0f} {unit}   "
                  f"{ours / theirs:.2f} {verdict}".rstrip())  # fmt: skip
    foreign = load.share() or 0.0
    if foreign > NOISY:
        print(
            f"NOISY: other programs had {foreign:.0%} of the processors; times say little, repeat it when it is quiet"
        )
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
