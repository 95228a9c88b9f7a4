"""A simulated process: a real gateway with a real store, which a test can kill."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakSet

from dragoman.agents.configured import ConfiguredAgents
from dragoman.config.model import AgentConfig, Config, LimitsConfig, SessionsConfig
from dragoman.gateway.access.client import Terms
from dragoman.gateway.gateway import Gateway
from dragoman.gateway.ports import store as port
from dragoman.gateway.ports.agent import AgentEnd, AgentUnavailable
from dragoman.gateway.runtime import Outside
from dragoman.rpc.link import LinkHandler
from dragoman.store import FileStore, locks
from support.simulation.agent import SimulatedLauncher
from support.simulation.link import SimulatedLink, connect
from support.simulation.loop import PROCESS, SimulatedLoop

if TYPE_CHECKING:
    from support.simulation.world import World

T = TypeVar("T")

PARK_AFTER = 40.0
NEIGHBOUR = Terms(keep_sessions=True, repeat_initialize=False, start_ahead=False, local_process=True)

CONFIG = Config(
    default_agent="loads",
    agents={
        "loads": AgentConfig(command=["loads"]),
        "resumes": AgentConfig(command=["resumes"], share="all"),
        "forgets": AgentConfig(command=["forgets"], park="always"),
        "shares": AgentConfig(command=["shares"], share="all"),
    },
    sessions=SessionsConfig(park_after=PARK_AFTER),
    limits=LimitsConfig(cancel_timeout=3.0, start_timeout=10.0, session_timeout=10.0),
)


class RecordingStore(FileStore):
    """Notes every stored event."""

    world: World

    def append(
        self, session_id: str, epoch: int, first_seq: int, events: list[bytes], done: port.Done
    ) -> None:
        def noted(error: port.StoreError | None) -> None:
            if error is None:
                self.world.stored(session_id, first_seq, events)
            done(error)

        super().append(session_id, epoch, first_seq, events, noted)


class OwnerLink(SimulatedLink):
    """Implements `AgentHandle` for the connection to another process."""

    pid = None

    def end(self) -> AgentEnd:
        return AgentEnd()

    async def has_process_since(self, moment: float) -> bool:
        return False

    async def stop(self) -> None:
        self.close()


class NoCache:
    def get(self, identity: str, fingerprint: str) -> None:
        return None

    def put(self, identity: str, fingerprint: str, result: dict[str, object]) -> None:
        pass


class NoServices:
    def open(self, roots: list[str], cwd: str, box: object = None) -> Any:
        raise AssertionError("no agent here is served files")


class SimulatedProcess:
    gateway: Gateway
    store: RecordingStore

    def __init__(self, world: World, number: int, *, durable: bool) -> None:
        self.world = world
        self.number = number
        self.durable = durable
        self.dead = False
        """Killed, or ended."""
        self.ending: asyncio.Task[None] | None = None
        self.links: list[SimulatedLink] = []
        """This process's ends of its connections."""
        self.neighbours: list[SimulatedLink] = []
        self.locks: WeakSet[locks.SessionLock] = WeakSet()
        """Locks that this process took, also those that are on their way out of a thread."""
        self.context = copy_context()
        self.context.run(PROCESS.set, self)
        self.launcher = SimulatedLauncher(self)

    def run(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Begin to run a coroutine in this process."""
        return self.world.loop.create_task(work, context=self.context.copy())

    async def start(self) -> None:
        home: Path = self.world.home
        store = await RecordingStore.open(
            home / "dragoman.db", home / "run", sync="full" if self.durable else "normal"
        )
        assert isinstance(store, RecordingStore)
        self.store = store
        self.store.world = self.world
        outside = Outside(
            agents=ConfiguredAgents(CONFIG),
            launcher=self.launcher,
            cache=NoCache(),
            services=NoServices(),
            dialer=self,
            store=self.store,
        )
        self.gateway = Gateway(CONFIG, outside)

    def accept(self, terms: Terms) -> tuple[Any, LinkHandler]:
        client = self.gateway.connect(terms)
        return client, client.peer

    async def dial(self, address: str, handler: LinkHandler) -> OwnerLink:
        """Connect to the process that owns a session; implements `Dialer`."""
        loop = self.world.loop
        for _ in range(loop.delay()):
            await asyncio.sleep(0)
        for other in self.world.processes:
            if not other.dead and not other.ending and other.store.owner.address == address:
                _, peer = other.context.copy().run(other.accept, NEIGHBOUR)
                ends = connect(loop, (handler, self.context), (peer, other.context), OwnerLink)
                self.links.append(ends[0])
                other.links.append(ends[1])
                other.neighbours.append(ends[1])
                return ends[0]
        raise AgentUnavailable(f"{address} cannot be reached: nothing listens there")

    def shut_down(self) -> None:
        """Begin to end it in order, as a command does at its end."""

        async def end() -> None:
            for link in self.neighbours:
                link.close()
            await self.gateway.close()
            for _ in range(self.world.loop.most_delay * 10):
                await asyncio.sleep(0)
            left = [task for task in self.world.loop.tasks_of(self) if task is not self.ending]
            self.world.expect(not left, f"tasks left in a gateway that ended: {left}")
            self.world.expect(not self.launcher.running, f"agents left: {self.launcher.running}")
            self.dead = True

        if self.ending is None:
            self.ending = self.run(end())

    def kill(self) -> None:
        """End it at once: its callbacks never run again, its locks are free, its connections are cut."""
        self.dead = True
        self.launcher.kill()
        for link in self.links:
            link.close()
        self._free_files()

    def _free_files(self) -> None:
        if not hasattr(self, "store") or self.store._closed:
            return
        for owned in self.store._owned.values():
            owned.close()
        for lock in self.locks:
            lock.close()
        self.store._opened.close()


class ProcessLoop(SimulatedLoop):
    """Knows which process took which lock."""

    def perform(self, work: Callable[..., Any], *args: Any) -> Any:
        before = set(locks._open)
        try:
            return work(*args)
        finally:
            process = PROCESS.get()
            if isinstance(process, SimulatedProcess):
                for lock in set(locks._open) - before:
                    process.locks.add(lock)
