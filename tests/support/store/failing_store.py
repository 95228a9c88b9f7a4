"""A store that fails or waits when a test says so, in a real gateway, behind the port that every store has."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from support.gateway_process import GatewayProcess, Start
from support.waiting import until

GATEWAY = Path(__file__).with_name("failing_store_gateway.py")


class Faults:
    """The folder that a gateway started with `start` looks into."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()

    @property
    def settings(self) -> dict[str, Any]:
        """What to start a gateway with whose store looks into the folder."""
        return {"prefix": (sys.executable, str(GATEWAY)), "env": {"TEST_FAULTS": str(self._folder)}}

    async def start(self, dragoman: Start, *arguments: str, **settings: Any) -> GatewayProcess:
        return await dragoman(*arguments, **self.settings, **settings)

    def command(self, *arguments: str) -> list[str]:
        """The command line of a `dragoman` whose store looks into the folder."""
        return [sys.executable, str(GATEWAY), sys.executable, "-m", "dragoman", *arguments]

    def fail(self, *methods: str) -> None:
        for method in methods:
            (self._folder / f"{method}.fail").touch()

    def heal(self) -> None:
        for fault in self._folder.iterdir():
            fault.unlink()

    def hold(self, method: str) -> None:
        (self._folder / f"{method}.hold").touch()

    async def held(self, method: str) -> None:
        """Wait until a caller waits for `method`."""
        await until((self._folder / f"{method}.held").exists, 20.0)

    def let_go(self, method: str) -> None:
        (self._folder / f"{method}.hold").unlink()


WRITES = ("append", "update", "touch", "create", "acquire", "release")
