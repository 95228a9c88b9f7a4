"""`session/prompt`: begins a turn, or queues the prompt, hands it to the turn that runs, or forwards it to the owner."""

from __future__ import annotations

import logging
from functools import partial

from msgspec import Raw

from dragoman.gateway.access.client import Client
from dragoman.gateway.delivery import events
from dragoman.gateway.json_types import JsonObject, decode_object, encode, own_meta, with_own_meta
from dragoman.gateway.rewriting.content import Prompt, prompt_params, read_prompt
from dragoman.gateway.rewriting.rewrite import meta_in
from dragoman.gateway.rewriting.updates import update_line
from dragoman.gateway.session.prompts.queue import QueuedPrompt
from dragoman.gateway.session.session import Session
from dragoman.gateway.session.turn import Turn, prompter_of
from dragoman.rpc.request import Reply, Request
from dragoman.wire import limits
from dragoman.wire.errors import Malformed, RpcError, forbidden, internal, invalid_request

log = logging.getLogger(__name__)

STEER = "_dragoman/steer"
"""The method of agents of ours that takes a message in mid-turn."""


def prompt(session: Session, client: Client, request: Request) -> None:
    """Start a turn, one at a time (G-090); an agent that is gone or parked is restarted first."""
    session.binding.check_open()
    session.recovery.check_not_rewinding()
    queued = session.prompts.occupied(session.gateway.config.sessions.queue)
    if session.turn is None and (client.terms.own_queue or not queued):
        _begin(session, Turn(session, client, request))
        return
    if client.terms.own_queue:
        raise _in_flight()
    meta = meta_in(request.members)
    read = read_prompt(request.members, session.gateway.config.limits.max_prompt_bytes)
    if session.follows and session.agent is not None:
        _forward(session, client, request, read, meta)
    elif own_meta({"_meta": meta}).get("steer") is True:
        _steer(session, client, request, read, meta)
    else:
        _queue(session, client, request, meta)


def _in_flight() -> RpcError:
    return invalid_request("A prompt is already in flight in this session", "prompt_in_flight")


def _begin(session: Session, turn: Turn) -> None:
    if session.gateway.closing:  # the turns before were settled, but agents may still work on them
        raise internal("Dragoman is shutting down", "shutdown")
    at_once = session.agent is not None and not session.recovery.pending and not session.entry.setup_waits
    if at_once:
        turn.check()
        at_once = session.services.checkpoints.begin_at_once(turn.title)
    session.prompts.turn = turn
    if at_once:
        turn.start()
    else:
        session.gateway.spawn(turn.restart_and_start())
    session.changed()


# -- the queue


def _queue(session: Session, client: Client, request: Request, meta: JsonObject) -> QueuedPrompt:
    limit = session.gateway.config.sessions.queue
    if not limit:
        raise _in_flight()
    message_id = own_meta({"_meta": meta}).get("clientMessageId")
    wanted = message_id if isinstance(message_id, str) and len(message_id) <= limits.PEER_ID_LENGTH else ""
    queued = session.prompts.add(
        client,
        request,
        request.members["prompt"],
        prompter_of(client, meta),
        partial(_start, session),
        limit,
        wanted,
    )
    log.info(
        "prompt queued", extra={"session": session.id, "client": client.key, "waiting": len(session.prompts)}
    )
    return queued


def _start(session: Session, queued: QueuedPrompt) -> None:
    """Begin the turn of a queued prompt; what is wrong with it is its answer."""
    request = queued.request
    try:
        terms = queued.client.terms
        invalid = terms.revoked or terms.lapsed
        reason = invalid() if invalid is not None else None
        if reason is not None:
            raise forbidden(reason)
        session.binding.check_open()
        _begin(session, Turn(session, queued.client, request, queued))
    except RpcError as error:
        request.fail(error)
    except Malformed as error:
        request.fail(error.as_error())
    except Exception:  # a bug of ours must not cost the client its answer
        log.exception("queued prompt could not start", extra={"session": session.id})
        request.fail(internal("Internal error in the gateway; its log has the details"))


def _forward(session: Session, client: Client, request: Request, read: Prompt, meta: JsonObject) -> None:
    """Let the owner, which has the queue, take or refuse the prompt; `Turn` does so for the first one."""
    agent = session.binding.require()
    session.check_load()
    changes = with_own_meta({"_meta": meta}, promptedBy=prompter_of(client, meta))
    params = prompt_params(request.members, session.agent_session_id, read.blocks, changes)

    def answered(reply: Reply) -> None:
        session.prompts.forwarded.pop(call, None)
        agent.origins.pop(call, None)
        session.after_replay(partial(request.answer, session.reply_for_client(reply)), client)

    call = agent.peer.request("session/prompt", params, answered)
    if not request.answered:
        request.on_cancel = partial(agent.peer.cancel, call)
        session.prompts.forwarded[call] = client, request.on_cancel
        agent.origins[call] = request.id


# -- words for the running turn


def _steer(session: Session, client: Client, request: Request, read: Prompt, meta: JsonObject) -> None:
    """Hand the message to the agent in mid-turn; if that cannot be, queue it and say so."""
    turn, agent = session.turn, session.agent
    if (
        turn is None
        or agent is None
        or not agent.ours
        or not agent.capabilities.steer
        or len(session.prompts)
    ):
        _queue_instead(
            session, client, request, meta, f"The agent {session.agent_name} takes no message in mid-turn"
        )
        return
    if turn.call is None or turn.cancelling:
        _queue_instead(session, client, request, meta, "The turn is beginning or ending")
        return
    if prompter_of(client, meta) != turn.prompter:  # rules look at who prompted the turn
        _queue_instead(session, client, request, meta, f"The turn that runs was prompted by {turn.prompter}")
        return
    blocks = read.for_agent(agent.capabilities, session.agent_name)

    def answered(reply: Reply) -> None:
        if request.answered:
            return
        if reply.ok:
            _show(session, client, blocks)
            turn.when_settled(lambda ended: request.answer(_steered(ended)))
            return
        why = str(decode_object(reply.error).get("message"))
        try:
            _queue_instead(session, client, request, meta, f"The agent did not take it ({why})")
            if session.turn is None:
                session.prompts.turn_over()
        except RpcError as error:
            request.fail(error)

    params = {"sessionId": session.agent_session_id, "prompt": blocks}
    agent.peer.request(STEER, encode(params), answered)


def _queue_instead(session: Session, client: Client, request: Request, meta: JsonObject, why: str) -> None:
    if not session.gateway.config.sessions.queue:
        raise invalid_request(
            f"{why}, and prompts are not queued here (sessions.queue = 0): send it when the turn has ended",
            "prompt_in_flight",
        )
    queued = _queue(session, client, request, meta)
    queued.told = {"steer": "queued"}
    attachment = client.attachments.get(session.id)
    if attachment is not None and not attachment.reads_journal:
        line = session.notice_line(client, f"{why}: your message is sent when the turn ends.", "info")
        session.after_events(partial(attachment.send, line), client)


def _show(session: Session, client: Client, blocks: list[Raw]) -> None:
    """Publish the message, for other clients and for later replays."""
    if session.feed.reaches(client):
        for block in blocks:
            update = {
                "sessionUpdate": "user_message_chunk",
                "content": block,
                "_meta": {"dragoman": {"steer": True}},
            }
            session.feed.publish(events.PROMPT, update_line(session.id, update), client)


def _steered(reply: Reply) -> Reply:
    """The answer of the turn that took the message, with a mark."""
    if not reply.ok:
        return reply
    return Reply(result=encode(with_own_meta(decode_object(reply.result), steer="sent")))
