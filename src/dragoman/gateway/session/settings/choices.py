"""Modes, models and options set in a session: sent to all clients in every dialect, reapplied to a restarted agent."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dragoman.gateway.json_types import JsonObject, decode_object, encode, read_object
from dragoman.gateway.rewriting import dialects
from dragoman.gateway.rewriting.updates import update_line
from dragoman.gateway.session.binding import Binding
from dragoman.gateway.session.settings.options import MODE, MODEL, UPDATE, WORDS, Options
from dragoman.gateway.session.stream import Stream
from dragoman.gateway.session.updates import AgentUpdates
from dragoman.rpc.request import Reply, Request
from dragoman.wire import limits

if TYPE_CHECKING:
    from dragoman.gateway.access.client import Client
    from dragoman.gateway.agent import AgentConnection

log = logging.getLogger(__name__)

APPLY_TIMEOUT = 10.0
"""Seconds that a restarted agent has to accept each setting."""
SET_MODE, SET_MODEL, SET_OPTION = "session/set_mode", "session/set_model", "session/set_config_option"
# The member of the params that names the setting: the last value set under a name counts.
NAMED_BY = {SET_MODE: None, SET_MODEL: None, SET_OPTION: "configId"}
CATEGORY_OF = {SET_MODE: (MODE, "modeId"), SET_MODEL: (MODEL, "modelId")}


@dataclass(frozen=True, slots=True)
class AskedMode:
    mode: object
    former: object
    by: str


class Choices:
    def __init__(self, stream: Stream, options: Options, binding: Binding, updates: AgentUpdates) -> None:
        self._stream = stream
        self._options = options
        self._binding = binding
        self._updates = updates
        self._made: dict[tuple[str, str], JsonObject] = {}
        self._granted: object = None
        self._asked: AskedMode | None = None
        """The mode that was asked for and that the agent has not reported or accepted yet."""
        self._model_words = False
        """A client has used `session/set_model`: changes of the model are also sent as `current_model_update`."""

    def save(self, request: Request, method: str, params: bytes, reply: Reply) -> object:
        """Save a setting that the agent accepted, for later clients and for a restarted agent; returns its value."""
        self._model_words = self._model_words or request.method == SET_MODEL
        if method not in NAMED_BY:
            return None
        chosen = {
            key: value for key, value in decode_object(params).items() if key not in ("sessionId", "_meta")
        }
        name = str(chosen.get(NAMED_BY[method] or "")) if NAMED_BY[method] else ""
        if len(name) > limits.PEER_ID_LENGTH or (
            len(self._made) >= limits.CHOICES and (method, name) not in self._made
        ):
            log.warning("a setting too many: the next agent is not told", extra={"session": self._stream.id})
        else:
            self._made[method, name] = chosen
        self._stream.record("setting", method=method, **chosen)
        self._reflect(request, method, chosen, reply)
        return chosen.get("value" if method == SET_OPTION else CATEGORY_OF[method][1])

    def grant(self, mode: object, by: str) -> None:
        """Let `by` switch to this mode, which the agent reports before or after it answers."""
        self._granted = mode
        self._asked = AskedMode(mode, self._options.current().get(MODE), by)

    def take_asked(self, mode: object) -> AskedMode | None:
        """Who asked for a mode that holds now; None if no one did, or if this was taken already."""
        if self._asked is None or self._asked.mode != mode:
            return None
        asked, self._asked = self._asked, None
        return asked

    def is_granted(self, mode: object) -> bool:
        return mode == self._granted

    async def switch_back(self, agent: AgentConnection, mode: str) -> None:
        """Set the mode again that held before the agent switched by itself; report if it does not accept."""
        option = self._options.option(MODE)
        if MODE in self._options.native or option is None:
            method, chosen = SET_MODE, {"modeId": mode}
        else:
            method, chosen = SET_OPTION, {"configId": str(option.get("id")), "value": mode}
        self.grant(mode, "policy")
        params = encode({"sessionId": self._binding.agent_session_id, **chosen})
        reply = await agent.ask(method, params, APPLY_TIMEOUT)
        if not reply.ok:
            error = decode_object(reply.error).get("message")
            self._stream.notice(f"The agent did not switch back to the mode {mode!r}: {error}", "error")
            return
        if self._options.choose(MODE, mode):
            self._tell_options()
        self._tell_older(MODE, mode)

    def agent_chose(self, category: str, value: object) -> None:
        """The agent switched its mode or model by itself, and reported that in the older dialect."""
        method = SET_MODE if category == MODE else SET_MODEL
        option = self._options.option(category)
        if (method, "") in self._made:
            self._made[method, ""] = {CATEGORY_OF[method][1]: value}
        if option is not None and (SET_OPTION, str(option.get("id"))) in self._made:
            self._made[SET_OPTION, str(option.get("id"))]["value"] = value
        if self._options.choose(category, value):
            self._tell_options()

    def agent_sent_options(self, former: dict[str, object]) -> None:
        """The agent sent all its options; `former` has the values chosen before."""
        self._keep()
        for category, value in self._options.current().items():
            if former.get(category) != value:
                self._tell_older(category, value)

    async def apply(self, agent: AgentConnection, may_switch: Callable[[str], Awaitable[bool]]) -> None:
        """Reapply settings to a restarted agent, a mode only if it is still allowed; report the ones it rejects."""
        self._granted = None
        for (method, name), chosen in list(self._made.items()):
            mode = self._mode_in(method, name, chosen)
            if mode is not None and not await may_switch(mode):
                del self._made[method, name]
                continue
            if mode is not None:
                self.grant(mode, "restart")
            params = encode({"sessionId": self._binding.agent_session_id, **chosen})
            reply = await agent.ask(method, params, APPLY_TIMEOUT)
            if not reply.ok:
                what = name or ", ".join(str(value) for value in chosen.values())
                error = decode_object(reply.error).get("message")
                self._stream.notice(
                    f"The agent was started anew and did not accept the setting {what}: {error}"
                )

    def _mode_in(self, method: str, name: str, chosen: JsonObject) -> str | None:
        """The mode that a setting switches to; None if it is about something else."""
        option = self._options.option(MODE)
        if method == SET_MODE:
            return str(chosen.get("modeId"))
        named = method == SET_OPTION and option is not None and name == str(option.get("id"))
        return str(chosen.get("value")) if named else None

    def _reflect(self, request: Request, method: str, chosen: JsonObject, reply: Reply) -> None:
        """Send a change to all clients: not every agent does so itself."""
        author, options = self._author(request), self._options
        if method in CATEGORY_OF:
            category, member = CATEGORY_OF[method]
            if options.choose(category, chosen.get(member)):
                self._tell_options()
            self._tell_older(category, chosen.get(member), author if request.method == method else None)
            return
        told = read_object(reply.result)
        dialects.read_config_options(told)
        listed = told.get("configOptions")
        if isinstance(listed, list):
            former = options.current()
            options.replace(listed)
            self._tell_options(author if request.method == method else None)
            self.agent_sent_options(former)

    def _tell_older(self, category: str, value: object, author: Client | None = None) -> None:
        known = self._options.in_older_words(category, value)
        if known and (category == MODE or self._model_words):
            words = WORDS[category]
            self._tell({"sessionUpdate": words.update, words.current: value}, author)
        self._keep()

    def _tell_options(self, author: Client | None = None) -> None:
        self._keep()
        options = self._options.full
        self._tell({"sessionUpdate": UPDATE, "configOptions": options}, author)

    def _tell(self, update: JsonObject, author: Client | None) -> None:
        self._updates.note(str(update["sessionUpdate"]), update_line(self._stream.id, update))
        if not self._binding.follows:
            self._stream.publish(update, author)

    def _keep(self) -> None:
        self._options.write()

    def _author(self, request: Request) -> Client | None:
        clients = (attachment.client for attachment in self._stream.attachments)
        return next((client for client in clients if client.peer is request.peer), None)
