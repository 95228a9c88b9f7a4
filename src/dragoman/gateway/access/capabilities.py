"""Reads, narrows and merges the capabilities of clients and agents (G-030 to G-037).

Capability objects stay plain dicts, so that members of a newer protocol are passed on; these views only read them.
"""

from __future__ import annotations

import copy
import hashlib
from typing import Any

import msgspec

from dragoman import __version__
from dragoman.gateway.json_types import JsonObject, as_object, own_meta

PROTOCOL_VERSION = 1

# The gateway itself implements these for sessions of every agent, bound or not (G-033, G-034).
OWN_SESSION_CAPABILITIES = ("list", "resume", "close", "delete", "fork")


class ClientCapabilities:
    """A view of `clientCapabilities` as a client sent it."""

    def __init__(self, raw: JsonObject) -> None:
        self.raw = raw

    def has_fs(self, method: str) -> bool:
        field = {"fs/read_text_file": "readTextFile", "fs/write_text_file": "writeTextFile"}.get(method)
        return field is not None and as_object(self.raw.get("fs")).get(field) is True

    @property
    def terminal(self) -> bool:
        return self.raw.get("terminal") is True

    def elicitation(self, mode: str) -> bool:
        """Whether the client offers this mode of elicitation; `{}` alone offers none, unlike in MCP."""
        return as_object(self.raw.get("elicitation")).get(mode) is not None

    @property
    def boolean_options(self) -> bool:
        options = as_object(as_object(self.raw.get("session")).get("configOptions"))
        return options.get("boolean") not in (None, False)

    @property
    def models(self) -> bool:
        """The client wants `models` in session results, which older versions of the protocol had (D-35)."""
        return own_meta(self.raw).get("models") is True

    @property
    def notices(self) -> bool:
        """Whether the client knows notices; `{}` counts as yes, as elsewhere in the protocol."""
        return as_object(self.raw.get("session")).get("notices") not in (None, False)

    @property
    def draws_terminals(self) -> bool:
        """The client reads the output of an agent's own commands from `_meta` of their tool calls."""
        return bool(as_object(self.raw.get("_meta")).get("terminal_output"))

    @property
    def replays(self) -> bool:
        """The client is another process of Dragoman, with several clients: it wants replays to be marked."""
        return bool(own_meta(self.raw).get("replays"))

    @property
    def seq(self) -> bool:
        """The client wants `params._meta.dragoman.seq` on updates."""
        return bool(own_meta(self.raw).get("seq"))

    @property
    def turn_ends(self) -> bool:
        """The client wants the ends of turns in a replay too, as the `session_info_update` that is sent live."""
        return bool(own_meta(self.raw).get("turnEnds"))

    @property
    def leave_turns(self) -> bool:
        """The client's turns in sessions that another process owns go on when it leaves."""
        return bool(own_meta(self.raw).get("leaveTurns"))

    @property
    def question_ids(self) -> bool:
        """The client wants `_meta.dragoman.requestId` on questions: it reads the journal, where they have that id."""
        return bool(own_meta(self.raw).get("questions"))

    @property
    def remembering(self) -> bool:
        """The client shows the facts of a question (`_meta.dragoman.policy`) and what would be remembered."""
        return bool(own_meta(self.raw).get("remembering"))

    def for_agent(self, *, serve_fs: bool, serve_terminal: bool) -> JsonObject:
        """The capabilities sent to the agent (G-032): the client's, without what cannot work through a gateway."""
        told = copy.deepcopy(self.raw)
        auth = as_object(told.get("auth"))
        if auth.pop("terminal", None) is not None:
            told["auth"] = auth  # the client would re-run our command, not the agent's (G-071)
        meta = as_object(told.get("_meta"))
        if meta.pop("dragoman", None) is not None:
            told["_meta"] = meta
        if serve_fs:
            told["fs"] = {**as_object(told.get("fs")), "readTextFile": True, "writeTextFile": True}
        if serve_terminal:
            told["terminal"] = True
        return told


