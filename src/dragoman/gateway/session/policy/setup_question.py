"""The commands that prepare a new worktree (`worktrees.setup`): an act under the policy, asked about in the first turn.

The question is a permission question in the turn, because clients expect none before a session exists or between turns.
Rules and remembered answers hold as for an agent's commands. A refusal or a failure is told, and the turn goes on.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from dragoman.gateway.ids import new_question_id
from dragoman.gateway.json_types import JsonObject, as_object
from dragoman.gateway.ports.worktrees import WorktreeError
from dragoman.gateway.rewriting import quirks
from dragoman.gateway.session.policy.gate import ALLOW, ALLOWED, DENIED, OPTIONS, OwnQuestion
from dragoman.gateway.session.policy.verdict import Verdict

if TYPE_CHECKING:
    from dragoman.gateway.session.session import Session
    from dragoman.rpc.request import Request

log = logging.getLogger(__name__)

NAME = "worktrees.setup"


async def prepare(session: Session, request: Request, by: str) -> None:
    """Ask about the commands for a session's new worktree, and run them; `request` is the prompt that waits."""
    worktrees = session.gateway.worktrees
    if worktrees is None or session.follows or not session.entry.setup_waits:
        return
    try:
        lines = await worktrees.setup_lines(session.id)
        if not lines:
            outcome = "none"
        elif await _allowed(session, request, _shown(lines)):
            await worktrees.set_up(session.id, lines, by)
            outcome = "done"
        elif session.cancelling or request.answered:
            return  # the next turn asks again
        else:
            session.notice(
                "The commands of worktrees.setup were not run, since they were not approved: "
                + "; ".join(lines)
            )
            outcome = "refused"
    except WorktreeError as error:
        session.notice(f"The worktree is not prepared: {error}", "error")
        outcome = "failed"
    known = as_object(session.entry.extra.get("worktree"))
    session.entry.save_extra(worktree={**known, "setup": outcome})


def _shown(lines: list[str]) -> JsonObject:
    text = "\n".join(lines)
    return {
        "toolCallId": new_question_id(),
        "name": NAME,
        "kind": "execute",
        "status": "pending",
        "title": f"Prepare the worktree: {'; '.join(lines)}"[:200],
        "rawInput": {"command": text},
        "content": [{"type": "content", "content": {"type": "text", "text": text}}],
    }


async def _allowed(session: Session, request: Request, tool: JsonObject) -> bool:
    policy = session.policy
    verdict = policy.verdict(tool)
    if verdict.decision == "deny":
        policy.record(verdict, tool, DENIED)
        session.notice(f"{tool['title']} is denied by the rule {verdict.rule!r}.")
        return False
    if verdict.decision == "ask":
        allowed = await _asked(session, request, tool, verdict)
    else:
        session.publish(quirks.announcement(tool))
        done: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        policy.carry_out(verdict, tool, ALLOWED, lambda: done.set_result(None), done.set_result)
        allowed = await done is None
    status = "completed" if allowed else "failed"
    closing = {"sessionUpdate": "tool_call_update", "toolCallId": tool["toolCallId"], "status": status}
    policy.see(closing)
    session.publish(closing)
    return allowed


async def _asked(session: Session, request: Request, tool: JsonObject, verdict: Verdict) -> bool:
    answered: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
    params: JsonObject = {"sessionId": session.id, "toolCall": tool, "options": OPTIONS}
    question = OwnQuestion(request, params, verdict, answered.set_result)
    request.on_cancel = session.cancel  # a cancelled prompt ends its turn, and the turn its questions
    session.questions.permission(question)
    outcome = await answered
    return outcome.get("outcome") == "selected" and outcome.get("optionId") == ALLOW
