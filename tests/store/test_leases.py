"""One owner per session among several processes."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import signal
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dragoman import machine
from dragoman.gateway.ports.store import (
    Fenced,
    HeldElsewhere,
    Lease,
    Owner,
    SessionAway,
    SessionHeld,
    SessionRecord,
    StoreUnavailable,
    UnknownSession,
)
from dragoman.store import FileStore, limits, locks
from dragoman.store.locks import SessionLock
from support.store.store_process import StoreProcess, append, begin, numbered, read_all, record
from support.waiting import until


def owner_of(about: dict[str, str]) -> Owner:
    """What a peer said of itself."""
    return Owner(machine.node(), about["owner"], about["address"])


def lock_of(path: Path, session: str) -> Path:
    return path.parent / "journal" / session / "lock"


async def test_a_session_of_a_living_process_is_reached_through_its_socket(
    store: FileStore, peer: Any
) -> None:
    other = await peer()
    about = await other.hear()
    await other.ask("create", "theirs")
    assert await store.acquire("dgm_theirs") == HeldElsewhere(owner_of(about))
    theirs = await store.get("dgm_theirs")
    mine = await store.get(await begin(store, "mine"))
    assert theirs is not None and mine is not None
    holders = await store.holders([theirs, mine])
    assert holders == {"dgm_theirs": owner_of(about), "dgm_mine": store.owner}


async def test_a_session_whose_owner_died_is_taken_over(store: FileStore, peer: Any) -> None:
    other = await peer()
    await other.hear()
    await other.ask("create", "theirs")
    await other.ask("append", "dgm_theirs", 1, 1, ["a", "b"])
    await other.kill()
    lease = await store.acquire("dgm_theirs")
    assert lease == Lease("dgm_theirs", 2, 2)
    assert await append(store, "dgm_theirs", 3, [b"c"], epoch=2) is None
    assert numbered(await read_all(store, "dgm_theirs")) == {1: b"a", 2: b"b", 3: b"c"}
    found = await store.get("dgm_theirs")
    assert found is not None and await store.holders([found]) == {"dgm_theirs": store.owner}


async def test_a_former_owner_that_comes_back_is_fenced(store: FileStore, peer: Any, path: Path) -> None:
    other = await peer()
    await other.hear()
    await other.ask("create", "theirs")
    await other.ask("append", "dgm_theirs", 1, 1, ["first"])
    lock = lock_of(path, "dgm_theirs")
    lock.unlink()
    lock.touch()  # nobody holds it: as if the process had died
    lease = await store.acquire("dgm_theirs")
    assert isinstance(lease, Lease)
    refusal = await until_refused(other, "dgm_theirs", 2)
    assert refusal["error"] == "Fenced"
    assert await append(store, "dgm_theirs", 2, [b"mine"], epoch=lease.epoch) is None
    assert numbered(await read_all(store, "dgm_theirs")) == {1: b"first", 2: b"mine"}
    await other.ask("release", "dgm_theirs", 1)
    assert numbered(await read_all(store, "dgm_theirs")) == {1: b"first", 2: b"mine"}


async def until_refused(peer: StoreProcess, session: str, seq: int) -> Any:
    """Append until that is refused; a lock is looked at ten times a second."""
    async with asyncio.timeout(30):
        while (answer := await peer.ask("append", session, 1, seq, ["late"])) is None:
            seq += 1
    return answer


async def test_an_owner_whose_runtime_folder_or_lock_file_is_gone_is_still_the_owner(
    store: FileStore, peer: Any, path: Path, runtime: Path
) -> None:
    other = await peer()
    about = await other.hear()
    await other.ask("create", "theirs")
    shutil.rmtree(runtime)
    assert await store.acquire("dgm_theirs") == HeldElsewhere(owner_of(about))
    lock_of(path, "dgm_theirs").unlink()
    await asyncio.sleep(2 * limits.LEASE_SECONDS)
    assert await other.ask("append", "dgm_theirs", 1, 1, ["still mine"]) is None  # and makes its lock again
    assert await store.acquire("dgm_theirs") == HeldElsewhere(owner_of(about))
    await other.kill()
    assert isinstance(await store.acquire("dgm_theirs"), Lease)
    assert numbered(await read_all(store, "dgm_theirs")) == {1: b"still mine"}


async def test_a_session_that_was_taken_is_noticed_when_leases_are_renewed(
    store: FileStore, path: Path
) -> None:
    session = await begin(store)
    lost: list[str] = []
    store.on_lost = lambda session_id, error: lost.append(session_id)
    await store.renew()
    assert not lost
    lock = path.parent / "journal" / session / "lock"
    other = lock.with_name("other")
    other.write_bytes(lock.read_bytes())
    other.replace(lock)
    await store.renew()
    assert lost == [session]
    assert isinstance(await append(store, session, 1, [b"U{}"]), Fenced)


async def test_a_lock_that_cannot_be_looked_at_fails_the_append_and_not_the_next(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await begin(store)
    monkeypatch.setattr(limits, "LEASE_SECONDS", -1.0)
    with monkeypatch.context() as broken:
        broken.setattr(SessionLock, "read", lambda lock: os.pread(-1, 1, 0))
        assert isinstance(await append(store, session, 1, [b"U{}"]), StoreUnavailable)
    assert await append(store, session, 1, [b"U{}"]) is None


async def test_giving_back_a_lost_session_leaves_the_line_of_its_new_owner(
    store: FileStore, path: Path
) -> None:
    session = await begin(store)
    lock = path.parent / "journal" / session / "lock"
    line = json.dumps({**json.loads(lock.read_text()), "epoch": 2})
    lock.write_text(line + "\n")
    await store.release(session, 1)
    assert json.loads(lock.read_text())["epoch"] == 2


async def test_a_lock_that_cannot_be_written_is_let_go(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as full:
        full.setattr(SessionLock, "write", lambda lock, owner, epoch: os.pread(-1, 1, 0))
        with pytest.raises(StoreUnavailable):
            await begin(store)
    await begin(store)


async def test_a_deletion_that_is_given_up_leaves_no_lock(
    store: FileStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await begin(store)
    await store.release(session, 1)
    began, goes_on, real = asyncio.Event(), threading.Event(), locks.take
    loop = asyncio.get_running_loop()

    def slow(folder: Path, **options: bool) -> Any:
        loop.call_soon_threadsafe(began.set)
        goes_on.wait(20)
        return real(folder, **options)

    monkeypatch.setattr(locks, "take", slow)
    deleting = asyncio.create_task(store.delete(session))
    await asyncio.wait_for(began.wait(), 20)
    deleting.cancel()
    await asyncio.gather(deleting, return_exceptions=True)
    goes_on.set()
    monkeypatch.setattr(locks, "take", real)
    async with asyncio.timeout(20):
        while not isinstance(await store.acquire(session), Lease):
            await asyncio.sleep(0)


async def test_a_session_that_was_deleted_meanwhile_is_not_acquired(
    store: FileStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await begin(store)
    await store.release(session, 1)
    known = await store.get(session)
    assert known is not None
    looked: asyncio.Future[SessionRecord] = asyncio.get_running_loop().create_future()
    looked.set_result(known)
    monkeypatch.setattr(store, "_known", lambda session_id: looked)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM directory")
        connection.commit()
    with pytest.raises(UnknownSession):
        await store.acquire(session)
    assert not store._owned


async def test_an_owner_of_another_container_is_dead_when_its_lock_says_so_and_not_before(
    store: FileStore, peer: Any, path: Path
) -> None:
    other = await peer(prefix=("unshare", "--pid", "--fork", "--kill-child"))
    about = await other.hear()
    if about is None:
        pytest.skip("NOT TESTED: process namespaces are not permitted here")
    await other.ask("create", "theirs")
    assert isinstance(await store.acquire("dgm_theirs"), HeldElsewhere)
    lock = lock_of(path, "dgm_theirs")
    await other.kill()
    await until(lambda: not held(lock))
    assert isinstance(await store.acquire("dgm_theirs"), Lease)


def held(lock: Path) -> bool:
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


async def test_of_processes_that_race_for_a_session_exactly_one_wins(store: FileStore, peer: Any) -> None:
    peers = [await peer() for _ in range(4)]
    owners = [(await one.hear())["owner"] for one in peers]
    for n in range(20):
        await store.create(record(f"{n}", owner="dead-process"))
        for one in peers:
            one.tell("acquire", f"dgm_{n}")
        answers = [await one.hear() for one in peers]
        winners = [owner for owner, answer in zip(owners, answers, strict=True) if "epoch" in answer]
        assert len(winners) == 1, answers
        assert {answer["owner"]["id"] for answer in answers if "owner" in answer} == set(winners)


async def test_a_released_session_is_free_and_its_epoch_grows(store: FileStore, peer: Any) -> None:
    other = await peer()
    await other.hear()
    session = await begin(store)
    assert "owner" in await other.ask("acquire", session)
    await store.release(session, 1)
    assert (await other.ask("acquire", session))["epoch"] == 2
    assert isinstance(await append(store, session, 1, [b"late"]), Fenced)


async def test_no_epoch_is_given_twice_not_even_to_one_process(store: FileStore) -> None:
    session = await begin(store)
    assert await store.acquire(session) == Lease(session, 2, 0)
    assert isinstance(await append(store, session, 1, [b"late"], epoch=1), Fenced)
    assert await append(store, session, 1, [b"on"], epoch=2) is None
    assert await store.acquire(session) == Lease(session, 3, 1)
    with pytest.raises(UnknownSession):
        await store.acquire("dgm_of_another_machine")


async def test_closing_gives_every_lease_back(store: FileStore, peer: Any, path: Path) -> None:
    other = await peer()
    await other.hear()
    await other.ask("create", "theirs")
    other.process.stdin.close()
    await asyncio.wait_for(other.process.wait(), 30)
    lease = await store.acquire("dgm_theirs")
    assert isinstance(lease, Lease)
    assert not (await store.holders([record("theirs")]))


async def test_an_agent_that_outlives_its_gateway_does_not_keep_the_lease(
    store: FileStore, peer: Any
) -> None:
    other = await peer()
    await other.hear()
    await other.ask("create", "theirs")
    child = await other.ask("spawn", 60)
    await other.kill()
    try:
        assert isinstance(await store.acquire("dgm_theirs"), Lease)
    finally:
        os.kill(child, signal.SIGKILL)


async def test_a_forked_child_does_not_hold_the_lock(store: FileStore, runtime: Path) -> None:
    await begin(store)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        own = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if int(fd) not in (writing,)
                and os.path.islink(f"/proc/self/fd/{fd}")]  # fmt: skip
        os.write(writing, "\n".join(own).encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as pipe:
        held = pipe.read()
    os.waitpid(child, 0)
    assert "/dragoman.db" in held
    assert not any(line.endswith("/lock") for line in held.splitlines())


async def test_a_session_that_is_live_elsewhere_is_not_deleted(store: FileStore, peer: Any) -> None:
    other = await peer()
    about = await other.hear()
    await other.ask("create", "theirs")
    with pytest.raises(SessionHeld, match="live in another") as refusal:
        await store.delete("dgm_theirs")
    assert refusal.value.holder.owner.address == about["address"]
    assert await other.ask("delete", "dgm_theirs") is True


async def test_the_lock_says_who_has_the_session_and_who_gave_it_back(store: FileStore, path: Path) -> None:
    session = await begin(store)
    said = json.loads(lock_of(path, session).read_text())
    assert said["owner"] == {"node": machine.node(), "id": store.owner.id, "address": store.owner.address}
    assert (said["epoch"], said["pid"]) == (1, os.getpid())
    assert said["place"].startswith(machine.boot_id())
    await store.release(session, 1)
    assert json.loads(lock_of(path, session).read_text()) == {"epoch": 1}


def claim_elsewhere(path: Path, session: str) -> None:
    """As if another machine had been killed while it had the session."""
    lock = lock_of(path, session)
    said = json.loads(lock.read_text())
    said["owner"] |= {"node": "far-away", "id": "1-abc"}
    lock.write_text(
        json.dumps({**said, "machine": "other@far-away", "place": "other boot", "epoch": 7}) + "\n"
    )


async def test_a_session_of_another_machine_is_taken_on_a_local_disk(store: FileStore, path: Path) -> None:
    session = await begin(store)
    await store.release(session, 1)
    await store.acquire(session)
    await store.release(session, 2)
    lock_of(path, session).write_text(
        '{"epoch":2,"owner":{"node":"n","id":"i","address":"unix:/gone"},"machine":"m"}\n'
    )
    lease = await store.acquire(session)
    assert isinstance(lease, Lease) and lease.epoch > limits.BREAK_EPOCH  # it may have lost what came last


async def test_a_session_of_another_machine_is_only_read_on_a_network_disk_until_it_is_taken(
    store: FileStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await begin(store)
    await append(store, session, 1, [b"there"])
    await store.release(session, 1)
    await store.acquire(session)
    store._owned.pop(session).close()  # as if killed
    claim_elsewhere(path, session)
    monkeypatch.setattr(machine, "file_system", lambda folder: "nfs4")
    with pytest.raises(SessionAway, match=r"far-away.*dragoman sessions take"):
        await store.acquire(session)
    assert numbered(await read_all(store, session)) == {1: b"there"}
    lease = await store.acquire(session, force=True)
    assert isinstance(lease, Lease) and (lease.epoch > 7, lease.last_seq) == (True, 1)


async def test_an_epoch_survives_a_lock_that_is_torn_or_lost(store: FileStore, path: Path) -> None:
    session = await begin(store)
    for epoch in (2, 3):
        await store.acquire(session)
        await append(store, session, epoch - 1, [b"x"], epoch=epoch)
    await store.release(session, 3)
    lock_of(path, session).write_bytes(b"\0\0\0")
    assert await store.acquire(session) == Lease(session, 4, 2)


def test_a_change_of_the_lock_file_is_noticed_however_long_it_was_ours(tmp_path: Path) -> None:
    lock = locks.take(tmp_path)
    assert isinstance(lock, SessionLock)
    lock.write(Owner("here", "me", "unix:/me"), 7)
    path, old = tmp_path / locks.NAME, time.time() - 60
    os.utime(path, (old, old))
    assert lock.is_ours(7) and lock.is_ours(7)
    line = path.read_bytes()
    path.write_bytes(line.replace(b'"epoch":7', b'"epoch":8'))
    assert not lock.is_ours(7)
    path.write_bytes(line)
    assert lock.is_ours(7) and lock.is_ours(7)
    path.unlink()
    assert lock.is_ours(7)
    assert path.exists()
    lock.close()
