"""`make kills ROUNDS=N`: `kill -9` of a gateway while its sessions stream, in rounds that add up for one revision.

    python -m fuzz.kills ROUNDS [GATEWAYS]        counts are in .cache/soak/REVISION.json

Each round is one of `KillLoop`: eight sessions stream, three clients watch, the gateway is killed at a random
moment, and a new one on the same files must have every event that a client saw, once and in order. Several gateways are
tried at once, each in folders of its own. The first difference ends it, with status 1.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import sys
import tempfile
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path

from fuzz.account import Account
from support.fork_server import share_fork_servers
from support.store.kill_loop import KillLoop

GOAL = 10_000
GATEWAYS = 4
ROUNDS_EACH = 5
"""On the same folders: a replay grows with every round, and all of it is compared each time."""


def some_rounds(seed: int) -> int:
    """Returns how many events clients saw."""
    with tempfile.TemporaryDirectory(prefix="dragoman-kills-") as folder:
        home, workspace = Path(folder, "home"), Path(folder, "workspace")
        home.mkdir(mode=0o700)
        workspace.mkdir()
        loop = KillLoop(home, workspace, seed)
        try:
            asyncio.run(loop.run(ROUNDS_EACH))
        except BaseException as error:
            raise AssertionError(f"seed {seed}, round {loop.round}: {error!r}") from error
        return loop.events


def main(rounds: int, gateways: int) -> None:
    account = Account.of_revision()
    seeds = iter(random.sample(range(1_000_000_000), -(-rounds // ROUNDS_EACH)))
    began = time.monotonic()
    share_fork_servers()
    with ProcessPoolExecutor(gateways, mp_context=multiprocessing.get_context("spawn")) as pool:
        running: set[Future[int]] = set()
        while True:
            while len(running) < gateways and (seed := next(seeds, None)) is not None:
                running.add(pool.submit(some_rounds, seed))
            if not running:
                break
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for each in done:
                try:
                    account.state.events_seen += each.result()
                except AssertionError as error:
                    pool.shutdown(cancel_futures=True)
                    sys.exit(str(error))
                account.state.kills += ROUNDS_EACH
                now = time.monotonic()
                account.state.kill_seconds, began = account.state.kill_seconds + now - began, now
                account.save()
            print(f"{account.state.kills:,} rounds, {account.state.events_seen:,} events seen", flush=True)
    state = account.state
    print(
        f"{account.file.stem}: {state.kills:,} of {GOAL:,} rounds; {state.events_seen:,} events that clients saw, "
        f"none lost, doubled or reordered, every session loaded; {state.kill_seconds / 60:.0f} minutes"
    )


if __name__ == "__main__":
    words = [int(word) for word in sys.argv[1:] if word.isdigit()]
    main(words[0] if words else 1000, words[1] if len(words) > 1 else GATEWAYS)
