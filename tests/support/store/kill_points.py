"""Kills a process at every line of the store that it executes, one after the other, and looks at what is left.

    python kill_points.py OPERATION FOLDER EACH FIRST    prints how many points there were; a traceback is a find

EACH is 1 for every point, 2 for every other one, and so on; FIRST is the point to begin with.

For each point the prepared folder is copied, a forked child does the operation there and is killed (SIGKILL) before the
N-th line of `dragoman/store` or `dragoman/upkeep`, and another child checks what it left behind.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import dragoman.store
from dragoman.gateway.lifecycle import retention
from dragoman.gateway.ports.store import Lease
from dragoman.store import FileStore, limits
from dragoman.upkeep import archive, conversion
from dragoman.upkeep import restore as restoring
from support.store.old_store import OldStore
from support.store.store_process import append, begin, numbered, read_all

MARKS = tuple(str(Path(module.__file__ or "").parent) for module in (dragoman.store, conversion))
EVENTS = [b"%04d" % n * 20 for n in range(1, 60)]
ONE = "dgm_one"


async def opened(folder: Path) -> FileStore:
    return await FileStore.open(folder / "dragoman.db", folder / "run")


async def prepare_session(folder: Path) -> None:
    """One session with events in several segments, given back."""
    store = await opened(folder)
    await begin(store)
    for first in range(0, 40, 4):
        assert await append(store, ONE, first + 1, EVENTS[first : first + 4]) is None
    await store.release(ONE, 1)
    await store.close()


async def prepare_dead_owner(folder: Path) -> None:
    """The same, of a process that was killed."""
    await prepare_session(folder)
    child = os.fork()
    if child == 0:
        asyncio.run(take_and_die(folder))
    os.waitpid(child, 0)


async def take_and_die(folder: Path) -> None:
    store = await opened(folder)
    await store.acquire(ONE)
    os.kill(os.getpid(), signal.SIGKILL)


async def prepare_old(folder: Path) -> None:
    old = OldStore(folder / "dragoman.db")
    for n in range(3):
        old.session(f"{n}", [EVENTS[:3], EVENTS[3:10], EVENTS[10:59]])
    old.session("empty", [])


async def prepare_archive(folder: Path) -> None:
    state = folder / "state"
    await prepare_session(state)
    (state / "tokens.json").write_text("restored")
    archive.back_up(state, folder / "backup.tar", lambda line: None)
    (state / "tokens.json").write_text("present")
    (state / "run").mkdir(exist_ok=True)
    (state / "run" / "token").write_text("mine")


async def append_more(folder: Path, acknowledge: Callable[[int], None]) -> None:
    store = await opened(folder)
    lease = await store.acquire(ONE)
    assert isinstance(lease, Lease)
    for seq in range(lease.last_seq + 1, len(EVENTS), 3):
        assert await append(store, ONE, seq, EVENTS[seq - 1 : seq + 2], lease.epoch) is None
        acknowledge(seq + 2)
    await store.close()


async def prune(folder: Path, acknowledge: Callable[[int], None]) -> None:
    store = await opened(folder)
    await retention.prune(store, 0)
    await store.close()


async def delete(folder: Path, acknowledge: Callable[[int], None]) -> None:
    store = await opened(folder)
    await store.delete(ONE)
    acknowledge(1)
    await store.close()


async def create(folder: Path, acknowledge: Callable[[int], None]) -> None:
    store = await opened(folder)
    await begin(store, "new")
    acknowledge(1)
    await store.close()


async def convert(folder: Path, acknowledge: Callable[[int], None]) -> None:
    conversion.convert(folder / "dragoman.db", lambda line: None)
    acknowledge(1)


async def restore(folder: Path, acknowledge: Callable[[int], None]) -> None:
    restoring.restore(folder / "backup.tar", folder / "state", lambda line: None, replace=True)
    acknowledge(1)


async def check_all_there(folder: Path, acknowledged: int) -> None:
    """Nothing acknowledged is lost, nothing is doubled, and the session goes on."""
    store = await opened(folder)
    found = numbered(await read_all(store, ONE))
    last = max(found)
    assert list(found) == list(range(1, last + 1)) and last >= max(40, acknowledged)
    assert all(found[seq] == EVENTS[seq - 1] for seq in found)
    await check_goes_on(store, last)


async def check_goes_on(store: FileStore, last: int) -> None:
    lease = await store.acquire(ONE)
    assert isinstance(lease, Lease) and lease.last_seq == last, (lease, last)
    assert await append(store, ONE, last + 1, [b"on"], lease.epoch) is None
    assert numbered(await read_all(store, ONE))[last + 1] == b"on"
    await store.close()


async def check_pruned(folder: Path, acknowledged: int) -> None:
    """What is left is the end of the journal, and no number is given twice."""
    store = await opened(folder)
    found = numbered(await read_all(store, ONE))
    assert list(found) == list(range(41 - len(found), 41))
    assert all(found[seq] == EVENTS[seq - 1] for seq in found)
    record = await store.get(ONE)
    assert record is not None and (record.first_seq, record.last_seq) == (41 - len(found), 40)
    await check_goes_on(store, 40)


async def check_deleted(folder: Path, acknowledged: int) -> None:
    """All of it is there, or nothing is."""
    store = await opened(folder)
    record = await store.get(ONE)
    if record is None:
        assert not [file for file in (folder / "journal").iterdir() if file.name != ".conversion"]
        await store.close()
    else:
        assert not acknowledged
        await check_all_there(folder, 0)


async def check_created(folder: Path, acknowledged: int) -> None:
    store = await opened(folder)
    record = await store.get("dgm_new")
    assert record is not None or not acknowledged
    if record is not None:
        assert isinstance(await store.acquire("dgm_new"), Lease)
    await store.close()
    await check_all_there(folder, 0)


async def check_converted(folder: Path, acknowledged: int) -> None:
    result = conversion.convert(folder / "dragoman.db", lambda line: None)
    assert not result.failed and not conversion.is_needed(folder / "dragoman.db")
    store = await opened(folder)
    for n in range(3):
        assert list(numbered(await read_all(store, f"dgm_{n}")).values()) == EVENTS
    assert len((await store.list()).records) == 4
    await store.close()


async def check_restored(folder: Path, acknowledged: int) -> None:
    """What was there before, or what was restored, is in its place after the next start, whole."""
    state = folder / "state"
    restoring.finish(state)
    text = (state / "tokens.json").read_text()
    assert text == "restored" or not acknowledged
    assert (state / "run" / "token").read_text() == "mine"
    before = [each / "tokens.json" for each in state.iterdir() if each.name.startswith("before-")]
    assert [each.read_text() for each in before] == (["present"] if text == "restored" else [])
    await check_all_there(state, 0)


class Operation(NamedTuple):
    prepare: Callable[[Path], Coroutine[Any, Any, None]]
    do: Callable[[Path, Callable[[int], None]], Coroutine[Any, Any, None]]
    check: Callable[[Path, int], Coroutine[Any, Any, None]]


OPERATIONS = {
    "append": Operation(prepare_session, append_more, check_all_there),
    "takeover": Operation(prepare_dead_owner, append_more, check_all_there),
    "prune": Operation(prepare_session, prune, check_pruned),
    "delete": Operation(prepare_session, delete, check_deleted),
    "create": Operation(prepare_session, create, check_created),
    "convert": Operation(prepare_old, convert, check_converted),
    "restore": Operation(prepare_archive, restore, check_restored),
}


def kill_at(point: int) -> None:
    """End this process before it executes its `point`-th line of the store, in whatever thread."""
    lines = itertools.count(1)

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        if not frame.f_code.co_filename.startswith(MARKS):
            return None
        if event == "line" and next(lines) == point:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    threading.settrace(trace)
    sys.settrace(trace)


def in_child(work: Callable[[], None]) -> int:
    """The exit status of a forked child that does this."""
    child = os.fork()
    if child == 0:
        try:
            work()
            sys.settrace(None)
            os._exit(0)
        except BaseException:
            sys.settrace(None)
            import traceback

            traceback.print_exc()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main(name: str, root: Path, each: int, first: int) -> None:
    limits.SEGMENT_BYTES = 1000
    operation = OPERATIONS[name]
    prepared, trial = root / "prepared", root / "trial"
    prepared.mkdir()
    assert in_child(lambda: asyncio.run(operation.prepare(prepared))) == 0
    for point in itertools.count(first, each):
        shutil.copytree(prepared, trial)
        reading, writing = os.pipe()

        def work(point: int = point, writing: int = writing) -> None:
            def acknowledge(seq: int) -> None:
                os.write(writing, b"%d\n" % seq)

            kill_at(point)
            asyncio.run(operation.do(trial, acknowledge))

        status = in_child(work)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            acknowledged = max((int(line) for line in pipe), default=0)
        assert status in (0, -signal.SIGKILL), f"point {point}: exit status {status}"

        def check(acknowledged: int = acknowledged) -> None:
            asyncio.run(operation.check(trial, acknowledged))

        assert in_child(check) == 0, f"point {point} of {name}: see above"
        if status == 0:
            print((point - first) // each)
            return
        shutil.rmtree(trial)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
