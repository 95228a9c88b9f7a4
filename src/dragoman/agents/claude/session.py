"""One `claude` process and the conversation in it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from dragoman.agents.adapter import Spawn, Upstream
from dragoman.agents.claude import hooks, options, prompt, result
from dragoman.agents.claude.control import Control
from dragoman.agents.claude.options import ClaudeOptions
from dragoman.agents.claude.questions import Questions
from dragoman.agents.claude.spending import Spending
from dragoman.agents.claude.stream import Stream
from dragoman.agents.native.usage import tell_with, with_usage
from dragoman.agents.process import AgentProcess
from dragoman.gateway.ports.agent import AgentEnd, AgentUnavailable
from dragoman.log import redact_prompt
from dragoman.rpc.link import LinkHandler
from dragoman.wire import limits
from dragoman.wire.errors import RpcError, internal, invalid_request, session_not_found
from dragoman.wire.framing import Frame
from dragoman.wire.json_types import JsonObject, as_object

if TYPE_CHECKING:
    from dragoman.agents.claude.agent import ClaudeAgent

log = logging.getLogger(__name__)

FLAGS = (
    "-p",
    "--verbose",
    *("--input-format", "stream-json"),
    *("--output-format", "stream-json"),
    "--include-partial-messages",
    *("--permission-prompt-tool", "stdio"),
)
START_PATIENCE = 60.0
"""Seconds to wait for a program that sends nothing."""
NEXT_STEP = "Correct its settings (CLAUDE_CONFIG_DIR or ~/.claude, settings.json), or see what `claude -p hello` says."
SETTINGS = {"mode": "set_permission_mode", "model": "set_model", "effort": "apply_flag_settings"}


class Session(LinkHandler):
    """Implements `Conversation`; reads the lines of its process."""

    def __init__(
        self,
        id: str,
        handle: Upstream,
        owner: ClaudeAgent,
        *,
        bypass: bool = False,
        mode: str = options.DEFAULT,
    ) -> None:
        self.id = id
        self.program: AgentProcess | None = None
        self.options = ClaudeOptions({})
        self._handle = handle
        self._owner = owner
        self._bypass = bypass
        self._mode = mode
        self.stream = Stream()
        self._commands: JsonObject = {}
        self._starting: asyncio.Future[JsonObject] | None = None
        self._opening: asyncio.Task[None] | None = None
        self._trouble: RpcError | None = None
        self._prepared: asyncio.Future[JsonObject] | None = None
        self._turn: asyncio.Future[JsonObject] | None = None
        self._cancelled = False
        self._questions = Questions(id, handle, self)
        self._context: JsonObject = {}
        self._spending = Spending()
        self._garbage = 0
        self._ended = False
        self._readers: dict[str, Callable[[JsonObject], None]] = {
            "control_response": lambda line: self.control.answered(line),
            "control_request": self._questions.asked,
            "control_cancel_request": self._questions.withdrawn,
            "result": self._result,
            "system": self._system,
        }
        self._news: dict[str, Callable[[JsonObject], None]] = {
            "init": self._initialized,
            "status": self._status,
            "api_retry": self._retries,
            "auth_required": self._auth_required,
            "hook_response": self._hook,
        }

    # -- start and stop

    async def start(
        self,
        spawn: Spawn,
        arguments: Sequence[str],
        cwd: str | None,
        servers: JsonObject,
        offer: JsonObject | None = None,
    ) -> None:
        """Start the process and send `initialize`; raises `RpcError`.

        With an `offer` (the last known models) it returns at once; the first request that needs the answer waits.
        """
        self._starting = asyncio.get_running_loop().create_future()
        try:
            self.program = await spawn([*FLAGS, *arguments], self, cwd)
        except AgentUnavailable as error:
            raise internal(str(error), "agent_unavailable", agent=self._handle.name) from error
        self.control = Control(self.program.send)
        self.control.ask("initialize", hooks=hooks.REGISTRATION).add_done_callback(self._started)
        if "--resume" in arguments:
            self._spending.resume()
            self.control.ask("get_usage", skip_behaviors=True).add_done_callback(self._has_spent)
        if offer is None:
            await self._open(servers)
            return
        self.options = ClaudeOptions(offer, bypass=self._bypass, mode=self._mode)
        self._opening = self._handle.spawn(self._open_late(servers))

    async def _open(self, servers: JsonObject) -> None:
        assert self._starting is not None
        try:
            async with asyncio.timeout(START_PATIENCE):
                initialized = await self._starting
        except TimeoutError as error:
            await self.stop()
            raise self._failed(f"said nothing for {START_PATIENCE:g} s") from error
        except RpcError:
            await self.stop()
            raise
        self._starting = None
        self.options.update(ClaudeOptions(initialized, bypass=self._bypass, mode=self._mode))
        self._commands = options.commands(initialized)
        self._owner.opened(initialized)
        if servers:
            # Over the pipe, not as an argument: it may hold secrets, and arguments are public.
            self._prepared = self.control.ask("mcp_set_servers", servers=servers)
            self._prepared.add_done_callback(_log_failure)

    async def _open_late(self, servers: JsonObject) -> None:
        """Complete the start after the client got its session; `_wait_opened` raises the error, if any."""
        told = self.options.models
        try:
            await self._open(servers)
        except RpcError as error:
            self._trouble = error
            log.warning("claude did not start: %s", error, extra={"agent_session": self.id})
            self._owner.unopened(self)
            return
        if self.options.models != told:
            self._owner.tell_options(self, "model")
        self.tell_commands()

    async def _wait_opened(self) -> None:
        """Wait until the process has answered `initialize`; raises `RpcError` if it did not start."""
        if self._opening is None:
            return
        await asyncio.wait([self._opening])
        if self._trouble is not None or self._opening.cancelled():
            raise self._trouble or self._failed("was closed")

    def tell_commands(self) -> asyncio.Task[None] | None:
        if self._commands:  # else they are sent once known
            self.tell(self._commands)
        return None

    async def stop(self) -> None:
        self._ended = True
        if self._opening is not None and self._opening is not asyncio.current_task():
            self._opening.cancel()
        self._questions.cancel()
        if self.program is not None:
            await self.program.stop()

    # -- requests

    async def prompt(self, blocks: object) -> JsonObject:
        if self._turn is not None:
            raise invalid_request("A prompt is already in flight in this session", "prompt_in_flight")
        turn: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._turn = turn
        self._cancelled = False
        try:
            await self._wait_opened()
            await self._wait_for_servers()
            if self._cancelled:
                return {"stopReason": "cancelled"}
            self.control.write(prompt.user_line(self.id, blocks))
            return await turn
        finally:
            self._turn = None

    async def steer(self, blocks: object) -> JsonObject:
        """Send a line during a turn; `claude` makes it part of that turn: two lines, one result."""
        if self._turn is None:
            raise invalid_request("No turn runs in this session: send a prompt", "no_turn")
        await self._wait_opened()
        self.control.write(prompt.user_line(self.id, blocks))
        return {}

    def cancel(self) -> None:
        if self._turn is None or self._cancelled:
            return
        self._cancelled = True
        if self._starting is None:  # else nothing to interrupt yet
            self.control.ask("interrupt").add_done_callback(_log_failure)
        self._questions.cancel()

    async def choose(self, option: str, value: str) -> None:
        """Change the mode, the model or the effort."""
        await self._wait_opened()
        self.options.check(option, value)
        members: JsonObject = {"mode": value} if option == "mode" else {"model": value}
        if option == "effort":
            members = {"settings": {"effortLevel": None if value == options.DEFAULT else value}}
        former = dict(self.options.current)
        self.options.current[option] = value  # before claude reports it as a change
        try:
            await self.control.ask(SETTINGS[option], **members)
        except RpcError:
            self.options.current = former
            raise
        self.options.check_effort()

    # -- LinkHandler

    def link_messages(self, frames: list[Frame]) -> None:
        for frame in frames:
            try:
                line = msgspec.json.decode(frame) if isinstance(frame, bytes) else None
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                line = None
            if isinstance(line, dict):
                self._read(line)
            else:
                self._is_garbage(frame)

    def link_closed(self, reason: str | None) -> None:
        end = self.program.end() if self.program is not None else AgentEnd()
        error = self._failed(end.describe())
        if self._starting is not None and not self._starting.done():
            self._starting.set_exception(error)
            return
        self.control.closed(error)
        self._questions.cancel()
        if not self._ended:
            self._ended = True
            self._owner.lost(self, end)
        if self._turn is not None and not self._turn.done():
            self._turn.set_exception(error)

    # -- lines

    def _read(self, line: JsonObject) -> None:
        reader = self._readers.get(str(line.get("type")))
        if reader is not None:
            reader(line)
            return
        self._follow_usage(line)
        for update in self.stream.read(line):
            self.tell(update)

    def _is_garbage(self, frame: object) -> None:
        self._garbage += 1
        log.warning(
            "line of claude is not JSON, skipped: %s",
            redact_prompt(repr(frame)[:200]),
            extra={"count": self._garbage},
        )
        if self._garbage == limits.GARBAGE_LINES and self.program is not None:
            self.program.close()

    def _follow_usage(self, line: JsonObject) -> None:
        """Note the tokens of the last request, which are the size of the context."""
        event = as_object(line.get("event"))
        if event.get("type") == "message_delta" and not line.get("parent_tool_use_id"):
            self._context = as_object(event.get("usage"))

    def _started(self, answer: asyncio.Future[JsonObject]) -> None:
        error = None if answer.cancelled() else answer.exception()
        if self._starting is None or self._starting.done():
            return
        if error is not None:
            self._starting.set_exception(error)
        else:
            self._starting.set_result(answer.result())

    def _has_spent(self, answer: asyncio.Future[JsonObject]) -> None:
        if not answer.cancelled() and answer.exception() is None:
            self._spending.begin_with(answer.result())

    def _result(self, line: JsonObject) -> None:
        if self._starting is not None and not self._starting.done():
            self._starting.set_exception(result.failure(line))  # `--resume` of an unknown id
            return
        for update in self.stream.end_turn():
            self.tell(update)
        usage = result.usage_update(line, self._context)
        if usage is not None:
            self.tell(usage)
        turn, used = self._turn, self._spending.read(line)
        if turn is None or turn.done():
            return
        try:
            turn.set_result(with_usage(result.read(line, cancelled=self._cancelled), used))
        except RpcError as error:
            turn.set_exception(tell_with(error, used))

    def _system(self, line: JsonObject) -> None:
        news = self._news.get(str(line.get("subtype")))
        if news is not None:
            news(line)

    def _initialized(self, line: JsonObject) -> None:
        self._status(line)
        if self.options.saw_model(str(line.get("model"))):
            self._owner.tell_options(self, "model")

    def _status(self, line: JsonObject) -> None:
        mode = line.get("permissionMode")
        if isinstance(mode, str) and mode in options.MODES and mode != self.options.mode:
            self.options.current["mode"] = mode
            self._owner.tell_options(self, "mode")

    def _retries(self, line: JsonObject) -> None:
        """Report that claude retries a request, so that the user knows why it is silent."""
        names = {
            "attempt": "attempt",
            "max_retries": "maxRetries",
            "error_status": "status",
            "error": "error",
        }
        facts = {ours: line[theirs] for theirs, ours in names.items() if theirs in line}
        meta = {"dragoman": {"state": "retrying", **facts}}
        self.tell({"sessionUpdate": "session_info_update", "_meta": meta})

    def _hook(self, line: JsonObject) -> None:
        """Log the output of a user's hook; a failed one as a warning."""
        code = line.get("exit_code")
        printed = "\n".join(str(line[name]).strip() for name in ("stdout", "stderr") if line.get(name))
        level = logging.WARNING if code else logging.INFO
        facts = {"agent_session": self.id, "hook": line.get("hook_name"), "exit_code": code}
        log.log(level, "hook of claude: %s", printed or "(no output)", extra=facts)

    def _auth_required(self, line: JsonObject) -> None:
        if self._turn is not None and not self._turn.done():
            self._turn.set_exception(result.auth_required(str(line.get("content") or "")))

    # -- helpers

    async def _wait_for_servers(self) -> None:
        """Wait for the MCP servers, whose tools the first turn needs; log those that do not start."""
        prepared, self._prepared = self._prepared, None
        if prepared is None:
            return
        try:
            errors = as_object((await prepared).get("errors"))
        except RpcError as error:
            errors = {"all": error.message}
        for name, why in errors.items():
            log.warning("MCP server %s does not run: %s", name, why, extra={"agent_session": self.id})

    def _failed(self, how: str) -> RpcError:
        tail = self.program.end().stderr_tail.strip() if self.program is not None else ""
        if "No conversation found" in tail:
            return session_not_found(self.id)
        said = f". Its last lines on stderr:\n{tail}" if tail else ""
        step = f"\n{NEXT_STEP}" if self._starting is not None else ""
        name = self._handle.name
        return internal(f"The agent {name} {how}{said}{step}", "agent_exited", agent=name)

    def tell(self, update: JsonObject) -> None:
        if update:
            self._handle.update(self.id, update)


def _log_failure(answer: asyncio.Future[JsonObject]) -> None:
    if not answer.cancelled() and answer.exception() is not None:
        log.warning("claude: %s", answer.exception())
