"""What the audit is told about a session."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from dragoman.gateway.json_types import JsonObject, as_object, decode_object
from dragoman.gateway.ports.audit import Audit
from dragoman.masking import mask_assigned
from dragoman.rpc.request import Request
from dragoman.wire import limits

if TYPE_CHECKING:
    from dragoman.gateway.session.open_tools import OpenTools
    from dragoman.gateway.session.policy.verdict import Verdict
    from dragoman.gateway.session.settings.choices import Choices
    from dragoman.policy.decide import Policy

LONGEST = 4000
"""Characters that are looked at of a title; fewer are recorded."""
MOST_SERVERS = 50
"""MCP servers of one session that are named."""


class HasAudit(Protocol):
    @property
    def audit(self) -> Audit: ...


class WatchesCalls(Protocol):
    def watches_calls(self) -> bool: ...

    def ran_nothing(self, tool: JsonObject) -> bool: ...


class Audited(Protocol):
    """The part of a session that is looked at here."""

    id: str
    agent_name: str
    cwd: str
    tools: OpenTools
    choices: Choices

    @property
    def gateway(self) -> HasAudit: ...

    @property
    def policy(self) -> WatchesCalls: ...

    @property
    def turn(self) -> object: ...

    @property
    def follows(self) -> bool: ...


def see_tool(session: Audited, tool: JsonObject) -> None:
    """Track a tool call, and record that it began or ended, unless it is of a replay."""
    for change in session.tools.see(tool):
        if session.turn is not None and change == "begun":
            named = _named(session.tools.filled(tool))
            session.tools.names[str(tool.get("toolCallId"))] = named
            _tool(session, "tool_begun", tool, dict(named))
        elif session.turn is not None:
            tool_ended(session, tool)


def tool_ended(session: Audited, tool: JsonObject) -> None:
    """A tool call ended, or was closed with its turn; one that reached no rules is marked, here or by `unmediated`."""
    facts: dict[str, Any] = {"status": _word(tool.get("status"))}
    told = session.tools.slipped_by(tool) and session.policy.watches_calls()
    if session.policy.ran_nothing(tool):
        facts |= {"reason": "not_run", **_known(session, tool)}
    elif not told and not session.tools.is_mediated(tool.get("toolCallId")):
        facts |= {"unmediated": True, **_known(session, tool)}
    _tool(session, "tool_ended", tool, facts)
    session.tools.end_mediation(tool.get("toolCallId"))


def tool_interrupted(session: Audited, tool: JsonObject) -> None:
    """A tool call was open when its gateway was killed."""
    _tool(session, "tool_ended", tool, {"status": _word(tool.get("status")), "reason": "restart"})


def decided(
    session: Audited,
    verdict: Verdict,
    policy: Policy,
    call: object,
    then: Callable[[], None],
    refuse: Callable[[str], None],
) -> None:
    """Call `then` once a decision by rules is recorded; `refuse` with the reason if it cannot be."""
    audit, secrets = session.gateway.audit, _secrets(verdict)
    facts = _decision(session, verdict, policy, call)
    if audit.stored("decision", facts, secrets):
        then()
    else:
        audit.wait("decision", facts, then, refuse, secrets)


def asked(session: Audited, verdict: Verdict | None, policy: Policy, call: object) -> None:
    """A person is asked about an act."""
    if verdict is not None:
        session.gateway.audit.record("decision", _decision(session, verdict, policy, call), _secrets(verdict))


def untold(session: Audited, tool: JsonObject) -> None:
    """A hook told of a call of which the agent tells nothing: a plan, or one that the agent itself refused."""
    _tool(session, "tool_begun", tool, _named(tool))
    _tool(session, "tool_ended", tool, {"status": None, "reason": "untold"})


def answered(session: Audited, call: object, facts: JsonObject) -> bool:
    """Record the answer of a person, or what stands in for it; False if it has to wait until it can be recorded."""
    if session.follows:  # the owner records it
        return True
    told = _answer(session, call, facts)
    if facts["by"] != "user" and not facts.get("identity"):  # it allows nothing
        session.gateway.audit.record("answer", told)
        return True
    return session.gateway.audit.stored("answer", told)


def cancel(session: Audited, request: Request, answer: bytes, by: str) -> None:
    """Answer a question with `cancelled` before any client was asked, once that is recorded."""
    if not session.follows:
        call = as_object(decode_object(request.params).get("toolCall")).get("toolCallId")
        facts = {"by": by, "outcome": {"outcome": "cancelled"}}
        session.gateway.audit.record("answer", _answer(session, call, facts))
    request.reply(answer)


def about_answer(params: bytes, facts: JsonObject) -> JsonObject:
    """What an answer was about, and what it decided: the facts of the answer name only an option."""
    from dragoman.gateway.session.questions.approval import is_allowing

    asked, outcome = decode_object(params), as_object(facts.get("outcome"))
    told: JsonObject = _without_values(_named(as_object(asked.get("toolCall"))), [])
    if outcome.get("outcome") == "selected":
        told["decision"] = "allow" if is_allowing(outcome, asked.get("options")) else "deny"
    return told


def wait_to_answer(
    session: Audited, call: object, facts: JsonObject, then: Callable[[], None], refuse: Callable[[str], None]
) -> None:
    session.gateway.audit.wait("answer", _answer(session, call, facts), then, refuse)


def _answer(session: Audited, call: object, facts: JsonObject) -> dict[str, Any]:
    return {"session": session.id, "agent": session.agent_name, "call": _word(call), **facts}


def _decision(session: Audited, verdict: Verdict, policy: Policy, call: object) -> dict[str, Any]:
    from dragoman.policy.recorded import recorded

    policy = verdict.rules or policy
    facts: dict[str, Any] = {
        "session": session.id,
        "agent": session.agent_name,
        "call": _word(call),
        "tool": _word(verdict.act.get("tool")),
        "decision": verdict.decision,
        "by": verdict.rule,
        "why": verdict.why,
        "policy": policy.digest,
        "act": recorded(verdict.subject) if verdict.subject is not None else verdict.act,
    }
    if (text := policy.text_of(verdict.rule)) is not None:
        facts["rule"] = text
    if session.tools.decide_again(call):
        facts["again"] = True
    return facts


def _secrets(verdict: Verdict) -> list[str]:
    from dragoman.policy.recorded import secrets_of

    return secrets_of(verdict.subject) if verdict.subject is not None else []


def unmediated(session: Audited, tool: JsonObject) -> None:
    """A tool call ran without a decision."""
    if session.turn is not None:
        _tool(session, "unmediated", tool, _known(session, tool))


def mode_reported(session: Audited, former: object, mode: object) -> None:
    """The agent says that its mode has changed: as a client asked, or by itself."""
    asked = session.choices.take_asked(mode)
    _mode(session, former, mode, asked.by if asked is not None else "agent")


def mode_accepted(session: Audited, mode: object) -> None:
    """The agent accepted the mode that was asked for; some report it too, before or after."""
    asked = session.choices.take_asked(mode) if mode is not None else None
    if asked is not None and asked.former != mode:
        _mode(session, asked.former, mode, asked.by)


def _mode(session: Audited, former: object, mode: object, by: str) -> None:
    if not session.follows:  # the owner records it
        _record(session, "mode_changed", {"mode": _word(mode), "former": _word(former), "by": by})


def session_began(session: Audited, by: str, forked_from: str | None, servers: object) -> None:
    """`servers` are the MCP servers that the client brings."""
    facts: dict[str, Any] = {"cwd": session.cwd, "by": by, **named_servers(servers)}
    if forked_from is not None:
        facts["forkedFrom"] = forked_from
    _record(session, "session_begun", facts)


def named_servers(servers: object) -> JsonObject:
    """MCP servers of a client, checked before, by name with program or host: arguments and variables have secrets."""
    named = []
    for server in servers if isinstance(servers, list) else []:
        told = as_object(server)
        place = told.get("command") or urlsplit(str(told.get("url") or "")).hostname
        named.append({"name": _word(told.get("name")), "at": _word(place)})
    return {"mcpServers": named[:MOST_SERVERS]} if named else {}


def _tool(session: Audited, kind: str, tool: JsonObject, facts: dict[str, Any]) -> None:
    if session.follows:  # the owner records it
        return
    if session.gateway.audit.content:
        facts |= {name: tool[name] for name in ("rawInput", "rawOutput") if name in tool}
    values: list[str] = []
    facts |= {name: _without_values(facts[name], values) for name in ("title", "rawInput") if name in facts}
    _record(session, kind, {"call": _word(tool.get("toolCallId")), **facts}, values)


def _record(session: Audited, kind: str, facts: dict[str, Any], secrets: Iterable[str] = ()) -> None:
    told = {"session": session.id, "agent": session.agent_name, **facts}
    session.gateway.audit.record(kind, told, secrets)


def _word(told: object) -> str | None:
    """An id or a name that the agent chose: agents may send anything of any length."""
    return told[: limits.PEER_ID_LENGTH] if isinstance(told, str) else None


def _named(tool: JsonObject) -> dict[str, Any]:
    """Name, kind and title of a call."""
    title = tool.get("title")
    name = as_object(tool.get("_meta")).get("toolName") or tool.get("name")
    facts = {"tool": _word(name), "toolKind": _word(tool.get("kind"))}
    if isinstance(title, str):
        facts["title"] = title[:LONGEST]
    return {key: value for key, value in facts.items() if isinstance(value, str)}


def _known(session: Audited, tool: JsonObject) -> dict[str, Any]:
    """Name, kind and title, also as they were told before."""
    return {**session.tools.names.get(str(tool.get("toolCallId")), {}), **_named(tool)}


def _without_values(told: Any, values: list[str]) -> Any:
    """What an agent told, without the values of variables before commands, which are added to `values`."""
    if isinstance(told, str):
        shown, found = mask_assigned(told)
        values += found
        return shown
    if isinstance(told, dict):
        return {name: _without_values(item, values) for name, item in told.items()}
    return [_without_values(item, values) for item in told] if isinstance(told, list) else told
