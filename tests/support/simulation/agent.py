"""Agents of simulated processes: each prompt is a small script that the agent performs.

A script is JSON: `{"say": 2, "ask": true, "stay": true, "say_more": 1}` says two things, asks for permission, stays
until it is cancelled or the world lets it go on, then says one thing more. Everything said is unique in its world.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from dragoman.config.model import AgentConfig
from dragoman.gateway.ports.agent import AgentEnd, AgentUnavailable
from dragoman.rpc.link import Link, LinkHandler
from dragoman.wire.framing import Frame
from support.simulation.link import SimulatedLink, connect

if TYPE_CHECKING:
    from support.simulation.process import SimulatedProcess

Message = dict[str, Any]

ABILITIES: dict[str, Message] = {
    "loads": {"loadSession": True, "sessionCapabilities": {"delete": {}}},
    "resumes": {"loadSession": True, "sessionCapabilities": {"resume": {}, "close": {}}},
    "forgets": {},
    "shares": {"loadSession": True},
}
OPTIONS = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]


class AgentLink(SimulatedLink):
    """Implements `AgentHandle`: the gateway's end of the connection to an agent."""

    agent: SimulatedAgent
    pid = 1

    def end(self) -> AgentEnd:
        return AgentEnd(exit_code=1) if self.agent.ended else AgentEnd()

    async def has_process_since(self, moment: float) -> bool:
        return False

    async def stop(self) -> None:
        for _ in range(self.loop.delay()):
            await asyncio.sleep(0)
        self.agent.exit()


class SimulatedAgent:
    """One agent program; `LinkHandler` of its end of the connection."""

    link: Link

    def __init__(self, process: SimulatedProcess, name: str) -> None:
        self.world = process.world
        self.process = process
        self.name = name
        self.number = self.world.next()
        self.ended = False
        self.known: set[str] = set()
        """Sessions that this program has open."""
        self._turns: dict[str, Performance] = {}
        self.asked: dict[int, asyncio.Future[Message]] = {}
        """Its questions that are not answered yet."""
        self._asked_count = 0

    def __repr__(self) -> str:
        return f"<agent {self.name} of process {self.process.number}>"

    def exit(self) -> None:
        if not self.ended:
            self.ended = True
            self.process.launcher.running.discard(self)
            self.link.close()
            for turn in self._turns.values():
                turn.task.cancel()

    # -- LinkHandler

    def link_opened(self, link: Link) -> None:
        self.link = link

    def link_writable(self, writable: bool) -> None:
        pass

    def link_closed(self, reason: str | None) -> None:
        self.exit()

    def link_messages(self, frames: list[Frame]) -> None:
        for frame in frames:
            assert isinstance(frame, bytes)
            message = json.loads(frame)
            if "method" not in message:
                waiting = self.asked.pop(message["id"])  # a question that was answered twice is a KeyError
                if not waiting.done():
                    waiting.set_result(message)
            elif "id" in message:
                self._request(message["id"], message["method"], message["params"])
            elif message["method"] == "session/cancel":
                turn = self._turns.get(message["params"]["sessionId"])
                if turn is not None:
                    turn.cancelled.set()

    def _request(self, id: int, method: str, params: Message) -> None:
        session = params.get("sessionId")
        if method == "initialize":
            self.reply(id, {"protocolVersion": 1, "agentCapabilities": ABILITIES[self.name]})
        elif method == "session/new":
            session = f"{self.name}-{self.world.next()}"
            self.known.add(session)
            self.world.remembered[session] = []
            commands: list[Message] = []
            self.update(
                session, {"sessionUpdate": "available_commands_update", "availableCommands": commands}
            )
            self.reply(id, {"sessionId": session})
        elif method in ("session/load", "session/resume"):
            self._come_back(id, method, session)
        elif session not in self.known:
            self.fail(id, f"unknown session {session}")
        elif method == "session/prompt":
            if session in self._turns:
                self.world.expect(False, f"two prompts at once in {session}")
            self._turns[session] = Performance(self, id, session, params["prompt"][-1]["text"])
        elif method in ("session/close", "session/delete"):
            self.known.discard(session)
            self.reply(id, {})
        elif params.get("modeId") != "silent":  # which is never answered
            self.fail(id, f"unknown method {method}")

    def _come_back(self, id: int, method: str, session: str | None) -> None:
        if session is None or session not in self.world.remembered or self.name == "forgets":
            self.fail(id, f"unknown session {session}")
            return
        self.known.add(session)
        for update in self.world.remembered[session] if method == "session/load" else ():
            self.update(session, update)
        self.reply(id, {})

    # -- saying

    def update(self, session: str, update: Message) -> None:
        self._send({"method": "session/update", "params": {"sessionId": session, "update": update}})

    def reply(self, id: int, result: Message) -> None:
        self._send({"id": id, "result": result})

    def fail(self, id: int, why: str) -> None:
        self._send({"id": id, "error": {"code": -32602, "message": why}})

    async def ask(self, session: str) -> Message:
        self._asked_count += 1
        call = self._asked_count
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self.asked[call] = answer
        tool = {"toolCallId": f"tool-{self.world.next()}", "title": "A tool", "kind": "edit"}
        params = {"sessionId": session, "toolCall": tool, "options": OPTIONS}
        self._send({"id": call, "method": "session/request_permission", "params": params})
        return await answer

    def _send(self, message: Message) -> None:
        self.link.send(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode())

    def over(self, session: str) -> None:
        self._turns.pop(session, None)


