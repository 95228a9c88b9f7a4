"""`_dragoman/queue…`: lists, edits and withdraws the prompts that wait; the owner of the session answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Raw

from dragoman.gateway.json_types import decode_object, encode
from dragoman.gateway.rewriting.content import read_prompt
from dragoman.gateway.rewriting.rewrite import meta_in
from dragoman.gateway.session.forwarding import ask_owner
from dragoman.gateway.session.turn import prompter_of
from dragoman.rpc.request import Request
from dragoman.wire import message

if TYPE_CHECKING:
    from dragoman.gateway.access.client import Client
    from dragoman.gateway.session.prompts.queue import QueuedPrompt
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
        id = decode_object(request.params).get("id")
        by = prompter_of(client, meta_in(request.members))
        queued = session.prompts.find(id)
        if request.method == EDIT:
            read_prompt(request.members, session.gateway.config.limits.max_prompt_bytes)
            _tell_of_another("prompt_edited", session, queued, by)
            session.prompts.edit(id, request.members["prompt"], by)
        else:
            _tell_of_another("prompt_withdrawn", session, queued, by)
            session.prompts.withdraw(id)
        request.reply(message.EMPTY)


def _tell_of_another(kind: str, session: Session, queued: QueuedPrompt, by: str) -> None:
    """Record that a prompt is changed or taken out by another identity than its own."""
    if by != queued.by:
        session.gateway.audit.record(
            kind,
            {
                "session": session.id,
                "agent": session.agent_name,
                "prompt": queued.id,
                "author": queued.by,
                "by": by,
            },
        )


def listed(session: Session, client: Client) -> list[dict[str, object]]:
    return [
        {
            "id": queued.id,
            "prompt": Raw(queued.prompt),
            "promptedBy": queued.by,
            "edited": queued.edited,
            "own": queued.client is client,
        }
        for queued in session.prompts.waiting
    ]
