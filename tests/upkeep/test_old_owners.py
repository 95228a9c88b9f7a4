"""Which owners of sessions are known to be dead."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dragoman.upkeep import old_owners as owners

linux = pytest.mark.skipif(
    not Path("/proc/self/ns/pid").exists(), reason="this system does not tell boots apart"
)
NO_PROCESS = 2**22 + 1


def place(**other: str) -> str:
    """Where this process runs, with parts of it exchanged."""
    parts = dict(zip(("boot", "namespace", "start", "machine"), owners.here().split(" "), strict=True))
    return " ".join({**parts, **other}.values())


@linux
@pytest.mark.parametrize(
    ("there", "pid", "alive"),
    [
        ({}, os.getpid(), True),
        ({"start": "1"}, os.getpid(), False),
        ({}, NO_PROCESS, False),
        ({"namespace": "pid:[1]"}, NO_PROCESS, True),
        ({"boot": "earlier"}, NO_PROCESS, False),
        ({"boot": "its-own", "machine": "other@elsewhere"}, NO_PROCESS, True),
        ({"machine": "other@container"}, NO_PROCESS, False),
    ],
    ids=["this process", "its number again", "gone", "another container", "before a reboot", "another machine",
         "a container that shares our processes"],
)  # fmt: skip
def test_an_owner_without_its_lock_is_dead_only_where_that_is_known(
    tmp_path: Path, there: dict[str, str], pid: int, alive: bool
) -> None:
    assert owners.is_alive(tmp_path / "gone.lock", place(**there), pid) is alive


@linux
def test_an_owner_of_a_version_that_did_not_name_its_machine_is_judged_as_before(tmp_path: Path) -> None:
    boot, namespace, start, _ = owners.here().split(" ")
    assert not owners.is_alive(tmp_path / "gone.lock", f"earlier {namespace} {start}", NO_PROCESS)
    assert owners.is_alive(tmp_path / "gone.lock", f"{boot} {namespace} {start}", os.getpid())
