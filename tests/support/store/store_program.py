"""A process with the store open: does what its stdin says, one JSON line each, and answers on stdout."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from dragoman.gateway.ports.store import StoreError
from dragoman.store import FileStore
from support.store.store_process import append, read_all, record


def say(value: Any) -> None:
    os.write(1, msgspec.json.encode(value) + b"\n")


async def stream(store: FileStore, *sessions: str) -> None:
    """Append without end; `[session, seq]` is said when the events up to seq are safe."""
    loop = asyncio.get_running_loop()

    def done(session: str, last: int) -> Callable[[StoreError | None], None]:
        return lambda error: say([session, last] if error is None else {"error": str(error)})

    heads = {}
    for session in sessions:
        lease = await store.acquire(session)
        heads[session] = (lease.epoch, lease.last_seq)  # type: ignore[union-attr]
    while True:
        for session, (epoch, last) in list(heads.items()):
            events = [f"{session}:{last + 1 + i}:".encode() * 8 for i in range(random.choice((1, 1, 3, 40)))]
            heads[session] = (epoch, last + len(events))
            store.append(session, epoch, last + 1, events, done(session, last + len(events)))
        turn = loop.create_future()
        loop.call_soon(turn.set_result, None)
        await turn


async def fill(store: FileStore, session: str, megabytes: int) -> list[Any]:
    """Append until refused; the number of events stored and the reason for the first that was not."""
    for n in range(megabytes * 4):
        error = await append(store, session, n + 1, [b"x" * (256 * 1024)])
        if error is not None:
            return [n, type(error).__name__, str(error)]
    return [megabytes * 4, None, None]


async def spawn(store: FileStore, seconds: int) -> int:
    """Start a child that outlives us, as a stubborn agent would."""
    return subprocess.Popen(["sleep", str(seconds)], stdout=subprocess.DEVNULL).pid


async def unlink(store: FileStore, path: str) -> None:
    """Remove a file that only this process's mounts show."""
    Path(path).unlink()


async def perform(store: FileStore, do: str, arguments: list[Any]) -> Any:
    if do == "create":
        return await store.create(record(arguments[0], owner=store.owner.id, epoch=1))
    if do == "append":
        session, epoch, first_seq, events = arguments
        error = await append(store, session, first_seq, [event.encode() for event in events], epoch)
        if error is not None:
            raise error
        return None
    if do == "read":
        return [event.decode() for row in await read_all(store, *arguments) for event in row.events()]
    if do in ("stream", "fill", "spawn", "unlink"):
        return await globals()[do](store, *arguments)
    return await getattr(store, do)(*arguments)


async def main() -> None:
    path, runtime, options = sys.argv[1:]
    try:
        store = await FileStore.open(Path(path), Path(runtime), **json.loads(options))
    except StoreError as error:
        say({"error": type(error).__name__, "text": str(error)})
        return
    say({"owner": store.owner.id, "address": store.owner.address})
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        do, *arguments = json.loads(line)
        try:
            say(await perform(store, do, arguments))
        except StoreError as error:
            say({"error": type(error).__name__, "text": str(error)})
    await store.close()


if __name__ == "__main__":
    asyncio.run(main())
