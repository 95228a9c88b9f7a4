"""Installs real agents from npm, each once and on its own, into `.cache/real-agents`."""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCES = Path(__file__).with_name("node")
CACHE = Path(__file__).parents[2] / ".cache" / "real-agents"
# Not `npm ci`: it refuses a lock without the optional packages of other platforms.
INSTALL = ["npm", "install", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
PATIENCE = 600
LATEST = "REAL_LATEST"
"""The variable with `NAME=VERSION` of the one agent that is tried in its newest version (`latest.py`)."""


def installed(name: str) -> Path:
    """The `node_modules` with the agent `name`; without it the test fails: nobody must take it for tested."""
    if reason := _problem(name):
        pytest.fail(f"REAL AGENT {name} NOT TESTED: {reason}", pytrace=False)
    return (CACHE / "latest" if os.environ.get(LATEST) else CACHE) / name / "node_modules"


@functools.cache
def _problem(name: str) -> str | None:
    """Installs the agent; why that was not possible, asked once and not for every test."""
    if not shutil.which("npm") or not shutil.which("node"):
        return "node or npm is not installed"
    if os.environ.get(LATEST):
        return None  # `latest.py` has installed it
    folder = CACHE / name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _install(name, folder)


def _install(name: str, folder: Path) -> str | None:
    locked = (SOURCES / name / "package-lock.json").read_bytes()
    wanted, stamp = hashlib.sha256(locked).hexdigest(), folder / ".installed"
    if stamp.exists() and stamp.read_text() == wanted:
        return None
    for source in (SOURCES / name).iterdir():
        shutil.copy(source, folder)
    try:
        result = subprocess.run(INSTALL, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return f"npm did not finish in {PATIENCE} s; is its registry reachable?"
    if result.returncode:
        return f"npm failed: {result.stderr.strip()[:300]}"
    stamp.write_text(wanted)
    return None
