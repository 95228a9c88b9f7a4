"""One owner per session among several processes."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from dragoman.gateway.ports.store import Fenced, HeldElsewhere, Lease, SessionHeld, UnknownSession
from dragoman.store import SqliteStore
from support.store import append, begin, numbered, read_all, record
from support.waiting import until


async def test_a_session_of_a_living_process_is_reached_through_its_socket(
    store: SqliteStore, peer: Any
) -> None:
    other = await peer()
    about = await other.hear()
    await other.ask("create", "theirs")
    assert await store.acquire("dgm_theirs") == HeldElsewhere(about["owner"], about["socket"])
    owners = {owner.owner_id for owner in await store.owners()}
    assert owners == {store.owner_id, about["owner"]}


async def test_a_session_whose_owner_died_is_taken_over(store: SqliteStore, peer: Any) -> None:
    other = await peer()
    about = await other.hear()
    await other.ask("create", "theirs")
    await other.ask("append", "dgm_theirs", 1, 1, ["a", "b"])
    await other.kill()
    lease = await store.acquire("dgm_theirs")
    assert lease == Lease("dgm_theirs", 2, 2, former_owner=about["owner"])
    assert await append(store, "dgm_theirs", 3, [b"c"], epoch=2) is None
    assert numbered(await read_all(store, "dgm_theirs")) == {1: b"a", 2: b"b", 3: b"c"}
    assert {owner.owner_id for owner in await store.owners()} == {store.owner_id}


async def test_a_former_owner_that_comes_back_is_fenced(store: SqliteStore, peer: Any, path: Path) -> None:
    other = await peer()
    about = await other.hear()
    await other.ask("create", "theirs")
    lock = path.parent / "owners" / f"{about['owner']}.lock"
    lock.unlink()
    lock.touch()  # nobody holds it: as if the process had died
    lease = await store.acquire("dgm_theirs")
    assert isinstance(lease, Lease)
    refusal = await other.ask("append", "dgm_theirs", 1, 1, ["late"])
    assert refusal["error"] == "Fenced"
    assert await append(store, "dgm_theirs", 1, [b"mine"], epoch=lease.epoch) is None
    await other.ask("release", "dgm_theirs", 1)
    assert await store.acquire("dgm_theirs") == Lease("dgm_theirs", lease.epoch, 1)


async def test_an_owner_whose_runtime_folder_or_lock_file_is_gone_is_still_the_owner(
    store: SqliteStore, peer: Any, path: Path, runtime: Path
) -> None:
    other = await peer()
    about = await other.hear()
    await other.ask("create", "theirs")
    shutil.rmtree(runtime)
    assert await store.acquire("dgm_theirs") == HeldElsewhere(about["owner"], about["socket"])
    (path.parent / "owners" / f"{about['owner']}.lock").unlink()
    assert await store.acquire("dgm_theirs") == HeldElsewhere(about["owner"], about["socket"])
    await (await peer()).hear()  # who comes next forgets only those that are dead
    assert await other.ask("append", "dgm_theirs", 1, 1, ["still mine"]) is None
    await other.kill()
    assert isinstance(await store.acquire("dgm_theirs"), Lease)


async def test_an_owner_of_another_container_is_dead_when_its_lock_says_so_and_not_before(
    store: SqliteStore, peer: Any, path: Path
) -> None:
    other = await peer(prefix=("unshare", "--pid", "--fork", "--kill-child"))
    about = await other.hear()
    if about is None:
        pytest.skip("NOT TESTED: process namespaces are not permitted here")
    await other.ask("create", "theirs")
    assert isinstance(await store.acquire("dgm_theirs"), HeldElsewhere)
    lock = path.parent / "owners" / f"{about['owner']}.lock"
    lock.rename(lock.with_suffix(".lost"))
    assert isinstance(await store.acquire("dgm_theirs"), HeldElsewhere)
    lock.with_suffix(".lost").rename(lock)
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


async def test_of_processes_that_race_for_a_session_exactly_one_wins(store: SqliteStore, peer: Any) -> None:
    peers = [await peer() for _ in range(4)]
    owners = [(await one.hear())["owner"] for one in peers]
    for n in range(20):
        await store.create(record(f"{n}", owner="dead-process"))
        for one in peers:
            one.tell("acquire", f"dgm_{n}")
        answers = [await one.hear() for one in peers]
        winners = [owner for owner, answer in zip(owners, answers, strict=True) if "epoch" in answer]
        assert len(winners) == 1, answers
        assert {answer["owner_id"] for answer in answers if "owner_id" in answer} == set(winners)


async def test_a_released_session_is_free_and_its_epoch_grows(store: SqliteStore, peer: Any) -> None:
    other = await peer()
    await other.hear()
    session = await begin(store)
    assert "owner_id" in await other.ask("acquire", session)
    await store.release(session, 1)
    assert (await other.ask("acquire", session))["epoch"] == 2
    assert isinstance(await append(store, session, 1, [b"late"]), Fenced)


async def test_acquiring_twice_gives_the_same_lease(store: SqliteStore) -> None:
    session = await begin(store)
    assert await store.acquire(session) == await store.acquire(session) == Lease(session, 1, 0)
    with pytest.raises(UnknownSession):
        await store.acquire("dgm_of_another_machine")


async def test_closing_gives_every_lease_back(store: SqliteStore, peer: Any, path: Path) -> None:
    other = await peer()
    await other.hear()
    await other.ask("create", "theirs")
    other.process.stdin.close()
    await asyncio.wait_for(other.process.wait(), 30)
    lease = await store.acquire("dgm_theirs")
    assert isinstance(lease, Lease)
    assert lease.former_owner is None
    assert [file.name for file in (path.parent / "owners").iterdir()] == [f"{store.owner_id}.lock"]


async def test_an_agent_that_outlives_its_gateway_does_not_keep_the_lease(
    store: SqliteStore, peer: Any
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


async def test_a_forked_child_does_not_hold_the_lock(store: SqliteStore, runtime: Path) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        held = [os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if int(fd) not in (writing,)
                and os.path.islink(f"/proc/self/fd/{fd}")]  # fmt: skip
        os.write(writing, "\n".join(held).encode())
        os._exit(0)
    os.close(writing)
    with open(reading) as pipe:
        held = pipe.read()
    os.waitpid(child, 0)
    assert "/dragoman.db" in held
    assert ".lock" not in held


async def test_a_session_that_is_live_elsewhere_is_not_deleted(store: SqliteStore, peer: Any) -> None:
    other = await peer()
    about = await other.hear()
    await other.ask("create", "theirs")
    with pytest.raises(SessionHeld, match="live in another") as refusal:
        await store.delete("dgm_theirs")
    assert refusal.value.holder.socket_path == about["socket"]
    assert await other.ask("delete", "dgm_theirs") is True


async def test_files_of_dead_processes_are_removed_by_the_next(runtime: Path, path: Path, peer: Any) -> None:
    other = await peer()
    about = await other.hear()
    Path(about["socket"]).touch()
    await other.kill()
    locks = path.parent / "owners"
    assert [file.stem for folder in (locks, runtime / "owners") for file in folder.iterdir()] == [
        about["owner"]
    ] * 2
    store = await SqliteStore.open(path, runtime)
    assert [file.name for file in locks.iterdir()] == [f"{store.owner_id}.lock"]
    assert not list((runtime / "owners").iterdir())
    assert held(locks / f"{store.owner_id}.lock")
    await store.close()
    assert not locks.exists()
