"""One `dragoman serve` with a scripted agent, which all tests of the client library share."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from dragoman.client import Gateway, connect
from support.gateway_process import agent, clean_environment, toml, with_test_defaults


@dataclass(frozen=True)
class Serving:
    home: Path
    url: str

    @property
    def socket(self) -> Path:
        return self.home / "run" / "dragoman.sock"


@pytest.fixture(scope="module")
def serving() -> Iterator[Serving]:
    with tempfile.TemporaryDirectory(prefix="dgm-") as folder:
        home = Path(folder)
        config = {
            "default_agent": "scripted",
            "agents": {
                "scripted": agent(),
                "claude": agent(),  # as the documentation has it
                "broken": {"kind": "acp", "command": ["/nowhere/agent"]},
            },
        }
        (home / "config.toml").write_text(toml(with_test_defaults(config)))
        process = subprocess.Popen(
            [sys.executable, "-m", "dragoman", "serve", "--port", "0"],
            env={**clean_environment(), "DRAGOMAN_HOME": folder},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        with process:
            assert process.stdout is not None
            url = process.stdout.readline().split()[-1]
            yield Serving(home, url)
            process.terminate()


@pytest.fixture
def at_home(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> Serving:
    """This process is a user of that `serve`."""
    for name in [name for name in os.environ if name.startswith("DRAGOMAN_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("DRAGOMAN_HOME", str(serving.home))
    return serving


@pytest.fixture
async def gateway(at_home: Serving) -> AsyncIterator[Gateway]:
    async with connect("serve") as gateway:
        yield gateway
