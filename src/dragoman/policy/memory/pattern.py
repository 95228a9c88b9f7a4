"""What one remembered answer is about, never wider than the facts of the act that was asked about.

A pattern has the keys of a rule. The one of a command is exact: its words and redirections are the whole command, its
files the only ones. A person may widen a pattern; nothing here does.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Literal

import msgspec

from dragoman.config.model import PolicyRule
from dragoman.policy.act import Act, PathFact
from dragoman.policy.rules import Part, parts_of

MAX_PARTS = 20
"""Commands and files of one remembered act: more than a person would read."""
MAX_BYTES = 16 * 1024
"""Of all patterns of one answer; a file of ours is read at decisions."""
INSIDE = "{workspace}/**"
_GLOB = re.compile(r"[*?\[\]{}\0]")
_REDIRECT = re.compile(r"\d*[<>&].*", re.DOTALL)


class NotRemembered(Exception):
    """An answer cannot be remembered; says why, and what to do."""


class Pattern(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, tag=False
):
    """Conditions of a rule, with the names and meanings that they have there."""

    command: list[list[str | list[str]]] = []
    exact: bool = False
    paths: list[str] = []
    access: Literal["read", "write"] | None = None
    outside_workspace: bool | None = None
    hosts: list[str] = []
    mcp: list[str] = []
    tool: list[str] = []
    kind: list[str] = []
    agent: list[str] = []
    boxed: bool | None = None
    trust_label: bool = False

    @property
    def about_something(self) -> bool:
        """Whether it names commands, files, hosts or a server's tool: one without would allow all of a kind."""
        return bool(self.command or self.paths or self.hosts or self.mcp)

    def rule(self, decision: Literal["allow", "deny"], name: str, expires: str | None) -> PolicyRule:
        told = {key: getattr(self, key) for key in self.__struct_fields__}
        return PolicyRule(decision=decision, name=name, expires=expires, **told)

    def words(self, root: str = "") -> str:
        """In plain words, files relative to the project."""
        said = [
            f"`{_line(prefix)}`" if self.exact else f"commands that begin with `{_line(prefix)}`"
            for prefix in self.command
        ]
        if self.paths and not self.command:
            verb = {"read": "reading ", "write": "changing "}.get(self.access or "", "")
            said += [f"{verb}{_shown(path, root)}" for path in self.paths]
        if not self.command:
            said += [f"reaching {host}" for host in self.hosts]
        said += [f"the tool {tool}" for tool in self.mcp]
        words = ", ".join(said) or "any " + " or ".join(self.kind or ["call"])
        return f"{words} by {' or '.join(self.agent)}" if self.agent else words

    def text(self, root: str = "") -> str:
        """One line that a person can edit: `run pytest -q`, `run pytest *`, `write src/**`, `reach host`, `use a/b`."""
        if self.command:
            return f"run {_line(self.command[0])}{'' if self.exact else ' *'}"
        if self.mcp:
            return f"use {' '.join(self.mcp)}"
        if self.paths:
            return (
                f"{self.access or 'read'} {' '.join(shlex.quote(_shown(path, root)) for path in self.paths)}"
            )
        return f"reach {' '.join(self.hosts)}"


def patterns_of(act: Act) -> list[Pattern] | None:
    """A pattern for each part of the act; None if it can be answered only once."""
    parts = parts_of(act)
    if act.opaque is not None or not parts or len(parts) > MAX_PARTS:
        return None
    made = [_pattern(part, act) for part in parts]
    found = [pattern for pattern in made if pattern is not None]
    if len(found) < len(made) or len(msgspec.json.encode(found)) > MAX_BYTES:
        return None
    return found


def words_of(patterns: Sequence[Pattern], root: str = "") -> str:
    return ", ".join(dict.fromkeys(pattern.words(root) for pattern in patterns))


