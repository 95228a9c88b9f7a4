"""Shows commands that an agent runs by itself in terminals of one client.

The output of such a command is in `_meta` of its tool call (`terminal_info`, `terminal_output`, `terminal_exit`).
Clients that read `_meta` draw it themselves, others get text. A client on this machine that offers terminals is asked
for one: it runs a small program of ours, the follower, which prints the output as it comes and exits with the same
code. Terminals are not released: a client may stop showing a released one.

    ANNOUNCED   the command has not started, perhaps it waits for a permission
    ASKED       the command runs; the client was asked for a terminal: the call shows no output meanwhile
    LINKED      the client has a terminal: the call refers to it
    TEXT        the client has none: this call and all later ones show text
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from dragoman.gateway.delivery import actions, replay
from dragoman.gateway.json_types import JsonObject, as_object, encode, read_object
from dragoman.gateway.ports.followers import Follower
from dragoman.gateway.rewriting import quirks
from dragoman.gateway.rewriting.updates import update_line
from dragoman.rpc.request import Reply
from dragoman.wire import limits

if TYPE_CHECKING:
    from dragoman.gateway.delivery.attachment import Attachment

log = logging.getLogger(__name__)

CREATE_PATIENCE = 5.0
"""Seconds that a client may take to create a terminal; the answer to its prompt waits so long."""
START_PATIENCE = 10.0
"""Seconds until output is shown as text too, because the client has not started the terminal's command."""
ENDED = frozenset({"completed", "failed"})
CANCELLED = 130
"""Exit code for a command that ended without one: the code after Ctrl+C."""


class State(enum.Enum):
    ANNOUNCED = "announced"
    ASKED = "asked"
    LINKED = "linked"
    TEXT = "text"


STEPS = {
    State.ANNOUNCED: {State.ASKED, State.TEXT},
    State.ASKED: {State.LINKED, State.TEXT},
    State.LINKED: set(),
    State.TEXT: set(),
}


class _Call:
    """One command."""

    def __init__(self, tool_id: str) -> None:
        self.tool_id = tool_id
        self.state = State.ANNOUNCED
        self.follower: Follower | None = None
        self.terminal = ""
        self.ended = False
        self.shown: list[object] = []
        """The tool call's content without the output."""
        self.text: list[object] = []
        """The output as text content."""

    def become(self, state: State) -> None:
        assert state in STEPS[self.state], (self.state, state)
        self.state = state

    def content(self) -> list[object]:
        match self.state:
            case State.LINKED:
                return [{"type": "terminal", "terminalId": self.terminal}, *self.shown]
            case State.TEXT:
                return [*self.shown, *self.text]
            case _:
                return self.shown


