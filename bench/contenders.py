"""Who is measured: each contender is a way to reach the bench agent from the client's pipe."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from bench import installs
from bench.delivery import Faults
from bench.peers.client import Conversation
from bench.peers.talk import ConversationError

PEERS = Path(__file__).resolve().parent / "peers"
# -I and -S keep site-packages out, so the agent's own start is short and the same for all contenders.
AGENT = [sys.executable, "-I", "-S", str(PEERS / "agent.py")]

DIRECT = "direct"
DRAGOMAN = "dragoman"
"""As people run it: every event goes to the journal before it is shown."""
PLAIN = "no journal"
PYTHON_SDK = "python-sdk"
TYPESCRIPT_SDK = "typescript-sdk"

CONFIG = """\
default_agent = "bench"

[agents.bench]
kind = "acp"
command = {command}

[agents.shared]
kind = "acp"
command = {command}
share = "all"

[sessions]
journal = {journal}
"""


@dataclass(frozen=True)
class Contender:
    """A contender's column title and how its command line is found; `NotAvailable` leaves it out."""

    name: str
    title: str
    command: Callable[[], list[str]]


CONTENDERS = {
    contender.name: contender
    for contender in (
        Contender(DIRECT, "direct pipe", lambda: AGENT),
        Contender(DRAGOMAN, "dragoman", lambda: dragoman_command("bench")),
        Contender(PLAIN, "no journal", lambda: dragoman_command("bench")),
        Contender(
            PYTHON_SDK,
            "Python SDK",
            lambda: [*installs.python_sdk(), str(installs.RELAYS / "python_sdk.py"), *AGENT],
        ),
        Contender(TYPESCRIPT_SDK, "TypeScript SDK", lambda: [*installs.typescript_sdk(), *AGENT]),
    )
}


def dragoman_command(agent: str) -> list[str]:
    program = Path(sys.executable).parent / "dragoman"
    if not program.exists():
        raise ConversationError(f"{program} does not exist; run `make setup`")
    return [str(program), "acp", agent]


class Arena:
    """What all rounds of a run share: workspace, homes for Dragoman, tally of faults, length of a flood."""

    def __init__(self, seconds: float, rounds: int) -> None:
        self.seconds = seconds
        self.rounds = rounds
        self.faults: defaultdict[str, Faults] = defaultdict(Faults)
        self._stack = ExitStack()
        self._commands: dict[str, list[str]] = {}

    def __enter__(self) -> Arena:
        self._root = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="dragoman-bench-")))
        self.workspace = self._root / "workspace"
        self.workspace.mkdir()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._stack.close()

    def command(self, name: str) -> list[str]:
        if name not in self._commands:
            self._commands[name] = CONTENDERS[name].command()
        return self._commands[name]

    def home(self, journal: bool = True, name: str | None = None) -> Path:
        """Return the `DRAGOMAN_HOME` of this run, with or without a journal, or one of a row's own."""
        home = self._root / (name or ("journal" if journal else "plain"))
        if not home.exists():
            home.mkdir(mode=0o700)
            text = CONFIG.format(command=json.dumps(AGENT), journal=json.dumps(journal))
            (home / "config.toml").write_text(text)
        return home

    def start(self, command: list[str], journal: bool = True, home: Path | None = None) -> Conversation:
        """Start a process with an environment of its own, so that no settings of the user take part."""
        return Conversation(command, self.environment(home or self.home(journal)), self.workspace)

    def environment(self, home: Path) -> dict[str, str]:
        env = {key: value for key, value in os.environ.items() if not key.startswith("DRAGOMAN_")}
        return {**env, "DRAGOMAN_HOME": str(home)}

    def connect(self, name: str) -> Conversation:
        """Start a contender and run `initialize` with it."""
        conversation = self.start(self.command(name), journal=name != PLAIN)
        try:
            conversation.initialize()
        except BaseException:
            conversation.close()
            raise
        return conversation
