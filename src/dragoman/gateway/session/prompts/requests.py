"""`_dragoman/queue…`: lists, edits and withdraws the prompts that wait; the owner of the session answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Raw

from dragoman.gateway.json_types import JsonObject, decode_object, encode
from dragoman.gateway.rewriting.content import read_prompt
from dragoman.gateway.rewriting.rewrite import meta_in
from dragoman.gateway.session.forwarding import ask_owner
from dragoman.gateway.session.prompts.queue import QueuedPrompt, Waiting, not_queued
from dragoman.gateway.session.turn import prompter_of
from dragoman.rpc.request import Request
from dragoman.wire import message
from dragoman.wire.errors import invalid_request

if TYPE_CHECKING:
    from dragoman.gateway.access.client import Client
    from dragoman.gateway.session.session import Session

QUEUE = "_dragoman/queue"
EDIT = "_dragoman/queue/edit"
WITHDRAW = "_dragoman/queue/withdraw"
METHODS = (QUEUE, EDIT, WITHDRAW)


def answer(session: Session, client: Client, request: Request) -> None:
    if session.owned_elsewhere:
        ask_owner(session, client, request)
    elif request.method == QUEUE:
        request.reply(encode({"queue": listed(session, client)}))
    else:
        _change(session, client, request, decode_object(request.params).get("id"))
        request.reply(message.EMPTY)


def _change(session: Session, client: Client, request: Request, id: object) -> None:
    by = prompter_of(client, meta_in(request.members))
    prompt = None
    if request.method == EDIT:
        read_prompt(request.members, session.gateway.config.limits.max_prompt_bytes)
        prompt = request.members["prompt"]
    if not session.prompts.holds(id):
        _change_of_page(session, client, id, prompt, by)
        return
    _tell_of_another(session, session.prompts.find(id), prompt, by)
    if prompt is not None:
        session.prompts.edit(id, prompt, by)
    else:
        session.prompts.withdraw(id)


def _change_of_page(session: Session, client: Client, id: object, prompt: Raw | None, by: str) -> None:
    """Change a message of a page, which is sent with the rights that its editor has then."""
    found = next((each for each in session.gateway.waiting_beside(session.id) if each.id == id), None)
    if found is None:
        raise not_queued()
    if prompt is not None and by != client.terms.identity.name:
        raise invalid_request(
            "A message of the web chat cannot be edited through another gateway: edit it in the page, or withdraw it",
            "edit_in_page",
        )
    session.gateway.change_beside(session.id, found.id, prompt, client.terms.identity)
    _tell_of_another(session, found, prompt, by)


def _tell_of_another(session: Session, queued: QueuedPrompt | Waiting, prompt: Raw | None, by: str) -> None:
    """Record that a prompt is changed or taken out by another identity than its own."""
    if by != queued.by:
        session.gateway.audit.record(
            "prompt_withdrawn" if prompt is None else "prompt_edited",
            {
                "session": session.id,
                "agent": session.agent_name,
                "prompt": queued.id,
                "author": queued.by,
                "by": by,
            },
        )


def listed(session: Session, client: Client) -> list[JsonObject]:
    """What waits, the next first: prompts of clients and messages of pages."""
    prompts = [
        Waiting(each.number, each.id, Raw(each.prompt), each.by, each.edited, each.client is client)
        for each in session.prompts.waiting
    ]
    waiting = [*session.gateway.waiting_beside(session.id), *prompts]
    return [each.shown() for each in sorted(waiting, key=lambda each: each.number)]
