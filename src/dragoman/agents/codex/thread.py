"""One conversation in Codex: its turn, its items, its permission questions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

import msgspec

from dragoman.agents.adapter import Upstream
from dragoman.agents.codex import approval, commands, errors, prompt, user_input
from dragoman.agents.codex.items import Items
from dragoman.agents.codex.options import CodexOptions
from dragoman.agents.codex.server import Server
from dragoman.agents.codex.tokens import TurnTokens
from dragoman.agents.native import usage
from dragoman.agents.native.permission import ask
from dragoman.rpc.request import Request
from dragoman.wire.errors import RpcError, invalid_request
from dragoman.wire.json_types import JsonObject, as_object, objects

log = logging.getLogger(__name__)


class Thread:
    def __init__(self, id: str, cwd: str, options: CodexOptions, server: Server, handle: Upstream) -> None:
        self.id = id
        self.options = options
        self._cwd = cwd
        self._server = server
        self._handle = handle
        self._items = Items()
        self._turn: asyncio.Future[JsonObject] | None = None
        self._turn_id = ""
        self._cancelled = False
        self._tokens = TurnTokens()
        self._questions: dict[bytes, asyncio.Task[None]] = {}

    # -- requests

    async def prompt(self, blocks: object) -> JsonObject:
        if self._turn is not None:
            raise invalid_request("A prompt is already in flight in this session", "prompt_in_flight")
        turn: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._turn, self._turn_id, self._cancelled = turn, "", False
        self._tokens.turn_begins()
        try:
            method, members = commands.find(blocks) or ("turn/start", {"input": prompt.user_input(blocks)})
            if method == "turn/start":
                members = {**members, **self.options.for_turn(self._cwd)}
            started = await self._server.ask(method, {"threadId": self.id, **members})
            # A compaction has a turn, but its id only comes with turn/started.
            self._turn_id = str(as_object(started.get("turn")).get("id") or self._turn_id)
            if self._cancelled and self._turn_id:
                await self._interrupt()
            return await turn
        finally:
            self._turn = None

    async def steer(self, blocks: object) -> JsonObject:
        """Send a message to the running turn."""
        if self._turn is None or not self._turn_id:
            raise invalid_request("No turn runs in this session: send a prompt", "no_turn")
        said = {"threadId": self.id, "expectedTurnId": self._turn_id, "input": prompt.user_input(blocks)}
        await self._server.ask("turn/steer", said)
        return {}

    def cancel(self) -> None:
        if self._turn is None or self._cancelled:
            return
        self._cancelled = True
        for task in list(self._questions.values()):
            task.cancel()
        if self._turn_id:
            self._handle.spawn(self._interrupt())

    async def _interrupt(self) -> None:
        try:
            await self._server.ask("turn/interrupt", {"threadId": self.id, "turnId": self._turn_id})
        except RpcError as error:
            log.info("codex had nothing to interrupt: %s", error, extra={"agent_session": self.id})

    async def choose(self, option: str, value: str) -> None:
        self.options.choose(option, value)

    def tell_commands(self) -> asyncio.Task[None] | None:
        return self._handle.spawn(self._tell_commands())

    async def _tell_commands(self) -> None:
        skills: object = None
        try:
            skills = (await self._server.ask("skills/list", {"cwds": [self._cwd]})).get("data")
        except RpcError as error:
            log.info("codex has no skills: %s", error, extra={"agent_session": self.id})
        self.tell(commands.commands_update(skills))

    def replay(self, thread: JsonObject) -> None:
        """Send the items of former turns as updates."""
        items = Items()
        for turn in objects(thread.get("turns")):
            for item in objects(turn.get("items")):
                for update in items.replay(item):
                    self.tell(update)

    # -- notifications of Codex

    def notified(self, method: str, params: JsonObject) -> None:
        if method == "turn/completed":
            self._completed(as_object(params.get("turn")))
            return
        if method == "turn/started":
            self._began(str(as_object(params.get("turn")).get("id")))
            return
        if method == "error" and params.get("willRetry") is True:
            meta = {"dragoman": {"state": "retrying", "error": as_object(params.get("error")).get("message")}}
            self.tell({"sessionUpdate": "session_info_update", "_meta": meta})
            return
        if method == "serverRequest/resolved":
            self._withdraw(msgspec.json.encode(params.get("requestId")))
            return
        if method == "thread/tokenUsage/updated":
            self._tokens.read(as_object(params.get("tokenUsage")))
        for update in self._items.read(method, params):
            self.tell(update)

    def failed(self, error: RpcError) -> None:
        """Fail the turn, since the program has ended."""
        if self._turn is not None and not self._turn.done():
            self._turn.set_exception(error)

    def _began(self, turn_id: str) -> None:
        if self._turn is not None and not self._turn_id:
            self._turn_id = turn_id
            if self._cancelled:
                self._handle.spawn(self._interrupt())

    def _completed(self, turn: JsonObject) -> None:
        for update in self._items.end_turn():
            self.tell(update)
        waiting = self._turn
        if waiting is None or waiting.done():
            return
        status = turn.get("status")
        if status == "failed" and not self._cancelled:
            failure = errors.failure(as_object(turn.get("error")))
            waiting.set_exception(usage.tell_with(failure, self._used()))
            return
        stopped = self._cancelled or status == "interrupted"
        answer: JsonObject = {"stopReason": "cancelled" if stopped else "end_turn"}
        if used := self._tokens.used():
            answer["usage"] = used
        waiting.set_result(usage.with_usage(answer, self._used()))

    def _used(self) -> list[JsonObject]:
        used = self._tokens.used()
        return [{**used, "model": self.options.current.get("model")}] if used else []

    # -- questions

    def asked(self, request: Request, params: JsonObject) -> None:
        if request.method in user_input.METHODS:
            self._track(request, self._ask_user(request, params))
            return
        item = approval.item_id(params)
        for update in self._items.introduce(item, approval.asked_tool(request.method, params)):
            self.tell(update)
        self._track(request, self._ask(request, item, params))

    def _track(self, request: Request, asking: Coroutine[Any, Any, None]) -> None:
        task = self._handle.spawn(asking)
        self._questions[request.id] = task
        task.add_done_callback(lambda _: self._questions.pop(request.id, None))

    async def _ask_user(self, request: Request, params: JsonObject) -> None:
        told = user_input.nothing(request.method)
        try:
            told = await user_input.answer(self._handle, self.id, request.method, params)
        finally:
            request.reply(msgspec.json.encode(told))  # also if withdrawn: Codex waits for it

    async def _ask(self, request: Request, item: str, params: JsonObject) -> None:
        method = request.method
        offered = approval.choices(method, params)
        tool = {"status": "pending", **approval.asked_tool(method, params), **self._items.known(item)}
        tool["toolCallId"] = item
        if beyond := approval.beyond(params):
            tool["rawInput"] = {**as_object(tool.get("rawInput")), **beyond}
        content = [*objects(tool.get("content")), *approval.reasons(params)]
        if content:
            tool["content"] = content
        outcome: object = None
        try:
            outcome = await ask(self._handle, self.id, tool, offered)
        finally:
            # Also if the question is withdrawn: Codex waits for its answer.
            request.reply(msgspec.json.encode(approval.answer(method, offered, outcome)))

    def _withdraw(self, request_id: bytes) -> None:
        task = self._questions.get(request_id)
        if task is not None:
            task.cancel()

    def tell(self, update: JsonObject) -> None:
        self._handle.update(self.id, update)
