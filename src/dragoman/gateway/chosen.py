"""What people chose in a session: its mode, model and options, remembered so that a new agent process is told again."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from dragoman.gateway.json_types import JsonObject, as_object, decode_object, encode
from dragoman.gateway.updates import update_line
from dragoman.rpc.peer import Reply, Request

if TYPE_CHECKING:
    from dragoman.gateway.agent import AgentConnection
    from dragoman.gateway.session import Session

log = logging.getLogger(__name__)

APPLY_TIMEOUT = 10.0
"""Seconds an agent has for each choice that it is told again."""
# Which member of the params names the choice: the last one made under a name counts.
NAMED_BY = {"session/set_mode": None, "session/set_model": None, "session/set_config_option": "configId"}
MODE, OPTION = "session/set_mode", "session/set_config_option"
MODE_UPDATE, OPTION_UPDATE = "current_mode_update", "config_option_update"


class Choices:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._made: dict[tuple[str, str], JsonObject] = {}

    def made(self, request: Request, method: str, params: bytes, reply: Reply) -> None:
        """The agent accepted a choice: whoever comes later sees it, and so does the next process."""
        if method not in NAMED_BY:
            return
        chosen = {
            key: value for key, value in decode_object(params).items() if key not in ("sessionId", "_meta")
        }
        name = str(chosen.get(NAMED_BY[method] or "")) if NAMED_BY[method] else ""
        self._made[method, name] = chosen
        self._session.record("setting", method=method, **chosen)
        self._reflect(request, method, chosen, reply)

    def mode_changed(self, mode: object) -> None:
        """The agent switched by itself."""
        if (MODE, "") in self._made:
            self._made[MODE, ""] = {"modeId": mode}
        self._set_mode(mode)

    async def apply(self, agent: AgentConnection) -> None:
        """Tell a new process what holds; what it does not accept is said."""
        for (method, name), chosen in list(self._made.items()):
            params = encode({"sessionId": self._session.agent_session_id, **chosen})
            reply = await agent.ask(method, params, APPLY_TIMEOUT)
            if not reply.ok:
                what = name or ", ".join(str(value) for value in chosen.values())
                error = decode_object(reply.error).get("message")
                self._session.notice(
                    f"The agent was started anew and did not accept the setting {what}: {error}"
                )

    def _reflect(self, request: Request, method: str, chosen: JsonObject, reply: Reply) -> None:
        """Agents differ in what they say after a change (real-agents.md, item 10): the others hear it from us."""
        if method == MODE:
            self._set_mode(chosen.get("modeId"))
            self._tell_others(request, {"sessionUpdate": MODE_UPDATE, "currentModeId": chosen.get("modeId")})
        options = as_object(decode_object(reply.result)).get("configOptions")
        if method == OPTION and isinstance(options, list):
            self._session.options.full = [option for option in options if isinstance(option, dict)]
            self._session.last_result = {**self._session.last_result, "configOptions": options}
            self._tell_others(request, {"sessionUpdate": OPTION_UPDATE, "configOptions": options})

    def _tell_others(self, request: Request, update: JsonObject) -> None:
        session = self._session
        clients = (attachment.client for attachment in session.attachments)
        author = next((client for client in clients if client.peer is request.peer), None)
        session.current[str(update["sessionUpdate"])] = update_line(session.id, update)
        session.publish(update, author)

    def _set_mode(self, mode: object) -> None:
        modes = self._session.last_result.get("modes")
        if isinstance(modes, dict):
            self._session.last_result = {
                **self._session.last_result,
                "modes": {**modes, "currentModeId": mode},
            }
