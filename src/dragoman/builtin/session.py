"""One session: its folder, mode, model, plan, tools and history."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.agents.custody import Custody
from dragoman.builtin.always_allowed import AlwaysAllowed
from dragoman.builtin.client import Client
from dragoman.builtin.files.workspace import Workspace
from dragoman.builtin.history import Facts, History
from dragoman.builtin.models.choice import NONE, Models
from dragoman.builtin.models.spent import Spent
from dragoman.builtin.modes import MODES, modes_state
from dragoman.builtin.running_commands import Commands
from dragoman.builtin.sandbox.box import Box
from dragoman.builtin.toolbox import Toolbox
from dragoman.builtin.tools.tool import fence_for
from dragoman.wire.errors import invalid_params

if TYPE_CHECKING:
    from dragoman.builtin.mcp.servers import McpServers
    from dragoman.builtin.models.llm import Conversation

Json = dict[str, Any]

TITLE_LENGTH = 80


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What all sessions of this process share."""

    client: Client
    custody: Custody
    models: Models
    boxes: Path | None = None
    """Where the files of sandbox mode are stored; None: in temporary folders until the session ends."""
    box_in_place: bool = False
    """Sandbox mode works on the workspace itself, by configuration."""


class Session:
    """The state of one session; turns are run by `turn`."""

    def __init__(
        self,
        id: str,
        facts: Facts,
        history: History,
        around: Surroundings,
    ) -> None:
        self.id = id
        self.cwd = facts.cwd
        self.client = around.client
        self.models = around.models
        self.mode = facts.mode
        self.model = facts.model
        self.title = facts.title
        self.history = history
        self.always_allowed = AlwaysAllowed()
        self.workspace = Workspace(id, facts.cwd, facts.roots, around.client)
        kept = around.boxes / id if around.boxes is not None else None
        self.box = Box(self.workspace, kept, in_place=around.box_in_place)
        self.commands = Commands(id, around.client, around.custody)
        self.toolbox = Toolbox(self)
        self.plan: list[Json] = []
        self.unsent_results: list[str] = []
        """Results of slash commands since the last prompt to the model, for its next prompt."""
        self.conversation: Conversation | None = None
        self.mcp: McpServers | None = None
        self.turn: asyncio.Task[str] | None = None
        self.cost: float | None = None
        self.spent = Spent()
        """By all requests of the turn that runs, or ran last."""
        self.used = 0
        """Tokens of the context window in use after the last answer."""

    async def files(self) -> Workspace:
        """The files that the mode works on: in sandbox mode those of the box."""
        return await self.box.workspace() if MODES[self.mode].boxed else self.workspace

    # -- updates to the client

    def update(self, update: Json, *, passing: bool = False) -> None:
        """Send an update to the client; a `passing` one is not recorded for replay."""
        self.client.update(self.id, update)
        if not passing:
            self.history.record(update)

    def say(self, text: str, *, kind: str = "agent_message_chunk", message: str | None = None) -> None:
        update = _chunk(kind, text)
        if message is not None:
            update["messageId"] = message
        self.update(update)

    def say_block(self, text: str, language: str = "") -> None:
        """Send text as a Markdown code block; its fences are separate chunks, which terminals leave out."""
        fence = fence_for(text)
        text = text if text.endswith("\n") else text + "\n"
        pieces = ((f"{fence}{language}\n", True), (text, False), (f"{fence}\n", True))
        for piece, is_fence in pieces:
            update = _chunk("agent_message_chunk", piece)
            if is_fence:
                update["_meta"] = {"dragoman": {"fence": True}}
            self.client.update(self.id, update)
        self.history.record(_chunk("agent_message_chunk", "".join(piece for piece, _ in pieces)))

    def set_plan(self, entries: Sequence[Json]) -> None:
        self.plan = [dict(entry) for entry in entries]
        self.update({"sessionUpdate": "plan", "entries": self.plan})

    def name_after(self, prompt: str) -> None:
        """Make the first prompt the title."""
        line = " ".join(prompt.split())
        if self.title is None and line:
            self.title = line if len(line) <= TITLE_LENGTH else line[: TITLE_LENGTH - 1] + "…"
            self.update({"sessionUpdate": "session_info_update", "title": self.title}, passing=True)

    # -- mode and options

    def state(self) -> Json:
        """The answer to `session/new`, `load` and `resume`, besides the id."""
        return {"modes": modes_state(self.mode), "configOptions": self.options()}

    def options(self) -> list[Json]:
        modes = [
            {"value": mode.id, "name": mode.name, "description": mode.description} for mode in MODES.values()
        ]
        models = [{"value": value, "name": name} for value, name in self.models.offers(self.model)]
        return [
            _select("mode", "Mode", "What the tools may do", self.mode, modes),
            _select("model", "Model", "The model that answers", self.model or NONE, models),
        ]

    def set_mode(self, mode: str) -> None:
        if mode not in MODES:
            raise invalid_params(
                f"Unknown mode: {mode!r}; there are {', '.join(MODES)}", "mode", modes=list(MODES)
            )
        if mode == self.mode:
            return
        self.mode = mode
        self.update({"sessionUpdate": "current_mode_update", "currentModeId": mode}, passing=True)
        self._options_changed()

    def set_model(self, model: str) -> None:
        """Takes effect with the next request to a model."""
        chosen = None if model == NONE else self.models.full_name(model)
        if chosen != self.model:
            self.model = chosen
            self._options_changed()

    def set_option(self, option: str, value: object) -> list[Json]:
        setters = {"mode": self.set_mode, "model": self.set_model}
        if option not in setters:
            raise invalid_params(f"Unknown option: {option!r}", "option", options=list(setters))
        if not isinstance(value, str) or not value:
            raise invalid_params(f"The value of {option!r} must be text", "value")
        setters[option](value)
        self.save()
        return self.options()

    def _options_changed(self) -> None:
        self.update({"sessionUpdate": "config_option_update", "configOptions": self.options()}, passing=True)

    # -- saving and closing

    def save(self) -> None:
        self.history.flush(
            Facts(
                cwd=self.cwd,
                roots=list(self.workspace.roots),
                mode=self.mode,
                model=self.model,
                title=self.title,
            )
        )

    async def close(self) -> None:
        """Stop the turn, commands and MCP servers, and save the session."""
        await self.cancel()
        await self.commands.close()
        if self.mcp is not None:
            await self.mcp.close()
        self.box.close()
        self.save()

    async def cancel(self) -> None:
        """Cancel the running turn and wait until it has ended."""
        turn = self.turn
        if turn is not None and not turn.done():
            turn.cancel()
            await asyncio.wait([turn])


def _chunk(kind: str, text: str) -> Json:
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}


def _select(id: str, name: str, description: str, value: str, options: list[Json]) -> Json:
    return {
        "id": id,
        "name": name,
        "description": description,
        "category": id,
        "type": "select",
        "currentValue": value,
        "options": options,
    }
