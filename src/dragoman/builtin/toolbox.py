"""Runs tools: every call is checked against the mode, shown, asked about where needed, and its outcome reported."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from dragoman.builtin.always_allowed import ALLOW_ALWAYS, ALLOW_ONCE, options
from dragoman.builtin.client import ASK
from dragoman.builtin.errors import InvalidArguments, Refused, ToolError
from dragoman.builtin.files.search import SearchError
from dragoman.builtin.files.workspace import Workspace
from dragoman.builtin.modes import MODES, Mode
from dragoman.builtin.tools import BOXED, COMMAND_TOOLS, TOOLS
from dragoman.builtin.tools.context import ToolContext
from dragoman.builtin.tools.tool import (
    Intent,
    Json,
    Picture,
    Result,
    Scope,
    Subject,
    Tool,
    printable,
    text_content,
)
from dragoman.wire.errors import RpcError

if TYPE_CHECKING:
    from dragoman.builtin.session import Session

log = logging.getLogger(__name__)

_BOXED = {tool.name: tool for tool in BOXED}
_CHANGES = frozenset({"title", "locations", "content"})
"""Members of a call that are told again once they are known better."""
Status = Literal["done", "failed", "invalid", "refused"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a call ended, for the model or the user who made it."""

    status: Status
    text: str
    pictures: Sequence[Picture] = ()
    to_person: str | None = None
    """The message for the user in place of `text`, which is for the model."""


