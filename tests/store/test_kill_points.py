"""A process that is killed at any line of an operation leaves nothing that the next one cannot go on with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "support" / "store" / "kill_points.py"
POINTS = {
    "append": 800, "takeover": 800, "prune": 700, "delete": 250, "create": 350, "convert": 2500, "restore": 150,
}  # fmt: skip
"""About as many lines as each operation executes; fewer would mean that it was not tried."""


def tried(operation: str, folder: Path, each: int) -> int:
    environment = {**os.environ, "PYTHONPATH": str(PROGRAM.parents[2])}
    command = [sys.executable, str(PROGRAM), operation, str(folder), str(each)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return int(done.stdout)


@pytest.mark.parametrize("operation", POINTS)
def test_some_points_of_every_operation(tmp_path: Path, operation: str) -> None:
    each = 97 if operation == "convert" else 37
    assert tried(operation, tmp_path, each) >= POINTS[operation] // each - 1


@pytest.mark.long
@pytest.mark.timeout(1300)
@pytest.mark.parametrize("operation", POINTS)
def test_every_point_of_every_operation(tmp_path: Path, operation: str) -> None:
    assert tried(operation, tmp_path, 1) >= POINTS[operation]