class Performance:
    """One turn: a script being performed."""

    def __init__(self, agent: SimulatedAgent, id: int, session: str, text: str) -> None:
        self._agent = agent
        self._id = id
        self._session = session
        self._script: Message = json.loads(text)
        self._script_text = text
        self.cancelled = asyncio.Event()
        agent.world.performed.append(text)
        remembered = agent.world.remembered[session]
        remembered.append({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": text}})
        self.task = agent.world.loop.create_task(self._perform(), context=agent.world.outside)

    async def _perform(self) -> None:
        script = self._script
        await self._say(script.get("say", 0))
        if script.get("ask") and not self.cancelled.is_set():
            answer = await self._agent.ask(self._session)
            self._agent.world.expect("result" in answer, f"a permission was answered with {answer}")
        if script.get("stay"):
            await self._stay()
        await self._say(script.get("say_more", 0))
        if self.cancelled.is_set() and script.get("deaf"):
            return  # the gateway gives this agent up
        self._agent.over(self._session)
        reason = "cancelled" if self.cancelled.is_set() else "end_turn"
        self._agent.reply(self._id, {"stopReason": reason})

    async def _stay(self) -> None:
        waits = [asyncio.ensure_future(event.wait()) for event in (self.cancelled, self._agent.world.go_on)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _say(self, times: int) -> None:
        agent = self._agent
        for _ in range(times):
            for _ in range(agent.world.loop.delay()):
                await asyncio.sleep(0)
            text = f"said-{agent.world.next()}"
            update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
            agent.world.said.setdefault(self._script_text, []).append(text)
            agent.world.remembered[self._session].append(update)
            agent.update(self._session, update)


class SimulatedLauncher:
    """Starts the agents of one process; implements `Launcher`."""

    def __init__(self, process: SimulatedProcess) -> None:
        self._process = process
        self.running: set[SimulatedAgent] = set()

    def identity(self, agent: AgentConfig) -> str | None:
        return None

    async def launch(
        self,
        name: str,
        agent: AgentConfig,
        handler: LinkHandler,
        cwd: str | None,
        box: object = None,
        hooks: object = None,
    ) -> AgentLink:
        loop = self._process.world.loop
        for _ in range(loop.delay()):
            await asyncio.sleep(0)
        if self._process.dead:
            raise AgentUnavailable("The process is dead")
        program = SimulatedAgent(self._process, name)
        self.running.add(program)
        outside = self._process.world.outside
        link, _ = connect(loop, (handler, self._process.context), (program, outside), AgentLink)
        link.agent = program
        return link

    def kill(self) -> None:
        for agent in sorted(self.running, key=lambda agent: agent.number):
            agent.exit()
