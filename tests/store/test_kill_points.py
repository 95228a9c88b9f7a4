"""A process that is killed at any line of an operation leaves nothing that the next one cannot go on with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "support" / "store" / "kill_points.py"
POINTS = {
    "append": 800, "takeover": 800, "prune": 680, "delete": 250, "create": 350, "convert": 2500, "restore": 150,
}  # fmt: skip
"""About as many lines as each operation executes; fewer would mean that it was not tried."""


PARTS = 4
"""Every point is tried, in so many tests for each operation: each has its share of the time and of the processors."""


def tried(operation: str, folder: Path, each: int, first: int = 1) -> int:
    environment = {**os.environ, "PYTHONPATH": str(PROGRAM.parents[2])}
    command = [sys.executable, str(PROGRAM), operation, str(folder), str(each), str(first)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return int(done.stdout)


@pytest.mark.parametrize("operation", POINTS)
def test_some_points_of_every_operation(tmp_path: Path, operation: str) -> None:
    each = 193 if operation == "convert" else 73
    assert tried(operation, tmp_path, each) >= POINTS[operation] // each - 1


@pytest.mark.long
@pytest.mark.timeout(1300)
@pytest.mark.parametrize("first", range(1, PARTS + 1))
@pytest.mark.parametrize("operation", POINTS)
def test_every_point_of_every_operation(tmp_path: Path, operation: str, first: int) -> None:
    assert tried(operation, tmp_path, PARTS, first) >= POINTS[operation] // PARTS
