"""`dragoman` with a stopwatch: which part of the code has how much of the time; run as a script by `bench.hops`.

Every function in `HOPS` is wrapped. A stopwatch runs for the innermost one that is being called, so that parts do not
count each other. On SIGUSR1 what was measured since the last one is written to the file that `BENCH_HOPS` names.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections import defaultdict
from collections.abc import Callable
from importlib import import_module
from typing import Any

HOPS: dict[str, tuple[str, ...]] = {
    "read": (
        "dragoman.transports.stream:StreamLink.data_received",
        "dragoman.agents.process:AgentProcess._on_stdout",
    ),
    "decode": ("dragoman.wire.message:decode", "dragoman.gateway.agent:read_head"),
    "correlate": ("dragoman.rpc.peer:Peer.link_messages",),
    "prompt": ("dragoman.gateway.client:ClientConnection.peer_request",),
    "update": ("dragoman.gateway.session.updates:AgentUpdates.receive",),
    "end of turn": ("dragoman.gateway.session.turn:Turn._answered",),
    "collect": ("dragoman.gateway.delivery.journal_feed:JournalFeed._flush",),
    "journal": ("dragoman.store.engine:FileStore.append",),
    "directory": ("dragoman.store.engine:FileStore.touch",),
    "show": ("dragoman.gateway.delivery.attachment:Attachment.push",),
    "encode": (
        "dragoman.wire.message:request",
        "dragoman.wire.message:response",
        "dragoman.gateway.rewriting.updates:UpdateRewriter.splice",
    ),
    "log": ("dragoman.gateway.session.turn:note",),
    "write": ("dragoman.rpc.outbox:Outbox.flush",),
}

spent: defaultdict[str, int] = defaultdict(int)
calls: defaultdict[str, int] = defaultdict(int)
running: list[str] = ["event loop"]
since = time.perf_counter_ns()
processor = time.process_time_ns()


def wrap(function: Callable[..., Any], hop: str) -> Callable[..., Any]:
    clock, stack, sums, counts = time.perf_counter_ns, running, spent, calls

    def timed(*args: Any, **options: Any) -> Any:
        global since
        now = clock()
        sums[stack[-1]] += now - since
        stack.append(hop)
        counts[hop] += 1
        since = now
        try:
            return function(*args, **options)
        finally:
            now = clock()
            sums[stack.pop()] += now - since
            since = now

    return timed


def install() -> None:
    for hop, places in HOPS.items():
        for place in places:
            module, _, path = place.partition(":")
            *owners, name = path.split(".")
            target: Any = import_module(module)
            for owner in owners:
                target = getattr(target, owner)
            setattr(target, name, wrap(getattr(target, name), hop))


def report(*_: object) -> None:
    global processor
    used, processor = time.process_time_ns() - processor, time.process_time_ns()
    text = json.dumps({"processor": used, "spent": dict(spent), "calls": dict(calls)})
    spent.clear()
    calls.clear()
    draft = os.environ["BENCH_HOPS"] + ".new"
    with open(draft, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(draft, os.environ["BENCH_HOPS"])


if __name__ == "__main__":
    from dragoman.cli.entry import main

    install()
    signal.signal(signal.SIGUSR1, report)
    main()