class TerminalMirror:
    """The terminals of one client in one session."""

    def __init__(self, attachment: Attachment) -> None:
        self._attachment = attachment
        self._calls: dict[str, _Call] = {}
        self._waiting: list[Callable[[], None]] = []
        self._refused = False
        """The client did not create a terminal; it is not asked again."""

    def view(self, line: bytes) -> bytes:
        """The line as this client gets it; a tool call comes with its output as text content."""
        return replay.edited(line, self._edit) if b'"tool_call' in line else line

    def after(self, action: Callable[[], None]) -> None:
        """Run `action` when every terminal that was asked for is linked, or refused."""
        if any(call.state is State.ASKED for call in self._calls.values()):
            self._waiting.append(action)
        else:
            actions.run(action, self._attachment.session.id)

    def close(self) -> None:
        """End all followers and run the waiting actions: the client is gone."""
        for call in self._calls.values():
            if call.follower is not None:
                call.follower.end(CANCELLED)
        self._calls.clear()
        self._run_waiting()

    def _edit(self, update: JsonObject) -> bool:
        meta, tool_id = as_object(update.get("_meta")), str(update.get("toolCallId"))
        call = self._calls.get(tool_id)
        if call is None:
            if self._refused or not quirks.tells_terminal(meta) or self._attachment.session.turn is None:
                return False
            if len(self._calls) >= limits.FOLLOWERS:
                return False
            call = self._calls[tool_id] = _Call(tool_id)
        return self._follow(call, update, meta)

    def _follow(self, call: _Call, update: JsonObject, meta: JsonObject) -> bool:
        status, printed = update.get("status"), quirks.printed_in(meta)
        over = "terminal_exit" in meta or status in ENDED
        call.ended = call.ended or over
        has_content = isinstance(update.get("content"), list)
        if has_content:
            call.shown, call.text = quirks.without_text(update["content"])
        ran = bool(printed) or "terminal_exit" in meta
        if call.state is State.ANNOUNCED and (ran or status == "in_progress"):
            self._ask(call)
        if call.follower is not None:
            call.follower.write(printed)
            if over:
                call.follower.end(_exit_code(meta, failed=status == "failed"))
        if call.ended and call.state is not State.ASKED:
            self._calls.pop(call.tool_id, None)
        if not has_content or call.state in (State.ANNOUNCED, State.TEXT):
            return False
        update["content"] = call.content()
        return True

    def _ask(self, call: _Call) -> None:
        session, client = self._attachment.session, self._attachment.client
        followers = session.gateway.followers if not self._refused else None
        call.follower = followers.open() if followers is not None else None
        if call.follower is None:
            call.become(State.TEXT)
            return
        call.become(State.ASKED)
        asked = {
            "sessionId": session.id,
            "command": call.follower.command,
            "args": list(call.follower.args),
            "env": [],
            "cwd": session.cwd,
        }
        number = client.peer.request("terminal/create", encode(asked), lambda reply: self._made(call, reply))
        loop = asyncio.get_running_loop()
        loop.call_later(CREATE_PATIENCE, self._late, call, number)

    def _late(self, call: _Call, number: int) -> None:
        if call.state is State.ASKED:
            self._attachment.client.peer.cancel(number)
            self._attachment.client.peer.forget(number)
            self._settle(call, "", f"no answer within {CREATE_PATIENCE:g} s")

    def _made(self, call: _Call, reply: Reply) -> None:
        if call.state is State.ASKED:
            told = read_object(reply.result) if reply.ok else {}
            terminal = told.get("terminalId")
            why = "" if reply.ok else str(read_object(reply.error).get("message"))
            self._settle(call, terminal if isinstance(terminal, str) else "", why)

    def _settle(self, call: _Call, terminal: str, why: str) -> None:
        call.terminal = terminal
        call.become(State.LINKED if terminal else State.TEXT)
        if not terminal:
            self._refused = True
            log.warning(
                "the client makes no terminal, commands are shown as text: %s",
                why or "its answer has no terminalId",
                extra={"session": self._attachment.session.id},
            )
        else:
            asyncio.get_running_loop().call_later(START_PATIENCE, self._check_started, call)
        self._tell(call, call.content())
        if call.ended:
            self._calls.pop(call.tool_id, None)
        if not any(each.state is State.ASKED for each in self._calls.values()):
            self._run_waiting()

    def _check_started(self, call: _Call) -> None:
        if call.follower is not None and not call.follower.connected and call.text:
            self._tell(call, [*call.content(), *call.text])

    def _tell(self, call: _Call, content: list[object]) -> None:
        update = {"sessionUpdate": "tool_call_update", "toolCallId": call.tool_id, "content": content}
        self._attachment.show_alone(update_line(self._attachment.session.id, update))

    def _run_waiting(self) -> None:
        waiting, self._waiting = self._waiting, []
        for action in waiting:
            actions.run(action, self._attachment.session.id)


def _exit_code(meta: JsonObject, *, failed: bool) -> int:
    code = as_object(meta.get("terminal_exit")).get("exit_code")
    if isinstance(code, int):
        return code
    return CANCELLED if failed or "terminal_exit" in meta else 0
