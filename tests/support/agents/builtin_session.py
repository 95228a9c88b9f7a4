"""A session of the built-in agent in this process, with a client that answers as the test says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman.agents.custody import Custody
from dragoman.builtin.client import Client
from dragoman.builtin.history import Facts, History
from dragoman.builtin.models.choice import ModelConfig, Models
from dragoman.builtin.session import Session, Surroundings
from dragoman.builtin.toolbox import Outcome

Json = dict[str, Any]


class Person(Client):
    """The client: it keeps what it is told, and says `answer` to every question."""

    def __init__(self, answer: str | None) -> None:
        self.capabilities: Json = {}
        self.answer = answer
        self.reason: str | None = None
        self.updates: list[Json] = []
        self.questions: list[Json] = []
        self.buffers: dict[str, str] = {}
        """Unsaved text of an editor, by path; only used with the fs capabilities."""

    def update(self, session: str, update: Mapping[str, Any]) -> None:
        self.updates.append(dict(update))

    async def wait_writable(self) -> None:
        pass

    async def ask_why(
        self, session: str, tool_call: Json, options: list[Json], *, unasked: bool | str = False
    ) -> tuple[str | None, str | None]:
        self.questions.append({"toolCall": tool_call, "options": options})
        return self.answer, self.reason

    async def read_text(self, session: str, path: str) -> str:
        return self.buffers[path] if path in self.buffers else Path(path).read_text()

    async def write_text(self, session: str, path: str, content: str) -> None:
        self.buffers[path] = content


class BuiltinSession:
    """A session, its client, and its tools."""

    def __init__(
        self,
        folder: Path,
        custody: Custody,
        *,
        mode: str = "full",
        answer: str | None = "allow_once",
        **surroundings: Any,
    ) -> None:
        self.person = Person(answer)
        around = Surroundings(self.person, custody, Models(ModelConfig(), {}), **surroundings)
        facts = Facts(cwd=str(folder), roots=[str(folder)], mode=mode)
        self.session = Session("bi_test", facts, History(None), around)

    async def use(self, tool: str, **arguments: Any) -> Outcome:
        return await self.session.toolbox.call(tool, arguments)

    @property
    def last_call(self) -> Json:
        """The newest tool call, with all its updates applied."""
        calls: dict[str, Json] = {}
        for update in self.person.updates:
            if "toolCallId" in update:
                calls.setdefault(update["toolCallId"], {}).update(update)
        return list(calls.values())[-1]
