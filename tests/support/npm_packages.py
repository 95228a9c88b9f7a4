"""Installs the npm packages that test clients need, once, into `.cache/node-peers`."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "peers" / "node"
CACHE = Path(__file__).parents[2] / ".cache" / "node-peers"
# Not `npm ci`: it refuses a lock without the optional packages of other platforms.
INSTALL = ["npm", "install", "--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]


def installed() -> Path:
    """The folder with `node_modules` and our own scripts; skips the test, and says why, without it."""
    if not shutil.which("npm") or not shutil.which("node"):
        pytest.skip("NODE PEERS NOT TESTED: node or npm is not installed")
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes run side by side
        for source in SOURCES.iterdir():
            shutil.copy(source, CACHE)
        _install(hashlib.sha256((SOURCES / "package-lock.json").read_bytes()).hexdigest())
    return CACHE


def _install(wanted: str) -> None:
    stamp = CACHE / ".installed"
    if stamp.exists() and stamp.read_text() == wanted:
        return
    try:
        result = subprocess.run(INSTALL, cwd=CACHE, capture_output=True, text=True, timeout=90)
    except subprocess.TimeoutExpired:
        pytest.skip("NODE PEERS NOT TESTED: npm did not finish in 90 s; is its registry reachable?")
    if result.returncode:
        pytest.skip(f"NODE PEERS NOT TESTED: npm failed: {result.stderr.strip()[-500:]}")
    stamp.write_text(wanted)
