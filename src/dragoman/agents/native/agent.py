"""An agent with a tongue of its own: the part of ACP that is the same for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Generic, Protocol, TypeVar

from dragoman.agents.acp import AcpAgent
from dragoman.agents.adapter import AdapterHandle, text_of
from dragoman.agents.json_types import JsonObject
from dragoman.agents.native.native import Native
from dragoman.agents.native.options import Options
from dragoman.wire.errors import session_not_found


class Conversation(Protocol):
    """One session, as its agent has it."""

    id: str
    options: Options

    async def prompt(self, blocks: object) -> JsonObject:
        """One turn; the answer to `session/prompt`."""

    def cancel(self) -> None:
        """End the turn, if there is one."""

    async def steer(self, blocks: object) -> JsonObject:
        """Say something to the turn that runs."""

    async def choose(self, option: str, value: str) -> None:
        """Change one of its options; raises `RpcError` for what is not offered."""

    def tell(self, update: JsonObject) -> None:
        """Tell the gateway something about it."""

    def tell_commands(self) -> None:
        """What may be typed behind a slash."""


STEER = "_dragoman/steer"
"""Our own method: more words for a turn that runs, with the params of a prompt."""
C = TypeVar("C", bound=Conversation)


class NativeAgent(Generic[C]):
    """Implements `Tongue`, but for how a conversation begins and is kept."""

    def __init__(self, native: Native, handle: AdapterHandle) -> None:
        self.native = native
        self.handle = handle
        self.conversations: dict[str, C] = {}
        self._model_readers: set[str] = set()
        """Sessions whose client uses `session/set_model`: it hears of models in those words."""
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

    # -- an adapter's own

    async def initialize(self, params: JsonObject) -> JsonObject:
        raise NotImplementedError

    async def begin(self, params: JsonObject) -> C:
        """A new conversation."""
        raise NotImplementedError

    async def reopen(self, params: JsonObject, session_id: str, *, replay: bool) -> C:
        """A former one, told again if `replay`."""
        raise NotImplementedError

    async def branch(self, params: JsonObject, session_id: str) -> C:
        """A new one that begins where another is now."""
        raise NotImplementedError

    async def list_sessions(self, params: JsonObject) -> JsonObject:
        raise NotImplementedError

    async def forget(self, session_id: str) -> None:
        """Its own record of a session; one that is not there is forgotten already."""
        raise NotImplementedError

    async def let_go(self, conversation: C) -> None:
        """It is closed."""
        raise NotImplementedError

    def programs(self) -> Iterable[AcpAgent]:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError

    # -- Tongue

    def cancel(self, params: JsonObject) -> None:
        conversation = self.conversations.get(str(params.get("sessionId")))
        if conversation is not None:
            conversation.cancel()

    def tell_options(self, conversation: C, *changed: str) -> None:
        """What has changed, in the words of modes, of models, and of config options."""
        options = conversation.options
        if "mode" in changed:
            conversation.tell({"sessionUpdate": "current_mode_update", "currentModeId": options.mode})
        if "model" in changed and conversation.id in self._model_readers:
            conversation.tell({"sessionUpdate": "current_model_update", "currentModelId": options.model})
        conversation.tell({"sessionUpdate": "config_option_update", "configOptions": options.config()})

    async def _authenticate(self, params: JsonObject) -> JsonObject:
        """The login happens in a terminal, or is an environment variable; the next prompt tells whether it helped."""
        return {}

    async def _new(self, params: JsonObject) -> JsonObject:
        return self._named(await self.begin(params))

    async def _load(self, params: JsonObject) -> JsonObject:
        return self._told(await self.reopen(params, text_of(params, "sessionId"), replay=True))

    async def _resume(self, params: JsonObject) -> JsonObject:
        return self._told(await self.reopen(params, text_of(params, "sessionId"), replay=False))

    async def _fork(self, params: JsonObject) -> JsonObject:
        return self._named(await self.branch(params, text_of(params, "sessionId")))

    async def _close(self, params: JsonObject) -> JsonObject:
        conversation = self.conversations.pop(text_of(params, "sessionId"), None)
        if conversation is not None:
            await self.let_go(conversation)
        return {}

    async def _delete(self, params: JsonObject) -> JsonObject:
        await self._close(params)
        await self.forget(text_of(params, "sessionId"))
        return {}

    async def _steer(self, params: JsonObject) -> JsonObject:
        return await self._conversation(params).steer(params.get("prompt"))

    async def _prompt(self, params: JsonObject) -> JsonObject:
        return await self._conversation(params).prompt(params.get("prompt"))

    async def _set_mode(self, params: JsonObject) -> JsonObject:
        conversation = self._conversation(params)
        await conversation.choose("mode", text_of(params, "modeId"))
        self.tell_options(conversation)
        return {}

    async def _set_model(self, params: JsonObject) -> JsonObject:
        conversation = self._conversation(params)
        self._model_readers.add(conversation.id)
        await conversation.choose("model", text_of(params, "modelId"))
        self.tell_options(conversation, "model")
        return {}

    async def _set_config_option(self, params: JsonObject) -> JsonObject:
        conversation, option = self._conversation(params), text_of(params, "configId")
        options = conversation.options
        await conversation.choose(option, text_of(params, "value"))
        if option == "mode":
            conversation.tell({"sessionUpdate": "current_mode_update", "currentModeId": options.mode})
        if option == "model" and conversation.id in self._model_readers:
            conversation.tell({"sessionUpdate": "current_model_update", "currentModelId": options.model})
        return {"configOptions": options.config()}

    # -- conversations

    def _named(self, conversation: C) -> JsonObject:
        return {"sessionId": conversation.id, **self._told(conversation)}

    def _told(self, conversation: C) -> JsonObject:
        """The commands follow the answer: before it the client does not know the session."""
        loop = asyncio.get_running_loop()
        loop.call_soon(lambda: loop.call_soon(conversation.tell_commands))
        return conversation.options.state()

    def _conversation(self, params: JsonObject) -> C:
        session_id = text_of(params, "sessionId")
        conversation = self.conversations.get(session_id)
        if conversation is None:
            raise session_not_found(session_id)
        return conversation