def _pattern(part: Part, act: Act) -> Pattern | None:
    command = part.command
    if not all(_is_plain(path) for path in part.paths) or not all(is_name(host) for host in part.hosts):
        return None
    paths = list(dict.fromkeys(path.path for path in part.paths))
    access = _access(part.paths)
    boxed = True if act.boxed else None
    if command is not None:
        if command.unknown or act.label_only:
            return None
        said: list[str | list[str]] = [*command.words, *command.redirects]
        hosts = list(part.hosts)
        return Pattern(command=[said], exact=True, paths=paths, access=access, hosts=hosts, boxed=boxed)
    if act.mcp is not None:
        if act.label_only or not (is_name(act.mcp.server) and is_name(act.mcp.tool)):
            return None
        return Pattern(mcp=[f"{act.mcp.server}/{act.mcp.tool}"], boxed=boxed)
    if not paths and not part.hosts:
        return None
    if act.label_only and not is_name(act.tool):
        return None
    return Pattern(
        paths=paths,
        access=access,
        hosts=list(part.hosts),
        kind=[act.kind],
        tool=[act.tool] if act.label_only else [],
        trust_label=act.label_only,
        boxed=boxed,
    )


def _access(paths: Sequence[PathFact]) -> Literal["read", "write"] | None:
    if not paths:
        return None
    return "write" if any(path.access == "write" for path in paths) else "read"


def _is_plain(path: PathFact) -> bool:
    """Whether a path stands for itself as a glob."""
    return path.known and path.path.startswith("/") and not _GLOB.search(path.path)


def is_name(text: str) -> bool:
    """Whether a text stands for itself as a glob."""
    return bool(text) and not _GLOB.search(text)


def read_text(text: str, shown: Sequence[Pattern], root: str) -> Pattern:
    """The pattern of a line as `text` writes it, that a person may have changed; raises `NotRemembered`."""
    text = text.strip()
    same = next((pattern for pattern in shown if pattern.text(root) == text), None)
    if same is not None:
        return same
    try:
        verb, *words = shlex.split(text)
    except ValueError as error:
        raise NotRemembered(f"{text[:80]!r} is no pattern: {error}.") from error
    if verb not in ("run", "read", "write", "reach", "use") or not words:
        raise NotRemembered(f"{text[:80]!r} is no pattern: write run, read, write, reach or use, and what.")
    boxed = True if any(pattern.boxed for pattern in shown) else None
    if verb == "run":
        return _edited_command(words, shown, boxed)
    if verb == "use":
        return Pattern(mcp=words, boxed=boxed)
    base = next((pattern for pattern in shown if not pattern.command), Pattern())
    made = msgspec.structs.replace(base, paths=[], access=None, hosts=words, boxed=boxed)
    if verb == "reach":
        return made
    paths = [path if path[0] in "/~{" else f"{{workspace}}/{path}" for path in words if path]
    access: Literal["read", "write"] = "write" if verb == "write" else "read"
    return msgspec.structs.replace(made, paths=paths, access=access, hosts=base.hosts)


def _edited_command(words: list[str], shown: Sequence[Pattern], boxed: bool | None) -> Pattern:
    """A command that a person wrote: of the same program it keeps the files outside the project that were shown."""
    wide = words[-1] == "*"
    said: list[str | list[str]] = [*(words[:-1] if wide else words)]
    if not said:
        raise NotRemembered("`run *` would be any command: name at least the program.")
    base = next((one for one in shown if one.command and one.command[0][:1] == said[:1]), Pattern())
    if not wide:
        return Pattern(
            command=[said], exact=True, paths=base.paths, access=base.access, hosts=base.hosts, boxed=boxed
        )
    paths = [INSIDE, *base.paths] if base.paths else []
    return Pattern(command=[said], paths=paths, access=base.access, hosts=base.hosts, boxed=boxed)


def _line(prefix: Sequence[str | list[str]]) -> str:
    """A command as a person writes it: words are quoted where needed, redirections stand as they are."""
    words = ["|".join(word) if isinstance(word, list) else word for word in prefix]
    return " ".join(
        word if _REDIRECT.fullmatch(word) and not re.search(r"\s", word) else shlex.quote(word)
        for word in words
    )


def _shown(path: str, root: str) -> str:
    for start in (root.rstrip("/") + "/" if root else "", "{workspace}/"):
        if start and path.startswith(start) and not path[len(start) :].startswith(("/", "~", "{")):
            return path[len(start) :]
    return path
