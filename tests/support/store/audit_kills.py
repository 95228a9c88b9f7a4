"""`kill -9` of gateways while permission questions are answered: the audit has every answer that an agent received.

A round starts a gateway with several sessions, whose agents ask one question after the other: rules allow some, deny
some, and leave the rest to the client, which answers at once. The gateway is killed after so many messages, or before
the N-th line of the code that records and answers. Agents log what they receive until their pipes end, so nothing that
left the gateway is missed.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dragoman.audit.read import Query, query
from dragoman.audit.verify import verify
from support.agents.agent_log import AgentLog
from support.gateway_process import GatewayProcess, agent
from support.processes.kill_at_line import KILL_AT
from support.rpc_peer import Message
from support.session_client import TornFraming

RULES = [
    {"name": "good", "decision": "allow", "command": [["good"]]},
    {"name": "bad", "decision": "deny", "command": [["bad"]], "reason": "Not this."},
]
YES, NO = "yes:", "no:"
KIND_OF = {YES: "allow_once", NO: "reject_once"}
WATCHED = ("audit", "gateway/session/auditing.py", "gateway/session/questions", "gateway/session/policy")


@dataclass
class Answer:
    """What an agent received: the call, and whether it may go on."""

    call: str
    allowed: bool


class AuditKills:
    def __init__(
        self, home: Path, workspace: Path, seed: int = 0, sessions: int = 3, questions: int = 20
    ) -> None:
        """`questions` of each session."""
        self.home, self.workspace = home, workspace
        self.sessions, self.questions = sessions, questions
        self.random = random.Random(seed)
        self.round = 0
        self.answers = 0
        """Answers that agents received, in all rounds."""
        self._chosen: dict[str, str] = {}

    async def kill_at_random(self) -> None:
        await self._run(after=self.random.randint(0, self.sessions * self.questions * 3))

    async def kill_at(self, what: str, number: int) -> bool:
        """Kill before a line that records or answers, by its number or state; False if there are fewer."""
        killed = await self._run(at=f"{what} {number} {','.join(WATCHED)}")
        shutil.rmtree(
            self.home / "audit", ignore_errors=True
        )  # what it holds is read at the start, line by line
        return killed

    async def _run(self, after: int | None = None, at: str = "") -> bool:
        self.round += 1
        heard = AgentLog(self.home / f"heard-{self.round}.jsonl")
        env = {KILL_AT: at} if at else None
        config = {
            "default_agent": "scripted",
            "log": {"level": "warning"},
            "policy": {"rules": RULES},
            "agents": {"scripted": agent("--session-ids", "s{pid}-", *heard.flags)},
        }
        gateway = await GatewayProcess.start(
            self.home, "acp", "scripted", config=config, framing=TornFraming(), env=env
        )
        try:
            killed = await self._ask_and_kill(gateway, after)
        finally:
            await gateway.stop()
        self._compare(heard)
        return killed

    async def _ask_and_kill(self, gateway: GatewayProcess, after: int | None) -> bool:
        gateway.on("session/request_permission", self._choose)
        open_turns: set[Any] = set()
        try:
            await gateway.initialize()
            for number in range(self.sessions):
                session = await gateway.new_session(self.workspace)
                blocks = [{"type": "text", "text": self._script(number)}]
                params = {"sessionId": session, "prompt": blocks}
                open_turns.add(gateway.start_request("session/prompt", params))
            start = len(gateway.received)

            def over(message: Message) -> bool:
                open_turns.discard(message.get("id") if "method" not in message else None)
                return not open_turns or (after is not None and len(gateway.received) - start >= after)

            await gateway.next_message(over)
        except (ConnectionError, EOFError):
            return await gateway.wait_exit() == -signal.SIGKILL
        if after is not None:
            await gateway.kill()
        return False

    def _script(self, session: int) -> str:
        lines = []
        for number in range(self.questions):
            call = f"{self.round}-{session}-{number}"
            program = ("good", "bad", "other")[(number + session) % 3]
            lines.append(f"ask {question(call, program)}")
        return "\n".join(lines)

    def _choose(self, params: Message) -> Message:
        call = params["toolCall"]["toolCallId"]
        wanted = KIND_OF[self.random.choice((YES, NO))]
        (option,) = (each["optionId"] for each in params["options"] if each["kind"] == wanted)
        self._chosen[call] = option
        return {"outcome": {"outcome": "selected", "optionId": option}}

    def _compare(self, heard: AgentLog) -> None:
        found = list(query(self.home / "audit", Query()))
        report = verify(self.home / "audit")
        assert report.consistent, report.problems
        for answer in received(heard):
            self.answers += 1
            told = [self._told(record) for record in found if record.get("call") == answer.call]
            final = [each for each in told if each is not None]
            assert final == [answer.allowed], f"round {self.round}: {answer} is in the audit as {final}"

    def _told(self, record: Message) -> bool | None:
        """Whether a record allows its call; None for one that does not decide."""
        if record["kind"] == "decision" and record["decision"] != "ask":
            return bool(record["decision"] == "allow")
        if record["kind"] != "answer":
            return None
        option = record["outcome"]["optionId"]
        assert option == self._chosen[record["call"]]
        return YES in option or ("once" in option and "reject" not in option)


def question(call: str, program: str) -> str:
    line = f"{program} {call}"
    tool = {"toolCallId": call, "kind": "execute", "title": line, "rawInput": {"command": line}}
    options = [{"optionId": f"{word}{call}", "name": kind, "kind": kind} for word, kind in KIND_OF.items()]
    return json.dumps({"toolCall": {**tool, "status": "pending"}, "options": options})


def received(heard: AgentLog) -> list[Answer]:
    """The answers to questions that reached agents; the options have the names of their calls."""
    found = []
    for message in heard.messages:
        outcome = (message.get("result") or {}).get("outcome") if "method" not in message else None
        if isinstance(outcome, dict) and "optionId" in outcome:
            word, _, call = outcome["optionId"].partition(":")
            found.append(Answer(call, f"{word}:" == YES))
    return found
