"""Models and config options between clients and agents of different ages (D-35)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.gateway.json_types import decode_object, encode
from dragoman.rpc.peer import Reply, Request
from dragoman.wire import message

if TYPE_CHECKING:
    from dragoman.gateway.client import ClientConnection


def set_model(client: ClientConnection, request: Request) -> None:
    """The old method; for an agent that knows only config options it sets the one of category `model`."""
    session = client.require_session(request)
    option = session.options.model_option_id()
    if session.options.native_models or option is None:
        session.forward(request)
        return
    value = decode_object(request.params).get("modelId")
    params = encode({"sessionId": session.id, "configId": option, "value": value})
    session.forward(request, params, "session/set_config_option", lambda reply: Reply(result=message.EMPTY))


def set_config_option(client: ClientConnection, request: Request) -> None:
    """Passed on, unless it is the option that stands for an old agent's `models`."""
    session = client.require_session(request)
    params = decode_object(request.params)
    synthetic = session.options.synthetic_model
    if synthetic is None or params.get("configId") != synthetic:
        session.forward(request)
        return
    value = params.get("value")

    def answer(reply: Reply) -> Reply:
        session.options.set_model(value)
        boolean = client.capabilities.boolean_options
        return Reply(result=encode({"configOptions": session.options.visible(boolean=boolean)}))

    old = encode({"sessionId": session.id, "modelId": value})
    session.forward(request, old, "session/set_model", answer)
