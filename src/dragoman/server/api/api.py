"""The table of all operations under `/api`, used for routing and for the documentation."""

from __future__ import annotations

import msgspec

from dragoman.config.model import AgentConfig
from dragoman.gateway.access.mediation import mediation_of
from dragoman.gateway.gateway import Gateway
from dragoman.server.api import openapi, page
from dragoman.server.api.audit import AuditApi
from dragoman.server.api.operation import READING, Operation, Routes, Values
from dragoman.server.api.policy import PolicyApi
from dragoman.server.api.remembered import RememberedAnswers
from dragoman.server.api.sessions import Sessions
from dragoman.server.api.shapes import (
    AgentList,
    AgentView,
    Answer,
    Limits,
    MadeToken,
    MediationView,
    NewSession,
    NewToken,
    Prompt,
    SessionEdit,
    SessionList,
    SessionView,
    TokenList,
    Turn,
    Used,
)
from dragoman.server.api.tokens import Tokens
from dragoman.server.api.work.changes import ChangesApi
from dragoman.server.api.work.queue import QueueApi
from dragoman.server.api.work.rewinding import RewindApi
from dragoman.server.api.work.search import SearchApi
from dragoman.server.api.work.usage import UsageApi
from dragoman.server.api.work.worktrees import WorktreesApi
from dragoman.server.asgi import HttpError, Request, Response
from dragoman.server.auth.admission import Admission
from dragoman.server.fronts.shared_client import SharedClients

NO_SESSION = {404: "There is no such session."}
HELD = {**NO_SESSION, 409: "Another program has it open."}


class Api:
    def __init__(self, gateway: Gateway, agent: str | None, admission: Admission) -> None:
        """`agent` is the agent of new sessions that name none; without a token file `/api/tokens` does not exist."""
        self._gateway = gateway
        self._admission = admission
        tokens = admission.credentials.file
        self._gateway_clients = SharedClients(gateway, admission.credentials.lapsed, start_ahead=False)
        sessions = Sessions(gateway, self._gateway_clients, agent)
        named = _tokens(Tokens(tokens, gateway.audit)) if tokens is not None else ()
        remembered = RememberedAnswers(gateway).operations()
        policy = (*PolicyApi(gateway).operations(), *remembered)
        folder = gateway.audit.folder
        audit = AuditApi(folder, gateway.config.audit.anchors).operations if folder is not None else ()
        rewinding = RewindApi(gateway, self._gateway_clients, sessions).operations()
        changes = (*ChangesApi(gateway, self._gateway_clients).operations(), *rewinding)
        search = (*SearchApi(gateway).operations(), *UsageApi(gateway).operations())
        queue = QueueApi(gateway, self._gateway_clients).operations()
        worktrees = WorktreesApi(gateway).operations()
        more = (*queue, *changes, *search, *worktrees, *policy)
        self.routes = Routes((*_sessions(sessions), *more, *self._rest(), *named, *audit))
        self.answer = self.routes.answer

    def close(self) -> None:
        self._gateway_clients.close()

    def _rest(self) -> tuple[Operation, ...]:
        text = "text/html; charset=utf-8"
        # fmt: off
        return (
            Operation("GET", "/api/agents", "The agents by name", self._agents, AgentList, does=READING),
            Operation("GET", "/api/limits", "Limits, and how much is used", self._limits, Limits, does=READING),
            Operation(
                "POST", "/api/logout", "Log this browser out", self._logout, status=204,
                refusals={409: "It came with a token, which is revoked instead."},
                does=READING,
            ),
            Operation("GET", "/api/openapi.json", "This API as an OpenAPI document", self._openapi, dict, does=READING),
            Operation("GET", "/api/docs", "This API as a web page", self._docs, content=text, does=READING),
            Operation("GET", "/api/docs.css", "Its style sheet", self._style, content="text/css", does=READING),
        )
        # fmt: on

    async def _agents(self, request: Request, values: Values) -> Response:
        default = self._gateway.config.default_agent
        agents = self._gateway.agents
        found = [(name, agents.find(name)) for name in agents.names()]
        views = [
            AgentView(
                name=name,
                kind=each.kind,
                default=name == default,
                sandbox=each.sandbox,
                mediation=_mediation(each),
            )
            for name, each in found
        ]
        return Response.json(AgentList(views))

    async def _limits(self, request: Request, values: Values) -> Response:
        live = sum(not session.parked for session in self._gateway.sessions.values())
        limits = msgspec.to_builtins(self._gateway.config.limits)
        return Response.json(Limits(limits, Used(live, len(self._gateway.clients))))

    async def _logout(self, request: Request, values: Values) -> Response:
        if not request.identity.login:
            message = "This request showed a token, not a browser's login: revoke the token to end it."
            raise HttpError(409, message, code="no_login")
        request.headers = self._admission.log_out(request.visit, request.identity)  # in place of the renewal
        return Response(204)

    async def _openapi(self, request: Request, values: Values) -> Response:
        return Response.json(openapi.document(self.routes.operations))

    async def _docs(self, request: Request, values: Values) -> Response:
        html = page.html(self.routes.operations)
        return Response(200, html.encode(), "text/html; charset=utf-8")

    async def _style(self, request: Request, values: Values) -> Response:
        return Response(200, page.STYLE.encode(), "text/css; charset=utf-8")


