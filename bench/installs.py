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
HYPERCORN = "hypercorn==0.18.0"
ACPREMOTE = "acpremote==1.10.0"
STDIO_TO_WS = "stdio-to-ws@0.2.0"
INSTALL_TIMEOUT = 180.0


class NotAvailable(Exception):
    """A contender cannot be set up on this machine."""


def python_sdk() -> list[str]:
    """Return the interpreter of a venv with the Python SDK."""
    return [str(_venv("python-sdk", PYTHON_SDK))]


def python_sdk_server() -> list[str]:
    """Return the interpreter of a venv with the Python SDK and the HTTP server that its documentation names."""
    return [str(_venv("python-sdk-http", PYTHON_SDK, HYPERCORN))]


def acpremote() -> list[str]:
    return [str(_venv("acpremote", ACPREMOTE).parent / "acpremote")]


def typescript_sdk() -> list[str]:
    """Return node and the relay, copied beside the SDK because ES modules resolve from their own path."""
    node, home = _node("typescript-sdk", *NODE_PACKAGES)
    relay = home / "typescript_sdk.mjs"
    shutil.copyfile(RELAYS / relay.name, relay)
    return [node, str(relay)]


def stdio_to_ws() -> list[str]:
    node, home = _node("stdio-to-ws", STDIO_TO_WS)
    return [node, str(home / "node_modules" / "stdio-to-ws" / "dist" / "main.js")]


def _venv(name: str, *packages: str) -> Path:
    """The interpreter of a venv with these packages, and without `opentelemetry-api`.

    With opentelemetry the SDK traces every message, which slows it and would flatter us.
    """
    home, wanted = CACHE / name, " ".join(packages)
    python = home / "bin" / "python"
    if not _installed(home, wanted):
        uv = Path(sys.executable).parent / "uv"
        _run([str(uv), "venv", "--quiet", "--clear", "--python", sys.executable, str(home)])
        _run([str(uv), "pip", "install", "--quiet", "--python", str(python), *packages])
        _mark(home, wanted)
    if next(home.glob("lib/python*/site-packages/opentelemetry"), None) is not None:
        raise NotAvailable(f"opentelemetry is installed in {home}, which slows the SDK; remove that folder")
    return python


def _node(name: str, *packages: str) -> tuple[str, Path]:
    """Node and a folder with these packages."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise NotAvailable("node and npm are not on PATH")
    home, wanted = CACHE / name, " ".join(packages)
    if not _installed(home, wanted):
        home.mkdir(parents=True, exist_ok=True)
        quietly = ["--no-audit", "--no-fund", "--loglevel=error"]
        _run([npm, "install", "--prefix", str(home), *quietly, *packages])
        _mark(home, wanted)
    return node, home


def _installed(home: Path, wanted: str) -> bool:
    """Also not if the checkout was moved: scripts in a venv name its place."""
    stamp = home / ".installed"
    return stamp.exists() and stamp.read_text() == f"{wanted} in {home}"


def _mark(home: Path, wanted: str) -> None:
    (home / ".installed").write_text(f"{wanted} in {home}")


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotAvailable(f"{Path(command[0]).name} did not finish: {error}") from error
    if done.returncode:
        raise NotAvailable(f"{' '.join(command)} failed: {done.stderr.strip()[-400:]}")
