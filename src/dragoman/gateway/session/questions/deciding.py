"""What the rules say about a permission question: they answer it, or say who has to."""

from __future__ import annotations

from typing import Protocol

from dragoman.gateway.json_types import JsonObject, as_object, encode, own_meta
from dragoman.gateway.session.policy.allowed_calls import AllowedCalls
from dragoman.gateway.session.policy.gate import OwnQuestion, Recorder
from dragoman.gateway.session.policy.hook_question import HookQuestion
from dragoman.gateway.session.policy.verdict import Verdict, choose_option, is_choice, named_by_kind
from dragoman.gateway.session.questions.approval import Approval
from dragoman.rpc.request import Request


class Rules(Recorder, Protocol):
    """The part of a session's policy that is used here."""

    def verdict(self, tool: JsonObject) -> Verdict: ...


def verdict_for(rules: Rules, request: Request, tool: JsonObject) -> Verdict:
    return request.verdict if isinstance(request, OwnQuestion) else rules.verdict(tool)


def approval_for(params: JsonObject, verdict: Verdict | None) -> Approval | None:
    """Who has to approve, but not who prompted or wants the mode; in a followed session, its owner says so."""
    if verdict is None:
        return Approval.read(as_object(own_meta(params).get("approval")))
    return Approval.wanted(verdict.wanted, str(verdict.act.get("promptedBy", "")))


def name_by_kind(params: JsonObject, verdict: Verdict | None) -> bool:
    """Give forged options honest names; True if there were any. Answers to a question have the names that they have."""
    if verdict is None or verdict.act.get("question"):
        return False
    if verdict.act.get("labelOnly") and is_choice(params.get("options")):
        return False
    honest = named_by_kind(params.get("options"))
    if honest is not None:
        params["options"] = honest
    return honest is not None


def answer_by_rule(
    rules: Rules, allowed: AllowedCalls, request: Request, tool: JsonObject, options: object, verdict: Verdict
) -> bool:
    """Answer by policy with an offered option; False if the question is left to the user (G-100)."""
    call, by_hook = tool.get("toolCallId"), isinstance(request, HookQuestion)
    if (
        verdict.decision != "deny"
        and not by_hook
        and allowed.covers(verdict.act, call, verdict.wanted, by_hook=True)
    ):
        once = choose_option("allow", options)
        if once is not None:  # decided when the hook told of it
            request.reply(encode({"outcome": {"outcome": "selected", "optionId": once}}))
            return True
    if verdict.decision == "ask":
        return False
    option = choose_option(verdict.decision, options)
    if verdict.decision == "allow" and (option is None or _is_told(verdict, options)):
        return False
    outcome = {"outcome": "cancelled"} if option is None else {"outcome": "selected", "optionId": option}

    def reply() -> None:
        if verdict.decision == "allow":
            allowed.add(verdict.act, call, by_hook=by_hook)
        request.reply(encode(_told(outcome, verdict.reason)))

    rules.carry_out(verdict, tool, outcome, reply, lambda reason: request.reply(_denial(options, reason)))
    return True


def _is_told(verdict: Verdict, options: object) -> bool:
    """Whether a person is told or asked something: nothing is known of the call, and nothing can be refused."""
    return verdict.act.get("labelOnly") is True and choose_option("deny", options) is None


def _denial(options: object, reason: str) -> bytes:
    option = choose_option("deny", options)
    outcome = {"outcome": "cancelled"} if option is None else {"outcome": "selected", "optionId": option}
    return encode(_told(outcome, reason))


def _told(outcome: JsonObject, reason: str | None) -> JsonObject:
    """The answer to the agent, with the reason so that it can do something else."""
    return {"outcome": outcome} | ({} if reason is None else {"_meta": {"dragoman": {"reason": reason}}})
