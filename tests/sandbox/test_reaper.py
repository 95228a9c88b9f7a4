"""The script that ends process trees inside a box."""

from __future__ import annotations

import subprocess
from pathlib import Path

from dragoman.sandbox.reaper import SCRIPT


def test_what_has_ended_is_not_looked_for_again(tmp_path: Path) -> None:
    """A container may live for months, and its reaper with it."""
    grep = tmp_path / "grep"
    grep.write_text(f'#!/bin/sh\necho "$2" >> {tmp_path}/looked\n')
    grep.chmod(0o755)
    told = "watch one\nwatch two\nwatch three\nend two\n"
    done = subprocess.run(
        ["sh", "-c", SCRIPT],
        input=told,
        text=True,
        capture_output=True,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        timeout=30,
        check=True,
    )
    assert done.stdout.split() == ["ready", "ended", "two"]
    looked = [line.removeprefix("DRAGOMAN_BOX=") for line in (tmp_path / "looked").read_text().split()]
    assert looked == ["two", "one", "three"]  # the others when its stdin ended
