"""The base of adapters for agents with their own protocol: the part of ACP that is the same for all."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from dragoman.agents.adapter import Upstream, text_of
from dragoman.agents.native.json_file import JsonFile
from dragoman.agents.native.options import AUTO_RESUME, Options
from dragoman.agents.native.registry import Native
from dragoman.agents.process import AgentProcess
from dragoman.wire.errors import RpcError, session_not_found
from dragoman.wire.json_types import JsonObject, as_object, objects

log = logging.getLogger(__name__)

AUTO_RESUME_FILE = "auto-resume.json"
TASKS_TIMEOUT = 10.0
"""Seconds that the command may take to report open tasks."""
NO_TASKS = frozenset({b"", b"[]", b"{}", b"null", b"0", b"false"})
"""Outputs of the command that mean no open tasks."""
SHOWN_ERROR_BYTES = 1000
CONTINUE = "continue"
"""The prompt sent when an agent stops at its turn limit with open tasks."""


async def open_tasks(command: Sequence[str], cwd: str, environ: Mapping[str, str]) -> bool:
    """Whether the user's command reports open tasks (D-113): it succeeds and prints something, such as JSON."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=cwd,
            env=dict(environ),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except OSError as error:
        log.warning("continue_command cannot be started: %s", error)
        return False
    try:
        async with asyncio.timeout(TASKS_TIMEOUT):
            printed, errors = await process.communicate()
    except TimeoutError:
        process.kill()
        await process.wait()
        log.warning("continue_command took longer than %g s", TASKS_TIMEOUT)
        return False
    if process.returncode:
        said = errors[-SHOWN_ERROR_BYTES:].decode(errors="replace").strip()
        log.info("continue_command reports no tasks: it exited with code %s. %s", process.returncode, said)
        return False
    return printed.strip() not in NO_TASKS


class AutoResume:
    """By workspace: whether a new session of an agent continues the last one."""

    def __init__(self, folder: Path | None, agent: str, default: bool) -> None:
        self._kept = JsonFile(folder, AUTO_RESUME_FILE)
        self._agent = agent
        self._default = default

    def get(self, cwd: str) -> bool:
        return bool(as_object(self._kept.read().get(self._agent)).get(cwd, self._default))

    def set(self, cwd: str, on: bool) -> None:
        kept = self._kept.read()
        kept[self._agent] = {**as_object(kept.get(self._agent)), cwd: on}
        self._kept.write(kept)


class Conversation(Protocol):
    """One session of an adapter."""

    id: str

    @property
    def options(self) -> Options: ...

    async def prompt(self, blocks: object) -> JsonObject:
        """Run one turn; returns the answer to `session/prompt`."""

    def cancel(self) -> None:
        """Cancel the turn, if there is one."""

    async def steer(self, blocks: object) -> JsonObject:
        """Send a message to the running turn."""

    async def choose(self, option: str, value: str) -> None:
        """Change an option; raises `RpcError` for a value that is not offered."""

    def tell(self, update: JsonObject) -> None:
        """Send a `session/update` to the gateway."""

    def tell_commands(self) -> asyncio.Task[None] | None:
        """Send the slash commands to the gateway; returns the task that does, None if already done."""


STEER = "_dragoman/steer"
"""Our own method: a message for the running turn, with the params of a prompt."""
COMMANDS_TIMEOUT = 2.0
"""Seconds that the answer to a load waits for the commands, which should be sent before it."""
C = TypeVar("C", bound=Conversation)


