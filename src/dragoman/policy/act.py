"""One normalised act: what an agent wants to do, as facts that rules are matched against."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

Access = Literal["read", "write"]


@dataclass(frozen=True, slots=True)
class Below:
    """How a program goes into a folder that it is given."""

    sure: bool = True
    """Touches every file there; else some of them, or their names alone."""
    hidden: bool = True
    """Also files and folders whose names begin with a dot."""
    links: bool = False
    """Follows links that it finds there."""
    names: tuple[str, ...] = ()
    """Only files with such names, and what is in folders with them: `find -name '*.pyc' -delete`."""


@dataclass(frozen=True, slots=True)
class Tree:
    """What is below a folder, as real paths."""

    paths: tuple[str, ...]
    complete: bool


Trees = dict[tuple[str, Below], Tree]
"""The folders that were looked into for one act."""


@dataclass(frozen=True, slots=True)
class PathFact:
    """A file or folder that is touched: absolute, resolved through symlinks. `outside` also if that is not known."""

    path: str
    access: Access
    outside: bool
    names: tuple[str, ...] = ()
    """Of a pattern: the files that it stands for now."""
    more: bool = False
    """Of a pattern: it may stand for others too, because not all of them were looked at."""
    known: bool = True
    """False if it stands as it is written, with an expansion in it: it may be any file, as one without a slash first."""
    below: Below | None = field(default=None, compare=False)
    """Of a folder, as of those among `names`: how what is in it is touched too; None if it is not."""
    fills: bool = False
    """Of a folder: files are written below it whose names the line does not tell."""
    like: tuple[str, ...] = ()
    """With `fills`: the folders whose copies they are; empty if that is not known."""
    left_out: tuple[str, ...] = ()
    """With `like`: names that are not copied, at any depth; with a slash, only folders."""

    def facts(self) -> dict[str, Any]:
        return {"path": self.path, "access": self.access, "outside": self.outside}


@dataclass(frozen=True, slots=True)
class Effect:
    """An option that makes a program do more than it is known for."""

    option: str
    does: Literal["writes", "runs"]

    def facts(self) -> dict[str, Any]:
        return {"option": self.option, "does": self.does}


@dataclass(frozen=True, slots=True)
class Command:
    words: tuple[str, ...]
    """As they are after quoting; an expansion whose value is not known stands as it is written."""
    names: tuple[str, ...] = ()
    """Words that rules compare: the program without its folder, without options that change nothing."""
    known: int = 0
    """How many of `names`, from the first, have one known value."""
    unknown: tuple[int, ...] = ()
    """Places of `words` that stand as they are written: the shell may make none or several words of them."""
    env: dict[str, str] = field(default_factory=dict)
    redirects: tuple[str, ...] = ()
    effects: tuple[Effect, ...] = ()
    paths: tuple[PathFact, ...] = ()
    hosts: tuple[str, ...] = ()
    trusted_program: bool = True
    """False for a program named by a path outside the system's folders: `./git` is not the git of a rule."""
    prints: bool = False
    """Prints what it is given or reads, so that a redirection of it is an edit."""

    neutral: bool = False
    """A builtin that changes only the shell itself, such as `cd`."""

    def facts(self) -> dict[str, Any]:
        shown: dict[str, Any] = {
            "words": list(self.words),
            "env": self.env,
            "redirects": list(self.redirects),
        }
        if self.effects:
            shown["effects"] = [effect.facts() for effect in self.effects]
        return shown


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool of an MCP server."""

    server: str
    tool: str


@dataclass(frozen=True, slots=True)
class Act:
    agent: str = ""
    session: str = ""
    workspace: str = ""
    project: str = ""
    """The repository of a session in a worktree, whose rules and remembered answers hold; else empty."""
    prompted_by: str = "local"
    tool: str = ""
    kind: str = "other"
    commands: tuple[Command, ...] = ()
    wrappers: tuple[Command, ...] = ()
    """Programs that only start another (`timeout`, `env`): looked through, and seen by rules that deny."""
    paths: tuple[PathFact, ...] = ()
    """Paths that belong to no command."""
    hosts: tuple[str, ...] = ()
    mcp: Tool | None = None
    mode: str = ""
    boxed: bool = False
    watched: bool = False
    folder: str = ""
    """Where the commands run, as a real path; empty if not known."""
    opaque: str | None = None
    """Why the shell line is not understood; None if it is."""
    label_only: bool = False
    switch: bool = False
    """A switch of the session to `mode`, by a client or by the agent itself; no call of a tool."""
    question: bool = False
    """It asks a person something and offers answers; that is no permission, so that no rule allows it."""
    trees: Trees = field(default_factory=dict, compare=False, repr=False)

    @property
    def all_paths(self) -> tuple[PathFact, ...]:
        return (*(path for command in self.commands for path in command.paths), *self.paths)

    def facts(self) -> dict[str, Any]:
        """As JSON, in the names of the documentation."""
        shown: dict[str, Any] = {
            "agent": self.agent,
            "session": self.session,
            "workspace": self.workspace,
            "promptedBy": self.prompted_by,
            "tool": self.tool,
            "kind": self.kind,
            "commands": [command.facts() for command in self.commands],
            "wrappers": [list(wrapper.words) for wrapper in self.wrappers],
            "paths": [path.facts() for path in dict.fromkeys(self.all_paths)],
            "hosts": list(
                dict.fromkeys((*(host for one in self.commands for host in one.hosts), *self.hosts))
            ),
            "mcp": {"server": self.mcp.server, "tool": self.mcp.tool} if self.mcp is not None else None,
            "mode": self.mode,
            "boxed": self.boxed,
            "watched": self.watched,
            "opaque": self.opaque,
            "labelOnly": self.label_only,
        }
        if self.commands:
            shown["folder"] = self.folder
        return shown | {"question": True} if self.question else shown
