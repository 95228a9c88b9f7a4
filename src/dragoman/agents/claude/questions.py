"""Questions of `claude`: whether it may use a tool, and those that it asks the user."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from dragoman.agents.adapter import Upstream
from dragoman.agents.claude import hooks, permission, tools
from dragoman.agents.native.permission import Opinion, ask, consult
from dragoman.wire.errors import RpcError
from dragoman.wire.json_types import JsonObject, as_object, objects

if TYPE_CHECKING:
    from dragoman.agents.claude.session import Session


class Questions:
    """The open questions of one session, each in a task of its own."""

    def __init__(self, session_id: str, handle: Upstream, session: Session) -> None:
        self._session_id = session_id
        self._handle = handle
        self._session = session
        self._open: dict[str, asyncio.Task[None]] = {}

    def cancel(self) -> None:
        for task in self._open.values():
            task.cancel()

    def asked(self, line: JsonObject) -> None:
        id, request = line.get("request_id"), as_object(line.get("request"))
        if request.get("subtype") == "hook_callback":
            self._start(id, self._consult(id, request))
            return
        if request.get("subtype") != "can_use_tool":
            self._session.control.refuse(id, f"{request.get('subtype')} is not supported")
            return
        tool_id, name = str(request.get("tool_use_id") or id), str(request.get("tool_name"))
        for update in self._session.stream.introduce(tool_id, name, as_object(request.get("input"))):
            self._session.tell(update)
        self._start(id, self._ask(id, tool_id, name, request))

    def _start(self, id: object, work: Coroutine[Any, Any, None]) -> None:
        task = self._handle.spawn(work)
        self._open[str(id)] = task
        task.add_done_callback(lambda _: self._open.pop(str(id), None))

    async def _consult(self, id: object, request: JsonObject) -> None:
        """`PreToolUse`: every call, before it runs; claude goes on by its own rules where ours say nothing."""
        call = as_object(request.get("input"))
        name, given = str(call.get("tool_name")), as_object(call.get("tool_input"))
        tool_id = str(request.get("tool_use_id") or call.get("tool_use_id") or id)
        own = {"_meta": {"dragoman": {"toolName": name}}}
        tool = {"toolCallId": tool_id, "status": "pending", **tools.describe(name, given), **own}
        try:
            opinion = await consult(self._handle, self._session_id, tool)
        except RpcError as error:
            opinion = Opinion("deny", f"its rules could not be asked: {error.message}")
        self._session.control.answer(id, hooks.answer(opinion))

    def withdrawn(self, line: JsonObject) -> None:
        task = self._open.get(str(line.get("request_id")))
        if task is not None:
            task.cancel()

    async def _ask(self, id: object, tool_id: str, name: str, request: JsonObject) -> None:
        call = self._session.stream.call(tool_id)
        given = as_object(request.get("input"))
        own = {"_meta": {"dragoman": {"toolName": name}}}
        tool = {"toolCallId": tool_id, "status": "pending", **tools.describe(name, given), **own}
        if name == "AskUserQuestion":
            response = await self._ask_user(tool, given)
        else:
            offered = permission.choices(request)
            response = permission.chosen(offered, await ask(self._handle, self._session_id, tool, offered))
        self._session.control.answer(id, response)
        if response["behavior"] == "allow" and call is not None:
            update = {"sessionUpdate": "tool_call_update", "toolCallId": tool_id, "status": "in_progress"}
            self._session.tell(update)

    async def _ask_user(self, tool: JsonObject, given: JsonObject) -> JsonObject:
        """Ask one question after the other; stops at the first that is not answered."""
        response: JsonObject = {"behavior": "allow", "updatedInput": given}
        for question in objects(given.get("questions")):
            offered = permission.answers(response["updatedInput"], question)
            asked = {**tool, "title": str(question.get("question", ""))}
            response = permission.chosen(offered, await ask(self._handle, self._session_id, asked, offered))
            if response["behavior"] != "allow":
                break
        return response
