"""An agent process with hooks: its socket lives as long as it does."""

from __future__ import annotations

import asyncio
import os
import secrets
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from dragoman.agents.hooks.server import HookServer
from dragoman.agents.process import LEAVE_PATIENCE, AgentProcess


class HookedAgent(AgentProcess):
    _rewrite: Callable[[bytes], bytes] | None = None
    _hooks: asyncio.Task[None] | None = None

    def use_hooks(self, server: HookServer, rewrite: Callable[[bytes], bytes] | None) -> None:
        """Called right after the start, before anything is sent."""
        self._rewrite = rewrite
        self._hooks = asyncio.get_running_loop().create_task(self._close_with(server))

    def send(self, message: bytes) -> None:
        super().send(message if self._rewrite is None else self._rewrite(message))

    async def stop(self, patience: float = LEAVE_PATIENCE) -> None:
        await super().stop(patience)
        if self._hooks is not None:
            await asyncio.shield(self._hooks)

    async def _close_with(self, server: HookServer) -> None:
        try:
            await self.wait_closed()
        finally:
            server.close()


def private_folder(parent: Path) -> Path:
    """A new folder for one agent process; those that dead gateways left are removed."""
    for left in parent.iterdir():
        owner = left.name.partition("-")[0]
        if owner.isdigit() and int(owner) != os.getpid() and not _runs(int(owner)):
            shutil.rmtree(left, ignore_errors=True)
    folder = parent / f"{os.getpid()}-{secrets.token_hex(4)}"
    folder.mkdir(mode=0o700)
    return folder


def _runs(pid: int) -> bool:
    with suppress(PermissionError):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
    return True
