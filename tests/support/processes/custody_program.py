"""A gateway reduced to its custody: starts an agent per argument, tells all pids, and waits to be killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from dragoman.agents.custody import Custody
from dragoman.agents.process import AgentProcess
from dragoman.rpc.link import Link
from dragoman.wire.framing import Frame

MISBEHAVING_CHILD = str(Path(__file__).with_name("misbehaving_child.py"))


class FirstWords:
    """Takes the first message of an agent, which names its processes."""

    def __init__(self) -> None:
        self.pids: asyncio.Future[list[int]] = asyncio.get_running_loop().create_future()

    def link_opened(self, link: Link) -> None:
        pass

    def link_messages(self, frames: list[Frame]) -> None:
        if not self.pids.done() and isinstance(frames[0], bytes):
            self.pids.set_result(json.loads(frames[0])["pids"])

    def link_writable(self, writable: bool) -> None:
        pass

    def link_closed(self, reason: str | None) -> None:
        pass


async def main() -> None:
    custody = Custody()
    pids: list[int] = []
    for behaviour in sys.argv[1:]:
        words = FirstWords()
        command = [sys.executable, MISBEHAVING_CHILD, behaviour]
        await AgentProcess.spawn(command, handler=words, custody=custody, env=os.environ)
        pids += await words.pids
    print(json.dumps({"watcher": custody.watcher_pid, "agents": pids}), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    asyncio.run(main())
