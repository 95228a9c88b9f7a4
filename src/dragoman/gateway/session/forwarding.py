"""Forwards requests through a session without decoding them, in both directions, in the order of its events."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman.gateway.json_types import decode_object, encode
from dragoman.gateway.rewriting.rewrite import meta_in, with_session
from dragoman.gateway.session import auditing
from dragoman.gateway.session.turn import prompter_of
from dragoman.rpc.request import Reply, Request
from dragoman.wire.errors import Malformed, RpcError, internal, session_not_found

if TYPE_CHECKING:
    from dragoman.gateway.access.client import Client
    from dragoman.gateway.session.session import Session

log = logging.getLogger(__name__)

OnResult = Callable[[Reply], Reply]


class Forwarding:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._asked: dict[Request, tuple[Client, int]] = {}
        """Requests of the agent that clients have not answered yet."""

    def to_agent(
        self,
        request: Request,
        params: bytes | None = None,
        method: str | None = None,
        result: OnResult | None = None,
    ) -> None:
        """Forward a request; its answer goes out in the order of the session's events, changed by `result` if given."""
        session = self._session
        if session.agent is None or session.recovery.pending:
            session.gateway.spawn(self._restart_and_ask(request, params, method, result))
            return
        agent = session.agent
        session.check_load()
        raw = with_session(request.params if params is None else params, session.agent_session_id)

        def answer(reply: Reply) -> None:
            agent.origins.pop(call, None)
            shown = session.reply_for_client(reply)
            if shown.ok:
                auditing.mode_accepted(
                    session, session.choices.save(request, method or request.method, raw, shown)
                )
                shown = result(shown) if result is not None else shown
            session.after_events(lambda: request.answer(shown))

        call = agent.peer.request(method or request.method, raw, answer)
        agent.origins[call] = request.id
        request.on_cancel = lambda: agent.peer.cancel(call)

    async def _restart_and_ask(
        self, request: Request, params: bytes | None, method: str | None, result: OnResult | None
    ) -> None:
        """Restart the agent of a session that is parked or lost its agent, then forward the request."""
        session = self._session
        try:
            clients = session.clients_by_preference()
            if not clients:
                raise session_not_found(session.id)
            await session.gateway.ready(session, clients[0])
            self.to_agent(request, params, method, result)
        except RpcError as error:
            request.fail(error)
        except Malformed as error:
            request.fail(error.as_error())
        except Exception:  # a bug of ours must not cost the client its answer
            log.exception("request failed", extra={"session": session.id, "method": request.method})
            request.fail(internal("Internal error in the gateway; its log has the details"))

    def to_client(
        self, request: Request, client: Client, params: bytes, result: OnResult | None = None
    ) -> None:
        """Forward an agent's request to a client, after all events that the agent sent before."""

        def ask() -> None:
            try:
                call = client.peer.request(request.method, params, answered)
            except Exception:  # a bug of ours must not leave the agent waiting
                log.exception(
                    "client could not be asked",
                    extra={"session": self._session.id, "method": request.method},
                )
                request.fail(internal("Internal error in the gateway; its log has the details"))
                return
            if not request.answered:
                self._asked[request] = (client, call)
                request.on_cancel = lambda: client.peer.cancel(call)

        def answered(reply: Reply) -> None:
            self._asked.pop(request, None)
            request.answer(result(reply) if result is not None else reply)

        self._session.after_events(ask, client)

    def withdraw(self) -> None:
        """Cancel the agent's requests at clients: the agent is gone."""
        for client, call in self._asked.values():
            client.peer.cancel(call)
            client.peer.forget(call)
        self._asked.clear()


def ask_owner(session: Session, client: Client, request: Request) -> None:
    """Have the process that owns the session answer a request of ours, in the name of this client."""
    agent = session.agent
    if agent is None:
        raise internal(
            "The process that has this session cannot be reached; load the session again", "session_held"
        )
    params = {**decode_object(request.params), "sessionId": session.agent_session_id}
    params["_meta"] = {"dragoman": {"promptedBy": prompter_of(client, meta_in(request.members))}}
    call = agent.peer.request(request.method, encode(params), request.answer)
    request.on_cancel = lambda: agent.peer.cancel(call)
