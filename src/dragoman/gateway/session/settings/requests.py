"""Sets modes, models and config options between clients and agents of different protocol versions (D-35)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman.gateway.json_types import JsonObject, decode_object, encode, read_object, with_own_meta
from dragoman.gateway.rewriting.rewrite import meta_in
from dragoman.gateway.session.forwarding import ask_owner
from dragoman.gateway.session.settings.choices import CATEGORY_OF, SET_MODE, SET_MODEL, SET_OPTION
from dragoman.gateway.session.settings.options import MODE, MODEL, without_booleans
from dragoman.gateway.session.turn import prompter_of
from dragoman.rpc.request import Reply, Request
from dragoman.wire import message
from dragoman.wire.errors import invalid_params

if TYPE_CHECKING:
    from dragoman.gateway.client import ClientConnection
    from dragoman.gateway.session.session import Session

RENAME = "_dragoman/rename"
TITLE_LENGTH = 200
OLDER = {MODE: SET_MODE, MODEL: SET_MODEL}


def rename(client: ClientConnection, request: Request) -> None:
    """`_dragoman/rename`: set the title that the user chose, at the owner of the session."""
    session = client.require_session(request)
    if session.owned_elsewhere:
        ask_owner(session, client, request)
        return
    title = " ".join(str(decode_object(request.params).get("title") or "").split())[:TITLE_LENGTH]
    if not title:
        raise invalid_params("A title has at least one letter", "title")
    session.rename(title)
    session.after_events(lambda: request.reply(message.EMPTY))


def set_in_older_words(client: ClientConnection, request: Request) -> None:
    """`session/set_mode` or `set_model`: forwarded, or for an agent with config options alone set as an option."""
    session = client.require_session(request)
    category, member = CATEGORY_OF[request.method]
    option = session.options.option(category)
    value = decode_object(request.params).get(member)

    def forward() -> None:
        if category in session.options.native or option is None:
            params = _named(client, session, request)
            session.forwarding.to_agent(request, params, result=lambda reply: _as_known(client, reply))
            return
        wish = {"sessionId": session.id, "configId": option.get("id"), "value": value}
        params = _named(client, session, request, wish)
        session.forwarding.to_agent(request, params, SET_OPTION, lambda reply: Reply(result=message.EMPTY))

    if category == MODE:
        _switch(client, session, request, value, forward, older=True)
    else:
        forward()


def _named(
    client: ClientConnection, session: Session, request: Request, params: JsonObject | None = None
) -> bytes:
    """The params of a request. The owner of a followed session is told whose it is: to it we are one local client."""
    if not session.follows:
        return request.params if params is None else encode(params)
    given = decode_object(request.params) if params is None else params
    return encode(with_own_meta(given, promptedBy=prompter_of(client, meta_in(request.members))))


def _as_known(client: ClientConnection, reply: Reply) -> Reply:
    """The agent's answer without options that this client does not know: some agents list options in every answer."""
    told = read_object(reply.result) if not client.capabilities.boolean_options else {}
    options = told.get("configOptions")
    known = without_booleans(options) if isinstance(options, list) else options
    return reply if known == options else Reply(result=encode({**told, "configOptions": known}))


def _switch(
    client: ClientConnection,
    session: Session,
    request: Request,
    value: object,
    forward: Callable[[], None],
    *,
    older: bool = False,
) -> None:
    """Switch the mode, if the rules allow it. One that the agent does not offer is refused (quirk unknown_mode)."""
    if not session.options.offers(MODE, value, older=older):
        raise invalid_params(f"The mode {value!r} is not offered by the agent", "mode")

    identity = prompter_of(client, meta_in(request.members))

    def granted() -> None:
        session.choices.grant(value, identity)
        forward()

    session.policy.switch(request, str(value), identity, granted)


def set_config_option(client: ClientConnection, request: Request) -> None:
    """Forward the request; an option that stands in for an old agent's modes or models is set in the older dialect."""
    session = client.require_session(request)
    params = decode_object(request.params)
    stand_ins = {id: category for category, id in session.options.stand_ins.items()}
    category = stand_ins.get(str(params.get("configId")))
    mode = session.options.option(MODE)

    def answer(reply: Reply) -> Reply:
        """The reply with all options that this client knows; the agent may have listed fewer, or others."""
        told = read_object(reply.result)
        if not isinstance(told.get("configOptions"), list) and not stand_ins:
            return reply
        told["configOptions"] = session.options.visible(boolean=client.capabilities.boolean_options)
        return Reply(result=encode(told))

    def forward() -> None:
        if category is None:
            session.forwarding.to_agent(request, _named(client, session, request), result=answer)
            return
        method = OLDER[category]
        wish = {"sessionId": session.id, CATEGORY_OF[method][1]: params.get("value")}
        old = _named(client, session, request, wish)
        session.forwarding.to_agent(request, old, method, answer)

    if mode is not None and mode.get("id") == params.get("configId"):
        _switch(client, session, request, params.get("value"), forward)
    else:
        forward()
