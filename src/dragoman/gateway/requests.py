"""What handles each request of a client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from dragoman.gateway.client import ClientConnection
from dragoman.gateway.json_types import as_object, decode_object, encode
from dragoman.gateway.lifecycle import committing, create, forking, listing, load, restoring, rewinding
from dragoman.gateway.rewriting.rewrite import session_of
from dragoman.gateway.session.checkpoints.changes import CHANGES
from dragoman.gateway.session.prompts import prompting
from dragoman.gateway.session.prompts import requests as queue
from dragoman.gateway.session.questions.answerer import ANSWER, Answerer
from dragoman.gateway.session.settings import requests as settings
from dragoman.rpc.request import Request
from dragoman.wire import message
from dragoman.wire.errors import invalid_params, method_not_found

Handler = Callable[[ClientConnection, Request], None]
Setup = Callable[[ClientConnection, Request], Awaitable[None]]


def _in_setup(work: Setup) -> Handler:
    return lambda client, request: client.setup(request, work)


def _prompt(client: ClientConnection, request: Request) -> None:
    prompting.prompt(client.require_session(request), client, request)


def _queue(client: ClientConnection, request: Request) -> None:
    queue.answer(client.require_session(request), client, request)


def _cancel(client: ClientConnection, request: Request) -> None:
    """`session/cancel` is a notification; sent as a request it is carried out and answered too (G-015)."""
    session = client.session(session_of(request.params) or "")
    if session is not None:
        session.cancel()
    request.reply(message.EMPTY)


def _answer(client: ClientConnection, request: Request) -> None:
    """Take the answer of a client of another process; only processes of ours may say who it is."""
    if not client.terms.local_process:
        raise method_not_found(request.method)
    params = decode_object(request.params)
    answerer = Answerer.read(as_object(params.get("answerer")))
    session, result = client.require_session(request), encode(as_object(params.get("result")))
    if not session.questions.answer(str(params.get("requestId")), result, answerer):
        raise invalid_params("This question is not open (any more)", "unknown_question")
    request.reply(message.EMPTY)


REQUESTS: dict[str, Handler] = {
    "authenticate": _in_setup(lambda client, request: client.login.authenticate(request)),
    "logout": _in_setup(lambda client, request: client.login.logout(request)),
    "session/new": _in_setup(create.new),
    "session/load": _in_setup(load.load),
    "session/resume": _in_setup(load.resume),
    "session/list": _in_setup(listing.list_sessions),
    "session/fork": _in_setup(forking.fork),
    "session/close": _in_setup(create.close),
    "session/end": _in_setup(create.close),  # an older name for it (G-116)
    "session/delete": _in_setup(create.delete),
    "session/prompt": _prompt,
    "session/cancel": _cancel,
    "session/set_mode": settings.set_in_older_words,
    "session/set_model": settings.set_in_older_words,
    "session/set_config_option": settings.set_config_option,
    settings.RENAME: settings.rename,
    restoring.RESTORE: restoring.restore,
    rewinding.REWIND: rewinding.rewind,
    rewinding.MESSAGES: rewinding.messages,
    CHANGES: rewinding.changes,
    committing.COMMIT: _in_setup(committing.commit),
    **dict.fromkeys(queue.METHODS, _queue),
    ANSWER: _answer,
}
