"""The rules in force for one session: what they say about an act of its agent, with what the gateway itself knows."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from dragoman.gateway.access.mediation import FULL, NONE, check_level, mediation_of
from dragoman.gateway.json_types import JsonObject, decode_object, encode, own_meta
from dragoman.gateway.session import auditing
from dragoman.gateway.session.policy.gate import ALLOWED, DENIED, Gate, Step
from dragoman.gateway.session.policy.hook_question import HookQuestion
from dragoman.gateway.session.policy.remembering import Remembering, add_later
from dragoman.gateway.session.policy.verdict import (
    DEFAULT,
    Verdict,
    choose_option,
    decide,
    decide_command,
    decide_service,
    decide_switch,
    decide_unasked,
    line_to_host,
)
from dragoman.gateway.session.settings.options import MODE
from dragoman.rpc.request import Request
from dragoman.wire.errors import RpcError

if TYPE_CHECKING:
    from dragoman.gateway.agent import AgentConnection
    from dragoman.gateway.session.session import Session
    from dragoman.policy.decide import Policy
    from dragoman.policy.memory.file import Remembered
    from dragoman.policy.memory.memory import Memory
    from dragoman.policy.requests.request import Surroundings

log = logging.getLogger(__name__)

RESERVED = ("default", "built in")
"""Names in records that are not those of rules."""


class SessionPolicy:
    """Made for each look at it: it has no state of its own."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def rules(self) -> Policy:
        session = self._session
        return session.gateway.policy_for(session.entry.repository or session.workspace)

    def verdict(self, tool: JsonObject) -> Verdict:
        """What the rules say about a tool call, filled with what was told of it before."""
        known = self._session.tools.filled(tool)
        return decide(self.rules, known, self.surroundings(known), self.remembered)

    @property
    def remembered(self) -> Remembered | None:
        """What people had us remember; None if each agent remembers for itself."""
        gateway = self._session.gateway
        return gateway.remembered if gateway.config.policy.remember == "gateway" else None

    @property
    def remembering(self) -> Remembering:
        return Remembering(self.rules, self.remembered, self._remember_later)

    def _remember_later(self, memory: Memory) -> None:
        session, kept = self._session, self.remembered
        if kept is not None:
            session.gateway.spawn(add_later(kept, memory, session.notice))

    def passes(self, request: Request, tool: JsonObject, options: object, unasked: object) -> bool:
        """Answer for a call that its agent would not have asked about, if no rule decides it; else False.

        Where a rule asks and `unasked` is "rules" or "first", the answer says so, and the agent asks. With "first" it
        asks too where no rule decides.
        """
        known = self._session.tools.filled(tool)
        deciding = decide if unasked == "first" else decide_unasked
        verdict = deciding(self.rules, known, self.surroundings(known), self.remembered)
        default = (verdict.decision, verdict.rule) == ("allow", DEFAULT)
        option = choose_option("allow", options)
        outcome: JsonObject = {"outcome": "selected", "optionId": option}
        if isinstance(request, HookQuestion) and self._was_allowed(verdict, known):
            request.reply(encode({"outcome": outcome}))
            return True
        if verdict.decision == "ask" and unasked in ("rules", "first"):
            outcome = {"outcome": "cancelled"}
        elif self._session.cancelling or not default or option is None:
            return False
        own = {"by": verdict.rule, "decision": verdict.decision}

        def reply() -> None:
            request.reply(encode({"outcome": outcome, "_meta": {"dragoman": own}}))

        def refuse(reason: str) -> None:
            request.reply(
                encode({"outcome": {"outcome": "cancelled"}, "_meta": {"dragoman": {"reason": reason}}})
            )

        if verdict.decision == "ask":
            reply()  # the agent asks, and that is recorded
        else:
            if isinstance(request, HookQuestion):
                untold = partial(auditing.untold, self._session, known)
                self._session.tools.expect(known.get("toolCallId"), untold)
            self.carry_out(verdict, known, outcome, reply, refuse, journaled=False)
        return True

    def _was_allowed(self, verdict: Verdict, tool: JsonObject) -> bool:
        """Whether a call that a hook tells of was allowed when the agent asked about it: Qwen Code asks first."""
        allowed, call = self._session.tools.allowed, tool.get("toolCallId")
        return verdict.decision != "deny" and allowed.covers(verdict.act, call, verdict.wanted, by_hook=False)

    def serve(self, request: Request, go_on: Callable[[], None]) -> None:
        """Call `go_on` if an agent's `fs/*` or `terminal/create` is allowed; raises if it is denied."""
        from dragoman.policy.requests.service import tool_call_of

        method, params = request.method, decode_object(request.params)
        verdict = decide_service(self.rules, method, params, self.surroundings({}), self.remembered)
        # An agent reads thousands of files: those that a rule allows are not recorded.
        recorded = method != "fs/read_text_file"
        self._gate().check(request, tool_call_of(method, params), verdict, go_on, recorded=recorded)

    def switch(self, request: Request, mode: str, by: str, go_on: Callable[[], None]) -> None:
        """Call `go_on` if the client of the identity `by` may switch the session to a mode; raises if it is denied."""
        from dragoman.policy.requests.service import switch_call_of

        if self._session.follows:  # its owner asks its rules
            go_on()
        else:
            self.check_level(mode)
            self._gate().check(request, switch_call_of(mode), self.switch_verdict(mode, by), go_on)

    async def allow_command(self, request: Request, line: str, by: str, host: str = "") -> None:
        """Return if a command that a client wants is allowed, by rules or a person; raises if it is not.

        What no rule is about is allowed: the client asked for it.
        """
        from dragoman.policy.requests.service import command_call_of

        tool = command_call_of(request.method, line)
        around = replace(
            self.surroundings({}), prompted_by=by, boxed=False, moved=False, to_host=None, line_to_host=None
        )
        verdict = decide_command(self.rules, tool, host, around, self.remembered)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        step = Step(request, done)
        self._gate().check(step, tool, verdict, lambda: done.set_result(None))
        try:
            await done
        except asyncio.CancelledError:
            step.cancel()
            raise

    def agent_switched(self, former: object) -> None:
        """Undo a switch of the mode that the agent made by itself and that the rules do not allow."""
        from dragoman.policy.requests.service import switch_call_of

        session = self._session
        mode = session.options.value(MODE)
        told = isinstance(mode, str) and isinstance(former, str) and mode != former
        if not told or session.follows:
            return
        auditing.mode_reported(session, former, mode)
        if session.choices.is_granted(mode):
            return
        verdict = self.switch_verdict(str(mode))
        if verdict.decision == "allow" or session.agent is None:
            return
        self.record(verdict, switch_call_of(str(mode)), DENIED)
        session.notice(
            f"The agent switched to the mode {mode!r} by itself, which the rule {verdict.rule!r} does not allow: "
            f"it is switched back to {former!r}."
        )
        session.gateway.spawn(self._switch_back(session.agent, str(former)))

    async def _switch_back(self, agent: AgentConnection, mode: str) -> None:
        await self._session.choices.switch_back(agent, mode)
        if self._session.options.value(MODE) == mode:
            auditing.mode_accepted(self._session, mode)

    async def may_switch_again(self, mode: str) -> bool:
        """Whether a restarted agent is switched to a mode that was chosen before; tells if it is not."""
        from dragoman.policy.requests.service import switch_call_of

        session, verdict, tool = self._session, self.switch_verdict(mode), switch_call_of(mode)
        try:
            self.check_level(mode)
        except RpcError as error:
            session.notice(f"The agent was started anew without the mode {mode!r}: {error.message}")
            return False
        if verdict.decision == "allow":
            done: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
            self.carry_out(
                verdict,
                tool,
                ALLOWED,
                lambda: done.set_result(None),
                done.set_result,
                journaled=verdict.rule != DEFAULT,
            )
            return await done is None
        self.record(verdict, tool, DENIED)
        does = "does not allow it" if verdict.decision == "deny" else "asks about it: choose it again"
        session.notice(
            f"The agent was started anew without the mode {mode!r}: the rule {verdict.rule!r} {does}."
        )
        return False

    async def leave_mode(self, agent: AgentConnection) -> None:
        """Switch an agent that came back in a mode that the rules do not allow to the first one that they do."""
        from dragoman.policy.requests.service import switch_call_of

        session = self._session
        mode = session.options.value(MODE)
        if not isinstance(mode, str) or session.choices.is_granted(mode):
            return
        verdict = self.switch_verdict(mode)
        if verdict.decision == "allow":
            return
        self.record(verdict, switch_call_of(mode), DENIED)
        others = [str(one) for one in session.options.modes() if one != mode]
        other = next((one for one in others if self.switch_verdict(one).decision == "allow"), None)
        told = f"The agent came back in the mode {mode!r}, which the rule {verdict.rule!r} does not allow"
        if other is None:
            session.notice(f"{told}, and it has no other one.", "error")
            return
        session.notice(f"{told}: it is switched to {other!r}.")
        await session.choices.switch_back(agent, other)

    def watches_calls(self) -> bool:
        """Whether a call that slipped by the rules is marked: not where nothing of the agent is known to reach them."""
        session = self._session
        if session.follows or session.turn is None:  # without a turn it is the agent's replay of its history
            return False
        mediation = mediation_of(session.agent_config, boxed=self._boxed)
        return mediation.in_mode(session.options.value(MODE)) != NONE

    def ran_nothing(self, tool: JsonObject) -> bool:
        """Whether a call failed before it did anything: the built-in agent, which is of this program, says so."""
        return self._session.agent_config.kind == "builtin" and own_meta(tool).get("notRun") is True

    def slipped(self, title: object) -> None:
        """Tell, once in a turn, that an agent which tells of every call did not; with `policy.require` end the turn."""
        session = self._session
        mediation = mediation_of(session.agent_config, boxed=self._boxed)
        if mediation.in_mode(session.options.value(MODE)) != FULL or not session.tools.first_slip():
            return
        required = session.gateway.config.policy.require == FULL
        session.notice(
            f"{title or 'A tool call'} ran before the rules saw it, though the agent {session.agent_name} should tell "
            f"of every call: its hooks may be switched off in its own settings."
            f"{' The turn is ended, since policy.require is full.' if required else ''}"
        )
        if required:
            session.cancel()

    def mediation(self) -> dict[str, str]:
        """How much of what the agent does in its present mode reaches the rules, and why."""
        return mediation_of(self._session.agent_config, boxed=self._boxed).shown(
            self._session.options.value(MODE)
        )

    def check_level(self, mode: str | None = None) -> None:
        """Raise if the agent, in this mode or in the present one, is below `policy.require`."""
        session = self._session
        required = session.gateway.config.policy.require
        if required is None:
            return
        present = mode if mode is not None else session.options.value(MODE)
        check_level(required, session.agent_name, session.agent_config, present, boxed=self._boxed)

    @property
    def _boxed(self) -> bool:
        agent = self._session.agent
        return agent is not None and agent.box is not None

    def switch_verdict(self, mode: str, by: str | None = None) -> Verdict:
        """What the rules say about a switch to a mode; `by` is the identity that wants it, None: the agent."""
        around = self.surroundings({})
        return decide_switch(self.rules, mode, replace(around, prompted_by=by) if by is not None else around)

    def _gate(self) -> Gate:
        session = self._session
        return Gate(session, session.tools, self, session.questions.permission)

    def surroundings(self, tool: JsonObject) -> Surroundings:
        """What the gateway itself knows about an act."""
        from dragoman.policy.requests.request import Surroundings

        session = self._session
        agent, turn, mode = session.agent, session.turn, session.options.value(MODE)
        paths = agent.paths if agent is not None else None
        return Surroundings(
            agent=session.agent_name,
            session=session.id,
            cwd=session.cwd,
            workspace=session.workspace,
            project=session.entry.repository or "",
            prompted_by=turn.prompter if turn is not None else "",
            mode=mode if isinstance(mode, str) else "",
            boxed=agent is not None and agent.box is not None and agent.box.apart,
            watched=any(each.client.may_answer for each in session.attachments),
            moved=session.tools.seen.moved(tool.get("toolCallId"), session.cwd, session.workspace),
            to_host=paths.to_host.value if paths is not None else None,
            line_to_host=line_to_host(paths),
        )

    def carry_out(
        self,
        verdict: Verdict,
        tool: JsonObject,
        outcome: JsonObject,
        then: Callable[[], None],
        refuse: Callable[[str], None],
        *,
        journaled: bool = True,
    ) -> None:
        """Record a decision that was taken without a person, then do what follows from it.

        `refuse` is called with the reason if it cannot be recorded.
        """

        def recorded() -> None:
            if journaled:
                self._journal(verdict, tool, outcome)
            then()

        go_on = partial(self._session.services.checkpoints.after, recorded)
        auditing.decided(self._session, verdict, self.rules, tool.get("toolCallId"), go_on, refuse)

    def see(self, tool: JsonObject) -> None:
        auditing.see_tool(self._session, tool)

    def record(self, verdict: Verdict, tool: JsonObject, outcome: JsonObject) -> None:
        """Record a decision that was taken without a person and allows nothing."""
        auditing.asked(self._session, verdict, self.rules, tool.get("toolCallId"))
        self._journal(verdict, tool, outcome)

    def _journal(self, verdict: Verdict, tool: JsonObject, outcome: JsonObject) -> None:
        """Journal a decision that was taken without a person (G-104)."""
        session = self._session
        session.record(
            "decision",
            by=verdict.rule,
            decision=verdict.decision,
            toolCall=tool,
            outcome=outcome,
            why=verdict.why,
            level=verdict.level,
            act=verdict.act,
        )
        log.info(
            "permission decided by policy",
            extra={"session": session.id, "rule": verdict.rule, "decision": verdict.decision},
        )

    def names(self) -> frozenset[str]:
        """Names of the rules as they are in records."""
        policy = self.rules
        rules = (*policy.administrator, *policy.narrow, *policy.user)
        return frozenset((*RESERVED, *(rule.name for rule in rules)))
