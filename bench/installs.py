"""The other relays' SDKs, installed once under `.cache/bench` and left alone afterwards."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache" / "bench"
RELAYS = Path(__file__).resolve().parent / "relays"
# Pinned, so that a ratio moves only when Dragoman does.
PYTHON_SDK = "agent-client-protocol==0.12.1"
NODE_PACKAGES = ("@agentclientprotocol/sdk@2.4.0", "zod@4.1.13")
INSTALL_TIMEOUT = 180.0


class NotAvailable(Exception):
    """A contender cannot be set up on this machine."""


def python_sdk() -> list[str]:
    """Return the interpreter of a venv with the Python SDK, and without `opentelemetry-api`.

    With opentelemetry the SDK traces every message, which slows it and would flatter us.
    """
    home = CACHE / "python-sdk"
    python = home / "bin" / "python"
    if not _installed(home, PYTHON_SDK):
        uv = Path(sys.executable).parent / "uv"
        _run([str(uv), "venv", "--quiet", "--clear", "--python", sys.executable, str(home)])
        _run([str(uv), "pip", "install", "--quiet", "--python", str(python), PYTHON_SDK])
        _mark(home, PYTHON_SDK)
    if next(home.glob("lib/python*/site-packages/opentelemetry"), None) is not None:
        raise NotAvailable(f"opentelemetry is installed in {home}, which slows the SDK; remove that folder")
    return [str(python)]


def typescript_sdk() -> list[str]:
    """Return node and the relay, copied beside the SDK because ES modules resolve from their own path."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise NotAvailable("node and npm are not on PATH")
    home = CACHE / "typescript-sdk"
    wanted = " ".join(NODE_PACKAGES)
    if not _installed(home, wanted):
        home.mkdir(parents=True, exist_ok=True)
        _run(
            [
                npm,
                "install",
                "--prefix",
                str(home),
                "--no-audit",
                "--no-fund",
                "--loglevel=error",
                *NODE_PACKAGES,
            ]
        )
        _mark(home, wanted)
    relay = home / "typescript_sdk.mjs"
    shutil.copyfile(RELAYS / relay.name, relay)
    return [node, str(relay)]


def _installed(home: Path, wanted: str) -> bool:
    stamp = home / ".installed"
    return stamp.exists() and stamp.read_text() == wanted


def _mark(home: Path, wanted: str) -> None:
    (home / ".installed").write_text(wanted)


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotAvailable(f"{Path(command[0]).name} did not finish: {error}") from error
    if done.returncode:
        raise NotAvailable(f"{' '.join(command)} failed: {done.stderr.strip()[-400:]}")