def _mediation(agent: AgentConfig) -> MediationView:
    found = mediation_of(agent, boxed=agent.sandbox is not None)
    return MediationView(found.level, found.why, sorted(found.never_asks))


def _sessions(sessions: Sessions) -> tuple[Operation, ...]:
    all_, one = "/api/sessions", "/api/sessions/{id}"
    # fmt: off
    return (
        Operation(
            "GET", all_, "Sessions, the most recently used first", sessions.list, SessionList,
            query={
                "cwd": "Only sessions that work in this folder.",
                "agent": "Only sessions of this agent.",
                "cursor": "The next page: `nextCursor` of the one before.",
            },
            does=READING,
        ),
        Operation(
            "POST", all_, "Create a session", sessions.create, SessionView, status=201, body=NewSession,
            does="session/new", refusals={502: "The agent did not start.", 503: "There are too many sessions."},
        ),
        Operation("GET", one, "One session", sessions.get, SessionView, refusals=NO_SESSION, does=READING),
        Operation(
            "PATCH", one, "Rename a session", sessions.edit, SessionView, body=SessionEdit, does="session/rename",
            refusals=HELD,
        ),
        Operation(
            "DELETE", one, "Delete a session and its history; 200 names a worktree that stays",
            sessions.delete, status=204,
            query={"discard": "`true`: remove its worktree even if something in it is lost."},
            does="session/delete", refusals=HELD,
        ),
        Operation(
            "POST", f"{one}/prompt", "Send a prompt and wait for the end of the turn", sessions.prompt, Turn,
            body=Prompt, does="session/prompt",
            refusals={**NO_SESSION, 409: "A prompt is in flight already, or too many wait.", 502: "The agent failed."},
        ),
        Operation(
            "POST", f"{one}/questions/{{question}}", "Answer the question that a turn waits for", sessions.decide,
            SessionView, body=Answer, does="permission_response",
            refusals={
                404: "There is no such session, or the question is not open any more.",
                409: "Another answer was first; it is named.",
            },
        ),
        Operation(
            "POST", f"{one}/cancel", "Cancel the turn that runs, if one does", sessions.cancel, status=202,
            does="session/cancel", refusals=NO_SESSION,
        ),
        Operation(
            "POST", f"{one}/close", "End a session; it can be resumed later", sessions.close, SessionView,
            does="session/close", refusals=NO_SESSION,
        ),
        Operation(
            "GET", f"{one}/export", "A session as a file", sessions.export, content="application/x-ndjson",
            query={"format": "`ndjson` (every event, the default) or `md` (the conversation)."},
            refusals={**NO_SESSION, 409: "Nothing is kept (sessions.journal)."},
            does=READING,
        ),
    )
    # fmt: on


def _tokens(tokens: Tokens) -> tuple[Operation, ...]:
    all_, one, does = "/api/tokens", "/api/tokens/{name}", "_dragoman/tokens"
    # fmt: off
    return (
        Operation("GET", all_, "The named tokens", tokens.every, TokenList, does=does),
        Operation(
            "POST", all_, "Create a token", tokens.create, MadeToken, status=201, body=NewToken, does=does,
            refusals={409: "There is a token of this name."},
        ),
        Operation(
            "DELETE", one, "Revoke a token and disconnect its clients", tokens.revoke, status=204,
            does=does, refusals={404: "There is no such token."},
        ),
    )
    # fmt: on