class Toolbox:
    """The tools of one session, its own and those of its MCP servers."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.external: dict[str, Tool] = {}
        """Tools of MCP servers, by the name that models use."""

    def available(self) -> list[Tool]:
        """The tools that the mode does not deny."""
        verdicts = self._mode.verdicts
        boxed = BOXED if self._mode.boxed else ()
        every = [*TOOLS.values(), *boxed, *self.external.values()]
        return [tool for tool in every if verdicts[tool.effect] != "deny"]

    async def call(self, name: str, arguments: Mapping[str, Any], *, as_message: bool = False) -> Outcome:
        """Run one call; every failure becomes an outcome, only cancellation is raised.

        `as_message`: a slash command makes the call, and sends the outcome as a message too, so a terminal need not
        show the call's result.
        """
        tool = TOOLS.get(name) or self.external.get(name) or _BOXED.get(name)
        if tool is None and as_message:
            tool = COMMAND_TOOLS.get(name)
        call = _Call(self._session, tool, as_message)
        if tool is None:
            names = ", ".join(known.name for known in self.available())
            return call.failed(InvalidArguments(f"There is no tool {name!r}; there are: {names}."), arguments)
        try:
            return call.done(await self._run(tool, call, arguments))
        except asyncio.CancelledError:
            call.stopped()
            raise
        except (ToolError, FileNotFoundError, SearchError) as error:
            return call.failed(error, arguments)
        except (RpcError, OSError) as error:
            return call.failed(ToolError(str(error)), arguments)
        except Exception as error:  # a call without an outcome would make the conversation unusable
            log.exception("the tool %s failed", name)
            words = (
                f"{name} failed with {type(error).__name__}, a bug of this agent: its log has the details."
            )
            return call.failed(ToolError(words), arguments)

    async def _run(self, tool: Tool, call: _Call, arguments: Mapping[str, Any]) -> Result:
        parsed = tool.parse(arguments)
        verdict = self._mode.verdicts[tool.effect]
        if verdict == "deny" or (tool.name in _BOXED and not self._mode.boxed):
            raise Refused(f"{tool.name} is not available in the mode {self._mode.name!r}.")
        session = self._session
        call.workspace = workspace = await session.files()
        context = ToolContext(
            mode=self._mode,
            workspace=workspace,
            box=session.box,
            roots=session.workspace.roots,
            commands=session.commands,
            show=call.show,
            set_plan=session.set_plan,
        )
        decided = False
        if tool.subject is not None and session.client.has_rules:
            subject = tool.subject(context, parsed)
            call.begin(subject, arguments)
            decided = await self._decide(call, subject, unasked=verdict == "allow")
        intent = await tool.prepare(context, parsed)
        call.begin(intent, arguments)
        if not decided and (verdict == "ask" or session.client.has_rules):
            await self._ask(call, intent.scope, unasked=verdict == "allow")
        if verdict == "ask" or session.client.has_rules:
            mode = self._mode  # it may have changed while the question was open
            if mode.verdicts[tool.effect] == "deny" or mode.boxed != context.mode.boxed:
                raise Refused(f"{tool.name} is not available in the mode {self._mode.name!r}.")
        call.started()
        return await intent.act()

    async def _decide(self, call: _Call, subject: Subject, *, unasked: bool) -> bool:
        """Ask the rules about a call before anything is read for it; False if a person has to be asked as well."""
        unasked = self._is_allowed(subject.scope, unasked)
        return await self._chosen(call, subject.scope, "rules" if unasked else "first") != ASK

    async def _ask(self, call: _Call, scope: Scope | None, *, unasked: bool) -> None:
        """Ask about a call; one that is allowed already is told to the gateway, whose rules may be about it."""
        unasked = self._is_allowed(scope, unasked)
        if not unasked or self._session.client.has_rules:
            await self._chosen(call, scope, unasked)

    def _is_allowed(self, scope: Scope | None, unasked: bool) -> bool:
        return unasked or (scope is not None and self._session.always_allowed.covers(scope))

    async def _chosen(self, call: _Call, scope: Scope | None, unasked: bool | str) -> str:
        """The answer that allows a call, or `ASK`; raises if it is refused."""
        session = self._session
        chosen, reason = await session.client.ask_why(
            session.id, call.question(), list(options(scope)), unasked=unasked
        )
        if chosen is None:
            raise asyncio.CancelledError
        if chosen == ALLOW_ALWAYS and scope is not None:
            session.always_allowed.remember(scope)
        elif chosen not in (ALLOW_ONCE, ASK) and reason is not None:
            raise Refused(f"A rule does not allow this: {reason}", f"Not done: {reason}")
        elif chosen not in (ALLOW_ONCE, ASK):
            raise Refused(
                "The user rejected this. Do not try it in another way; ask what to do instead.",
                "Not done: it was not allowed.",
            )
        return chosen

    @property
    def _mode(self) -> Mode:
        return MODES[self._session.mode]


class _Call:
    """One tool call as the client sees it."""

    def __init__(self, session: Session, tool: Tool | None, as_message: bool) -> None:
        self._session = session
        self._tool = tool
        self._as_message = as_message
        self._id = f"call_{secrets.token_hex(8)}"
        self._shown: Json = {}
        self._asked = False
        self.workspace: Workspace = session.workspace
        """The workspace whose paths the call reports; those of a box are reported as they are outside."""

    def begin(self, about: Intent | Subject, arguments: Mapping[str, Any]) -> None:
        """Show what the call is about to do, first by its subject if the tool has one."""
        content = about.content if isinstance(about, Intent) else ()
        self._announce(about.title, arguments, about.locations, content)

    def _announce(
        self,
        title: str,
        arguments: Mapping[str, Any],
        locations: Sequence[Json] = (),
        content: Sequence[Json] = (),
    ) -> None:
        shown_before = bool(self._shown)
        self._shown = {
            "toolCallId": self._id,
            "title": title,
            "kind": self._tool.kind if self._tool is not None else "other",
            "status": "pending",
            "rawInput": dict(arguments),
        }
        if self._tool is not None:
            mcp = {} if self._tool.mcp is None else {"mcp": self._tool.mcp}
            self._shown["_meta"] = {"dragoman": {"toolName": self._tool.name, **mcp}}
        if locations:
            self._shown["locations"] = self._outside(locations)
        if content:
            self._shown["content"] = self._outside(content)
        if not shown_before:
            self._session.update({"sessionUpdate": "tool_call", **self._shown})
            return
        self._update({name: told for name, told in self._shown.items() if name in _CHANGES})

    def question(self) -> Json:
        self._asked = True
        return self._shown

    def started(self) -> None:
        self._asked = True
        self._update({"status": "in_progress"})

    def show(self, content: Sequence[Json]) -> None:
        self._session.update(
            {"sessionUpdate": "tool_call_update", "toolCallId": self._id, "content": list(content)},
            passing=True,
        )

    def end(self, status: str, content: Sequence[Json], output: Any, *, text_says_all: bool = False) -> None:
        if not self._shown:
            return  # cancelled before it was shown
        fields: Json = {"status": status, "content": self._outside(content), "rawOutput": output}
        said = text_says_all or not any(part["type"] == "diff" for part in content)
        own = {"told": True} if self._as_message and said else {}
        if not self._asked:
            own["notRun"] = True
        if own:
            fields["_meta"] = {"dragoman": own}
        self._update(fields)

    def stopped(self) -> None:
        """Report the cancellation; the output so far stays shown."""
        if self._shown:
            own = {} if self._asked else {"_meta": {"dragoman": {"notRun": True}}}
            self._update({"status": "failed", "rawOutput": "cancelled", **own})

    def done(self, result: Result) -> Outcome:
        text = printable(result.text)
        content = [text_content(text)] if result.content is None else result.content
        output = text if result.output is None else result.output
        status = "failed" if result.failed else "completed"
        self.end(status, content, output, text_says_all=result.text_says_all)
        return Outcome("failed" if result.failed else "done", text, result.pictures)

    def failed(self, error: Exception, arguments: Mapping[str, Any]) -> Outcome:
        """Report the failure, also of a call that was not shown before."""
        text = printable(self.workspace.with_outside_paths(str(error)))
        to_person = printable(error.to_person) if isinstance(error, Refused) else text
        if not self._shown:
            self._announce(self._tool.name if self._tool is not None else "Unknown tool", arguments)
        self.end("failed", [text_content(to_person)], text)
        statuses: dict[type[Exception], Status] = {InvalidArguments: "invalid", Refused: "refused"}
        return Outcome(statuses.get(type(error), "failed"), text, to_person=to_person)

    def _outside(self, parts: Sequence[Json]) -> list[Json]:
        """Locations and diffs with paths that the client knows."""
        return [
            {**part, "path": self.workspace.outside(part["path"])} if "path" in part else part
            for part in parts
        ]

    def _update(self, fields: Json) -> None:
        self._session.update({"sessionUpdate": "tool_call_update", "toolCallId": self._id, **fields})
