"""A small world: processes on one store, their agents and clients, and what is known of all journals."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import tempfile
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path
from unittest.mock import patch

from dragoman.gateway.delivery import events
from dragoman.gateway.delivery.conversation.undone import MARK, NOTHING, read_undone_record
from dragoman.store import segments
from support.simulation.agent import Message
from support.simulation.client import Call, SimulatedClient
from support.simulation.loop import SimulatedExecutor
from support.simulation.process import ProcessLoop, SimulatedProcess

BOUND = 120.0
"""Simulated seconds within which everything is answered, and every process ended."""


class Logged(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno < logging.ERROR and "closed session is not stored" not in record.getMessage():
            return
        why = f": {record.exc_info[1]!r}" if record.exc_info else ""
        self.lines.append(f"{record.name}: {record.getMessage()}{why}")


class World:
    def __init__(self, seed: int, most_delay: int = 6) -> None:
        self.loop = ProcessLoop(seed, most_delay)
        self.outside = copy_context()
        """The context of agents and clients, which belong to no process."""
        self.home = Path(tempfile.mkdtemp(prefix="dgm-"))
        self.folder = self.home / "work"
        self.folder.mkdir()
        self.processes: list[SimulatedProcess] = []
        self.clients: list[SimulatedClient] = []
        self.sessions: list[str] = []
        self.journals: dict[str, dict[int, bytes]] = {}
        """Every event that was stored, by session and number, also of sessions deleted since."""
        self.remembered: dict[str, list[Message]] = {}
        """What agents would replay of their sessions."""
        self.rewound: set[str] = set()
        """Sessions that a client asked to rewind."""
        self.performed: list[str] = []
        """The scripts that agents began to perform."""
        self.said: dict[str, list[str]] = {}
        """What agents said, by script."""
        self.go_on = asyncio.Event()
        """Set: agents that stay in their turns end them."""
        self.problems: list[str] = []
        self._count = 0
        self._logged = Logged()
        logging.getLogger().addHandler(self._logged)
        self._patches = [patch("dragoman.store.writer.ThreadPoolExecutor", SimulatedExecutor)]
        for each in self._patches:
            each.start()

    def next(self) -> int:
        """A number that was not used before; also the order of what happens."""
        self._count += 1
        return self._count

    def expect(self, truth: bool, problem: str) -> None:
        """Note a problem; `check` raises it."""
        if not truth:
            self.problems.append(problem)

    def check(self) -> None:
        problems = [*self.problems, *self.loop.errors, *self._logged.lines]
        assert not problems, "\n".join(problems)

    # -- the journals

    def stored(self, session: str, first_seq: int, lines: list[bytes]) -> None:
        journal = self.journals.setdefault(session, {})
        for seq, line in enumerate(lines, first_seq):
            self.expect(
                seq not in journal or journal[seq] == line, f"event {seq} of {session} was stored twice"
            )
            journal[seq] = bytes(line)

    def read_journals(self) -> None:
        """Add what is on the disk: a process may have been killed between a write and its end."""
        for session in self.sessions:
            folder = self.home / "journal" / session
            if folder.exists():
                for row in segments.Reader().read(folder, after_seq=0, max_bytes=1 << 30):
                    self.expect(not row.damaged, f"{session} is damaged on the disk at {row.first_seq}")
                    self.stored(session, row.first_seq, row.events())

    def story(self, session: str) -> dict[str, int]:
        """The number of each thing that the agent said in a session, in order."""
        found: dict[str, int] = {}
        for seq, line in sorted(self.journals.get(session, {}).items()):
            if line[:1] != events.HISTORY:
                continue
            update = json.loads(line[1:])["params"]["update"]
            if update.get("sessionUpdate") == "agent_message_chunk":
                text = update["content"]["text"]
                self.expect(text not in found, f"{text} is twice in the journal of {session}")
                found[text] = seq
        return found

    def shown(self, session: str) -> list[str]:
        """What the agent said and no rewind undid."""
        undone = NOTHING
        for _, line in sorted(self.journals.get(session, {}).items()):
            if line.startswith(MARK):
                undone = read_undone_record(line)
        return [text for text, seq in self.story(session).items() if seq not in undone]

    # -- processes and clients

    def start_process(self, *, durable: bool = False) -> SimulatedProcess:
        process = SimulatedProcess(self, len(self.processes), durable=durable)
        starting = process.run(process.start())
        self.loop.rest()
        starting.result()
        self.processes.append(process)
        return process

    def add_client(
        self, process: SimulatedProcess, kind: str = "network", *, numbers: bool = True
    ) -> SimulatedClient:
        client = SimulatedClient(process, kind, numbers=numbers)
        self.clients.append(client)
        return client

    @property
    def running(self) -> list[SimulatedProcess]:
        return [each for each in self.processes if not each.dead and each.ending is None]

    @property
    def present(self) -> list[SimulatedClient]:
        return [each for each in self.clients if not each.gone]

    def new(self, client: SimulatedClient, agent: str = "loads") -> Call:
        meta = {"dragoman": {"agent": agent}}
        return client.call("session/new", {"cwd": str(self.folder), "mcpServers": [], "_meta": meta})

    def load(self, client: SimulatedClient, session: str) -> Call:
        return client.call("session/load", {"cwd": str(self.folder), "mcpServers": []}, session)

    def resume(self, client: SimulatedClient, session: str, after: int | None = None) -> Call:
        meta = {} if after is None else {"_meta": {"dragoman": {"afterSeq": after}}}
        return client.call("session/resume", {"cwd": str(self.folder), "mcpServers": [], **meta}, session)

    def rewind(self, client: SimulatedClient, session: str, wish: dict[str, object]) -> Call:
        self.rewound.add(session)
        return client.call("_dragoman/rewind", wish, session)

    def prompt(self, client: SimulatedClient, session: str, **script: object) -> Call:
        text = json.dumps({**script, "n": self.next()})
        return client.call("session/prompt", {"prompt": [{"type": "text", "text": text}]}, session)

    # -- the end

    def settle(self) -> None:
        """Let everything that was begun come to its end: all questions are answered, all turns end."""
        with self.loop.running():
            self.go_on.set()
        for _ in range(20):
            self.loop.pass_time(BOUND / 20)
            for client in self.present:
                while client.questions:
                    client.answer("yes")
        for client in self.present:
            for call in client.calls.values():
                self.expect(call.answer is not None, f"{client}: {call}")
        for process in self.processes:
            self.expect(process.dead or process.ending is None, f"process {process.number} does not end")

    def close(self) -> None:
        """End all processes, in order."""
        for process in self.running:
            process.shut_down()
        self.loop.pass_time(BOUND)
        for process in self.processes:
            self.expect(process.dead, f"process {process.number} does not end")

    def dispose(self) -> None:
        """Free everything, whatever state it is in."""
        for process in self.processes:
            if not process.dead:
                process.kill()
        self._drop_tasks()
        for each in self._patches:
            each.stop()
        logging.getLogger().removeHandler(self._logged)
        self.loop.close()
        shutil.rmtree(self.home, ignore_errors=True)

    def _drop_tasks(self) -> None:
        """Close the coroutines that are left; the tasks that these begin in their `finally` are never run."""
        dropped: set[asyncio.Task[object]] = set()
        with self.loop.running():
            while left := [task for task in self._tasks_left() if task not in dropped]:
                for task in left:
                    dropped.add(task)
                    task._log_destroy_pending = False  # type: ignore[attr-defined]
                    with suppress(Exception):  # it has no process any more in which it could end
                        task.get_coro().close()

    def _tasks_left(self) -> list[asyncio.Task[object]]:
        return [task for owner in (None, *self.processes) for task in self.loop.tasks_of(owner)]