class NativeAgent(ABC, Generic[C]):
    """Implements `AgentAdapter`, except for how a conversation is started and stored."""

    def __init__(self, native: Native, handle: Upstream) -> None:
        self.native = native
        self.handle = handle
        self.conversations: dict[str, C] = {}
        self._folders: dict[str, str] = {}
        self._cancelled: set[str] = set()
        self._auto_resume = AutoResume(native.state, native.name, native.config.auto_resume)
        self._model_readers: set[str] = set()
        """Sessions whose client uses `session/set_model`; they also get `current_model_update`."""
        self.requests: dict[str, Callable[[JsonObject], Awaitable[JsonObject]]] = {
            "initialize": self.initialize,
            "authenticate": self._authenticate,
            "session/new": self._new,
            "session/load": self._load,
            "session/resume": self._resume,
            "session/fork": self._fork,
            "session/list": self.list_sessions,
            "session/close": self._close,
            "session/delete": self._delete,
            "session/prompt": self._prompt,
            STEER: self._steer,
            "session/set_mode": self._set_mode,
            "session/set_model": self._set_model,
            "session/set_config_option": self._set_config_option,
        }

    # -- implemented by each adapter

    @abstractmethod
    async def initialize(self, params: JsonObject) -> JsonObject: ...

    @abstractmethod
    async def begin(self, params: JsonObject) -> C:
        """Start a new conversation."""

    @abstractmethod
    async def reopen(self, params: JsonObject, session_id: str, *, replay: bool) -> C:
        """Reopen a former conversation; with `replay` its history is sent as updates."""

    @abstractmethod
    async def branch(self, params: JsonObject, session_id: str) -> C:
        """Fork a conversation."""

    @abstractmethod
    async def list_sessions(self, params: JsonObject) -> JsonObject: ...

    @abstractmethod
    async def forget(self, session_id: str) -> None:
        """Delete the agent's own record of a session; does nothing if there is none."""

    @abstractmethod
    async def release(self, conversation: C) -> None:
        """Release the resources of a closed conversation."""

    async def restart_conversation(self, session_id: str) -> C | None:
        """Restart a conversation whose process ended while others go on; None if this is none of those."""
        return None

    @abstractmethod
    def programs(self) -> Iterable[AgentProcess]: ...

    @abstractmethod
    async def close(self) -> None: ...

    # -- AgentAdapter

    def cancel(self, params: JsonObject) -> None:
        conversation = self.conversations.get(str(params.get("sessionId")))
        if conversation is not None:
            self._cancelled.add(conversation.id)
            conversation.cancel()

    def tell_options(self, conversation: C, *changed: str) -> None:
        """Send updates about changed options: as modes, as models, and as config options."""
        options = conversation.options
        if "mode" in changed:
            conversation.tell({"sessionUpdate": "current_mode_update", "currentModeId": options.mode})
        if "model" in changed and conversation.id in self._model_readers:
            conversation.tell({"sessionUpdate": "current_model_update", "currentModelId": options.model})
        conversation.tell({"sessionUpdate": "config_option_update", "configOptions": options.config()})

    async def _authenticate(self, params: JsonObject) -> JsonObject:
        """Does nothing: the user logs in by a terminal or a variable, and the next prompt shows whether it worked."""
        return {}

    async def _new(self, params: JsonObject) -> JsonObject:
        former = await self._last_session(text_of(params, "cwd"))
        if former is None:
            return self._new_session(await self.begin(params), params)
        try:
            conversation = await self.branch(params, former)
        except RpcError as error:
            log.warning("the last session cannot be resumed: %s", error, extra={"agent_session": former})
            return self._new_session(await self.begin(params), params)
        # A branch: the former session stays as it is, and may be live elsewhere.
        told = self._new_session(conversation, params)
        return {**told, "_meta": {"dragoman": {"resumedFrom": former}}}

    async def _load(self, params: JsonObject) -> JsonObject:
        return await self._reopen_session(params, replay=True)

    async def _resume(self, params: JsonObject) -> JsonObject:
        return await self._reopen_session(params, replay=False)

    async def _reopen_session(self, params: JsonObject, *, replay: bool) -> JsonObject:
        """Reopen a session; commands are sent after the history, before the answer: the client knows the id."""
        conversation = await self.reopen(params, text_of(params, "sessionId"), replay=replay)
        told = self._session_state(conversation, params)
        telling = conversation.tell_commands()
        if telling is not None:
            await asyncio.wait((telling,), timeout=COMMANDS_TIMEOUT)
        return told

    async def _fork(self, params: JsonObject) -> JsonObject:
        return self._new_session(await self.branch(params, text_of(params, "sessionId")), params)

    async def _last_session(self, cwd: str) -> str | None:
        if self.native.boxed or not self._auto_resume.get(cwd):
            return None
        listed = objects((await self.list_sessions({"cwd": cwd})).get("sessions"))
        last = max(listed, key=lambda each: str(each.get("updatedAt", "")), default={})
        return str(last["sessionId"]) if last else None

    async def _close(self, params: JsonObject) -> JsonObject:
        session_id = text_of(params, "sessionId")
        conversation = self.conversations.pop(session_id, None)
        self._folders.pop(session_id, None)
        self._cancelled.discard(session_id)
        self._model_readers.discard(session_id)
        if conversation is not None:
            await self.release(conversation)
        return {}

    async def _delete(self, params: JsonObject) -> JsonObject:
        await self._close(params)
        await self.forget(text_of(params, "sessionId"))
        return {}

    async def _steer(self, params: JsonObject) -> JsonObject:
        return await (await self._conversation(params)).steer(params.get("prompt"))

    async def _prompt(self, params: JsonObject) -> JsonObject:
        self._cancelled.discard(text_of(params, "sessionId"))
        conversation = await self._conversation(params)
        if conversation.id in self._cancelled:  # during the restart
            return {"stopReason": "cancelled"}
        result = await conversation.prompt(params.get("prompt"))
        for _ in range(self.native.config.continue_limit):
            if result.get("stopReason") != "max_turn_requests" or not await self._has_tasks(conversation.id):
                break
            if conversation.id in self._cancelled:
                return {**result, "stopReason": "cancelled"}
            word = {"type": "text", "text": CONTINUE}
            conversation.tell({"sessionUpdate": "user_message_chunk", "content": word})
            result = await conversation.prompt([word])
        return result

    async def _has_tasks(self, session_id: str) -> bool:
        command, cwd = self.native.config.continue_command, self._folders.get(session_id)
        if not command or self.native.boxed or cwd is None:
            return False
        return await open_tasks(command, cwd, self.native.environ)

    async def _set_mode(self, params: JsonObject) -> JsonObject:
        conversation = await self._conversation(params)
        await conversation.choose("mode", text_of(params, "modeId"))
        self.tell_options(conversation)
        return {}

    async def _set_model(self, params: JsonObject) -> JsonObject:
        conversation = await self._conversation(params)
        self._model_readers.add(conversation.id)
        await conversation.choose("model", text_of(params, "modelId"))
        self.tell_options(conversation, "model")
        return {}

    async def _set_config_option(self, params: JsonObject) -> JsonObject:
        conversation, option = await self._conversation(params), text_of(params, "configId")
        options = conversation.options
        if option == AUTO_RESUME.id:
            self._set_auto_resume(conversation, text_of(params, "value"))
        else:
            await conversation.choose(option, text_of(params, "value"))
        if option == "mode":
            conversation.tell({"sessionUpdate": "current_mode_update", "currentModeId": options.mode})
        if option == "model" and conversation.id in self._model_readers:
            conversation.tell({"sessionUpdate": "current_model_update", "currentModelId": options.model})
        return {"configOptions": options.config()}

    def _set_auto_resume(self, conversation: C, value: str) -> None:
        conversation.options.check(AUTO_RESUME.id, value)
        conversation.options.current[AUTO_RESUME.id] = value
        self._auto_resume.set(self._folders[conversation.id], value == "true")

    # -- conversations

    def _new_session(self, conversation: C, params: JsonObject) -> JsonObject:
        """The answer for a new session; commands are sent after it, since the client does not know the id before."""
        loop = asyncio.get_running_loop()
        loop.call_soon(lambda: loop.call_soon(conversation.tell_commands))
        return {"sessionId": conversation.id, **self._session_state(conversation, params)}

    def _session_state(self, conversation: C, params: JsonObject) -> JsonObject:
        cwd = self._folders[conversation.id] = text_of(params, "cwd")
        if not self.native.boxed:
            conversation.options.current[AUTO_RESUME.id] = str(self._auto_resume.get(cwd)).lower()
        return conversation.options.state()

    async def _conversation(self, params: JsonObject) -> C:
        session_id = text_of(params, "sessionId")
        conversation = self.conversations.get(session_id) or await self.restart_conversation(session_id)
        if conversation is None:
            raise session_not_found(session_id)
        return conversation
