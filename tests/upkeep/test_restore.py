"""A restore into a folder that cannot be renamed, that other processes use parts of, and that is interrupted."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.gateway.ports.store import StoreUnavailable
from dragoman.store import FileStore
from dragoman.upkeep import archive, restore
from support.store.old_store import OldStore
from support.store.small_disk import mounting
from support.store.store_process import numbered, read_all

RESTORE = """
import sys
from pathlib import Path
from dragoman.gateway.ports.store import StoreError
from dragoman.upkeep.restore import restore
try:
    print(restore(Path(sys.argv[1]), Path(sys.argv[2]), lambda line: None, replace=True)[1])
except StoreError as error:
    print(error)
"""


def quiet(line: str) -> None:
    """Progress is for people."""


@pytest.fixture
def backup(state: Path, tmp_path: Path, filled: list[str]) -> Path:
    file = tmp_path / "backup.tar"
    archive.back_up(state, file, quiet)
    return file


async def check_sound(state: Path, sessions: list[str]) -> None:
    store = await FileStore.open(state / "dragoman.db", state.parent / "run")
    for session in sessions:
        assert len(numbered(await read_all(store, session))) == 100
    await store.close()


def inside(mount: str, state: Path, backup: Path, after: str) -> list[str]:
    """What a restore prints with this mounted, and then what `after` prints there."""
    command = [*mounting(mount), "sh", "-c", f'"$@" && {after}', "sh"]
    command += [sys.executable, "-c", RESTORE, str(backup), str(state)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.splitlines()


def test_a_folder_that_is_a_mount_point_is_restored(state: Path, backup: Path, tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    mount = f"mount --bind {state} {volume} && echo later > {volume}/tokens.json"
    before, *left = inside(mount, volume, backup, f"cat {volume}/tokens.json && ls {volume}")
    assert before.startswith(f"{volume}/before-")
    assert left[0] == '{"secret": 1}audit'
    assert {"dragoman.db", "journal", "run", Path(before).name} <= set(left)


def test_a_disk_of_its_own_below_a_folder_that_cannot_be_written_is_restored(
    state: Path, backup: Path, tmp_path: Path
) -> None:
    outer = tmp_path / "outer"
    volume = outer / "state"
    volume.mkdir(parents=True)
    mount = f"mount --bind -o ro {outer} {outer} && mount -t tmpfs tmpfs {volume}"
    before, *left = inside(mount, volume, backup, f"ls {volume}")
    assert before == "None"
    assert {"dragoman.db", "journal", "tokens.json", "audit"} <= set(left)


async def test_an_entry_that_cannot_be_moved_leaves_everything_as_it_was(
    state: Path, backup: Path, filled: list[str]
) -> None:
    (state / "tokens.json").write_text("present")
    (said, *left) = inside(f"mount --bind {state}/journal {state}/journal", state, backup, f"ls -A {state}")
    assert "could not be restored and is as it was" in said and "journal" in said
    assert not [name for name in left if name.startswith("before-") or name == ".restore"]
    assert (state / "tokens.json").read_text() == "present"
    await check_sound(state, filled)


async def test_a_disk_that_is_full_leaves_everything_as_it_was(
    state: Path, backup: Path, tmp_path: Path
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    said, *left = inside(f"mount -t tmpfs -o size=16k tmpfs {small}", small, backup, f"ls -A {small}")
    assert said.startswith("No space is left for ")
    assert left == ["gateways.lock"]


async def test_what_belongs_to_processes_of_this_machine_stays(
    state: Path, backup: Path, filled: list[str]
) -> None:
    (state / "custody").mkdir()
    (state / "custody" / "record").write_text("mine")
    (state / "run" / "token").write_text("my token")
    (state / "cache").mkdir()
    _, before = restore.restore(backup, state, quiet, replace=True)
    assert (state / "custody" / "record").read_text() == "mine"
    assert (state / "run" / "token").read_text() == "my token"
    assert (state / "cache").exists()
    assert before is not None and before.parent == state
    assert not (before / "run").exists() and (before / "tokens.json").exists()
    await check_sound(state, filled)
    again = state.parent / "again.tar"
    assert not [name for name in archive.back_up(state, again, quiet).files if "before-" in name]


async def test_a_restore_that_stopped_halfway_is_completed(
    state: Path, backup: Path, filled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (state / "tokens.json").write_text("present")
    moves, real = 0, Path.rename

    def rename(self: Path, target: Path) -> Path:
        nonlocal moves
        moves += 1
        if moves > 4:  # neither on nor back
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(self))
        return real(self, target)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(
        StoreUnavailable, match=r"stopped halfway: Input/output error .* what was there before in"
    ):
        restore.restore(backup, state, quiet, replace=True)
    monkeypatch.undo()
    assert restore.is_interrupted(state)
    before = restore.finish(state)
    assert before is not None and (before / "tokens.json").read_text() == "present"
    assert (state / "tokens.json").read_text() == '{"secret": 1}'
    await check_sound(state, filled)


async def test_sessions_that_an_older_process_had_open_are_converted_after_the_restore(
    state: Path, tmp_path: Path
) -> None:
    from dragoman.upkeep import conversion

    old = OldStore(state / "dragoman.db")
    alive = old.owner("alive", alive=True)
    held = old.session("held", [[b"a", b"b"]], owner="alive")
    conversion.convert(state / "dragoman.db", quiet)
    archive.back_up(state, tmp_path / "backup.tar", quiet)
    elsewhere = tmp_path / "elsewhere"
    restore.restore(tmp_path / "backup.tar", elsewhere, quiet)
    assert conversion.convert(elsewhere / "dragoman.db", quiet).moved == 1
    store = await FileStore.open(elsewhere / "dragoman.db", tmp_path / "run")
    assert numbered(await read_all(store, held)) == {1: b"a", 2: b"b"}
    found = await store.get(held)
    assert found is not None and found.epoch > 1_700_000_000
    await store.close()
    os.close(alive)


def test_the_plan_names_what_is_exchanged(state: Path, backup: Path) -> None:
    """It is all that a person has who must go on by hand."""
    (state / restore.WORK / "new").mkdir(parents=True)
    restore._plan(state)
    plan = json.loads((state / restore.WORK / "plan").read_text())
    assert plan["before"].startswith("before-") and "journal" in plan["old"] and plan["new"] == []