class AgentCapabilities:
    """A view of an agent's `initialize` result."""

    def __init__(self, result: JsonObject) -> None:
        self.result = result
        self._caps = as_object(result.get("agentCapabilities"))

    @property
    def load(self) -> bool:
        return self._caps.get("loadSession") is True

    def session(self, name: str) -> bool:
        """Whether the agent has this session capability, an object; `true` is an accepted dialect (D-12)."""
        marker = as_object(self._caps.get("sessionCapabilities")).get(name)
        return marker is not None and marker is not False

    def prompt(self, name: str) -> bool:
        return as_object(self._caps.get("promptCapabilities")).get(name) is True

    def mcp(self, transport: str) -> bool:
        return as_object(self._caps.get("mcpCapabilities")).get(transport) is True

    @property
    def steer(self) -> bool:
        """Whether it takes messages in mid-turn; only what an agent of ours says counts."""
        return own_meta(self._caps).get("steer") is True

    @property
    def takes_reasons(self) -> bool:
        """Whether it reads why a person refused a call; only what an agent of ours says counts."""
        return own_meta(self._caps).get("reasons") is True

    @property
    def fork_at(self) -> bool:
        """Whether it forks a session at an earlier message; only what an agent of ours says counts."""
        return own_meta(self._caps).get("forkAt") is True

    @property
    def logout(self) -> bool:
        return as_object(self._caps.get("auth")).get("logout") not in (None, False)

    @property
    def auth_method_ids(self) -> list[str]:
        methods = self.result.get("authMethods")
        return [str(as_object(method).get("id")) for method in methods] if isinstance(methods, list) else []


def fingerprint(capabilities: JsonObject) -> str:
    """A hash of capabilities: agents are shared only between clients that offer the same (G-032)."""
    return hashlib.sha256(msgspec.json.encode(capabilities, order="sorted")).hexdigest()[:16]


def bound_result(agent_name: str, agent: JsonObject, *, journal: bool) -> JsonObject:
    """The result of `initialize` on a connection bound to one agent: the agent's, plus the gateway's (G-033)."""
    result = copy.deepcopy(agent)
    result["protocolVersion"] = PROTOCOL_VERSION
    caps = as_object(result.get("agentCapabilities"))
    result["agentCapabilities"] = _with_own_sessions(caps, journal)
    result["authMethods"] = _auth_methods(result.get("authMethods"))
    return _with_meta(result, [agent_name])


def unbound_result(
    default_agent: str, agents: list[str], agent: JsonObject | None, *, journal: bool
) -> JsonObject:
    """The result of `initialize` if each session has its own agent: the gateway's, plus the default agent's (G-034)."""
    caps: JsonObject = {
        "loadSession": False,
        "mcpCapabilities": {},
        "promptCapabilities": {},
        "sessionCapabilities": {},
    }
    methods: list[Any] = []
    if agent is not None:
        own = as_object(agent.get("agentCapabilities"))
        caps["promptCapabilities"] = own.get("promptCapabilities") or {}
        caps["mcpCapabilities"] = own.get("mcpCapabilities") or {}
        if AgentCapabilities(agent).logout:
            caps["auth"] = {"logout": as_object(as_object(own.get("auth")).get("logout"))}
        for method in _auth_methods(agent.get("authMethods")):
            methods.append({**method, "id": f"{default_agent}:{method.get('id')}"})
    result: JsonObject = {
        "protocolVersion": PROTOCOL_VERSION,
        "agentInfo": {"name": "dragoman", "title": "Dragoman", "version": __version__},
        "agentCapabilities": _with_own_sessions(caps, journal),
        "authMethods": methods,
    }
    return _with_meta(result, agents)


def _with_own_sessions(caps: JsonObject, journal: bool) -> JsonObject:
    sessions = {
        name: {} if marker is True else marker
        for name, marker in as_object(caps.get("sessionCapabilities")).items()
        if marker is not False
    }
    sessions.setdefault("close", {})
    if journal:
        caps["loadSession"] = True
        for name in OWN_SESSION_CAPABILITIES:
            sessions.setdefault(name, {})
    caps["sessionCapabilities"] = sessions
    return caps


def _auth_methods(methods: object) -> list[JsonObject]:
    """The methods without those of type terminal: the client would run the gateway instead of the agent (G-071)."""
    if not isinstance(methods, list):
        return []
    return [
        method for method in map(as_object, methods) if method.get("type") != "terminal" and method.get("id")
    ]


def _with_meta(result: JsonObject, agents: list[str]) -> JsonObject:
    meta = as_object(result.get("_meta"))
    meta["dragoman"] = {"version": __version__, "agents": agents}
    result["_meta"] = meta
    return result
