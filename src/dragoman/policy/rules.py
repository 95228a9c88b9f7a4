"""One rule, made ready for matching.

All keys of a rule have to hold; items of a list are alternatives. Rules that allow and rules that deny read a doubt
differently: an allow-rule covers a part of an act only if everything about the part is known and within the rule, a
deny- or ask-rule holds as soon as any part of the act matches, and a word that is not known may match.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Literal

from dragoman.config.model import Decision, PolicyRule
from dragoman.policy.act import Act, Command, PathFact
from dragoman.policy.below import find_below
from dragoman.policy.globs import Glob, glob_of
from dragoman.policy.shell.patterns import folder_of_pattern
from dragoman.policy.shell.programs.environment import is_harmless

Source = Literal["user", "narrow", "administrator", "remembered"]
Match = Literal["no", "maybe", "yes"]

_CIRCUMSTANCES = ("agent", "mode", "prompted_by", "boxed", "watched", "expires", "approvers")


@dataclass(frozen=True, slots=True)
class Part:
    """What is decided by itself: a command with its paths, a lone path, or the call as such."""

    command: Command | None = None
    paths: tuple[PathFact, ...] = ()
    hosts: tuple[str, ...] = ()

    def shown(self) -> str:
        if self.command is not None:
            return f"`{' '.join(self.command.words)}`"
        return ", ".join(f"{path.access} of {path.path}" for path in self.paths) or "the call"


def parts_of(act: Act) -> list[Part]:
    """The parts that each need an allow. Builtins that change only the shell need none, their redirections do."""
    parts: list[Part] = []
    lone: list[PathFact] = list(act.paths)
    for command in act.commands:
        if command.neutral:
            lone += command.paths
        else:
            parts.append(Part(command, command.paths, command.hosts))
    parts += [
        Part(None, (path,)) for path in dict.fromkeys(lone) if not (act.commands and _is_plain_read(path))
    ]
    if act.hosts or (not parts and not act.commands):
        parts.append(Part(None, (), act.hosts))
    return parts


def _is_plain_read(path: PathFact) -> bool:
    """`done < notes.txt`: what the commands of the loop are given, which needs no rule besides theirs."""
    return path.access == "read" and not path.outside


@dataclass(frozen=True)
class Rule:
    """A rule of the configuration with its origin."""

    config: PolicyRule
    name: str
    source: Source
    file: str
    prefixes: tuple[tuple[frozenset[str], ...], ...]
    """Each a sequence of choices."""
    ends: datetime | None

    @property
    def decision(self) -> Decision:
        return self.config.decision

    @cached_property
    def programs(self) -> frozenset[str]:
        """Names of programs that the rule is about; empty if it is not about commands."""
        return frozenset(name for prefix in self.prefixes for name in (prefix[0] if prefix else ()))

    @cached_property
    def approved(self) -> bool:
        """Whether only named people, or several, may answer."""
        return self.decision == "ask" and bool(self.config.approvals > 1 or self.config.approvers)

    @cached_property
    def about_paths(self) -> bool:
        config = self.config
        return bool(config.paths or config.access or config.outside_workspace is not None)

    @cached_property
    def on_kind_alone(self) -> bool:
        """Whether nothing is said about what the call does, apart from its kind."""
        return not (
            self.prefixes or self.about_paths or self.config.hosts or self.config.mcp or self.config.tool
        )

    @cached_property
    def on_kind_only(self) -> bool:
        """A rule of the first version, with no other condition than `kind`: it believes the agent's label as ever."""
        return self.on_kind_alone and not any(
            getattr(self.config, key) not in ([], None) for key in _CIRCUMSTANCES
        )

    # allow

    def covers(self, part: Part, act: Act, now: datetime) -> str | None:
        """None if this allow-rule covers the part, else the reason why it does not."""
        if not self._circumstances(act, now):
            return "it is for other circumstances"
        if act.label_only and not (self.config.trust_label or self.on_kind_only):
            return "only the agent's label says so, and the rule does not say `trust_label = true`"
        if self.prefixes:
            return self._covers_command(part, act)
        if self.on_kind_alone:
            return None
        if part.command is not None:
            return "it is not about commands"
        return self._covers_paths(part.paths, act.workspace) or self._covers_hosts(part.hosts)

    def _covers_command(self, part: Part, act: Act) -> str | None:
        command = part.command
        if command is None:
            return "it is about commands"
        if act.opaque is not None:
            return f"the line is not understood: {act.opaque}"
        matches = _is_exactly if self.config.exact else _begins
        prefix = next((each for each in self.prefixes if matches(command, each)), None)
        if prefix is None:
            return "its words are others"
        named = frozenset().union(*prefix)
        for effect in command.effects:
            if effect.option not in named and not self.config.exact:
                return f"`{effect.option}` {effect.does} something"
        for variable in command.env:
            if not is_harmless(variable):
                return f"{variable} may change what the program does"
        writes = any(path.access == "write" for path in command.paths)
        if writes and command.prints and self.config.access != "write" and not self.config.paths:
            return 'it prints, and this would write: the rule does not say `access = "write"`'
        return self._covers_paths(part.paths, act.workspace, commands=True) or self._covers_hosts(part.hosts)

    def _covers_paths(
        self, paths: Iterable[PathFact], workspace: str, *, commands: bool = False
    ) -> str | None:
        config = self.config
        for path in paths:
            if (
                config.access is not None
                and path.access != config.access
                and not (commands and config.access == "write")
            ):
                return f"{path.path} would be {'written' if path.access == 'write' else 'read'}"
            if (
                config.outside_workspace is not None
                and path.outside != config.outside_workspace
                and not commands
            ):
                return f"{path.path} is {'outside' if path.outside else 'inside'} the workspace"
            if config.paths or (commands and config.exact):
                if not path.known:
                    return f"{path.path} is not known before it runs"
                if not _in_globs(path.path, config.paths, workspace):
                    return f"{path.path} is not among its paths"
                if path.below is not None and not config.exact and not self._has_all_of(path.path, workspace):
                    return f"what is in {path.path} is not among its paths"
            elif path.outside and not config.outside_workspace:
                return f"{path.path} is outside the workspace"
        if not commands and self.about_paths and not paths:
            return "it is about paths"
        return None

    def _has_all_of(self, path: str, workspace: str) -> bool:
        """Whether the paths of the rule have all that is in a folder, at any depth; of a file there is nothing."""
        return _in_globs(f"{path}/\0/\0", self.config.paths, workspace) or not os.path.isdir(path)  # noqa: PTH112

    def _covers_hosts(self, hosts: Sequence[str]) -> str | None:
        if not self.config.hosts:
            return None
        if not hosts:
            return "it is about hosts"
        wrong = [host for host in hosts if not _is_host(host, self.config.hosts)]
        return f"{wrong[0]} is not among its hosts" if wrong else None

    # deny and ask

    def touches(self, act: Act, parts: Sequence[Part], now: datetime) -> Match:
        """Whether any part of the act matches this deny- or ask-rule."""
        if not self._circumstances(act, now):
            return "no"
        if not (self.prefixes or self.about_paths or self.config.hosts):
            return "yes"
        found: Match = "no"
        for part in parts:
            match = self._touches_part(part, act)
            if match == "yes":
                return "yes"
            found = "maybe" if match == "maybe" else found
        return found

    def may_hide(self, act: Act, now: datetime) -> bool:
        """Whether what is not understood of the act may match."""
        return act.opaque is not None and self._circumstances(act, now)

    def _touches_part(self, part: Part, act: Act) -> Match:
        match: Match = "yes"
        if self.prefixes:
            if part.command is None:
                return "no"
            match = _best(_may_begin(part.command, prefix) for prefix in self.prefixes)
        if match == "no":
            return "no"
        if self.about_paths:
            match = _weaker(match, _best(self._touches_path(path, act) for path in part.paths))
        if self.config.hosts and not any(
            host == "?" or _is_host(host, self.config.hosts) for host in part.hosts
        ):
            return "no"
        return match

    def _touches_path(self, path: PathFact, act: Act) -> Match:
        config = self.config
        if config.access is not None and path.access != config.access:
            return "no"
        unknown = not path.known or not path.path.startswith("/")
        if unknown and (config.paths or config.outside_workspace is False):  # it may be any file
            return "maybe"
        if config.outside_workspace is not None and path.outside != config.outside_workspace:
            return "no"
        if not config.paths:
            return "yes"
        globs = [glob_of(pattern, act.workspace) for pattern in config.paths]
        names = (path.path, *path.names)
        if any(glob.matches(name) for glob in globs for name in names):
            return "yes"
        return self._below(path, globs, act)[0]

    def _below(self, path: PathFact, globs: Sequence[Glob], act: Act) -> tuple[Match, str]:
        """Whether something in a folder, or one more name of a pattern, matches, and what."""
        found: tuple[Match, str] = ("no", "")
        if path.more and any(glob.may_match_below(folder_of_pattern(path.path)) for glob in globs):
            found = "maybe", path.path
        if path.below is None:
            return found
        for name in (path.path, *path.names):
            for glob in globs:
                match = find_below(glob, name, path.below, act.trees)
                if match[0] == "yes":
                    return match
                found = match if match[0] == "maybe" else found
        return found

    def held(self, act: Act, parts: Sequence[Part]) -> str:
        """For people: what matches although only a folder with it is named; empty if nothing does."""
        if not self.config.paths:
            return ""
        globs = [glob_of(pattern, act.workspace) for pattern in self.config.paths]
        for path in (path for part in parts for path in part.paths):
            name = self._below(path, globs, act)[1]
            if name and not any(glob.matches(path.path) for glob in globs):
                return f"{name} in {path.path}"
        return ""

    def _circumstances(self, act: Act, now: datetime) -> bool:
        config = self.config
        if config.kind and act.kind not in config.kind:
            return False
        if act.switch and not (config.mode or config.kind):
            return False  # a rule about everything means what an agent does
        if config.agent and act.agent not in config.agent:
            return False
        if config.tool and not any(fnmatch.fnmatchcase(act.tool, pattern) for pattern in config.tool):
            return False
        if config.mode and act.mode not in config.mode:
            return False
        if config.prompted_by and act.prompted_by not in config.prompted_by:
            return False
        if config.boxed is not None and config.boxed != act.boxed:
            return False
        if config.watched is not None and config.watched != act.watched:
            return False
        if config.mcp and not (
            act.mcp and any(_is_tool(act.mcp.server, act.mcp.tool, each) for each in config.mcp)
        ):
            return False
        return self.ends is None or now < self.ends


def make_rules(configured: Sequence[PolicyRule], source: Source, file: str) -> list[Rule]:
    """Rules of one list, in order, named as records name them."""
    return [
        Rule(
            config=rule,
            name=rule.name or f"rule {index}",
            source=source,
            file=file,
            prefixes=tuple(
                tuple(frozenset([word] if isinstance(word, str) else word) for word in prefix)
                for prefix in rule.command
            ),
            ends=end_of(rule.expires) if rule.expires is not None else None,
        )
        for index, rule in enumerate(configured, 1)
    ]


def end_of(text: str) -> datetime:
    """The moment when a rule ends; a day ends with its last moment. Text that is no date has ended: the safe side."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    if re.fullmatch(r"\d{4}-?\d{2}-?\d{2}", text):
        found = found.replace(hour=23, minute=59, second=59)
    return found if found.tzinfo is not None else found.astimezone()


def _begins(command: Command, prefix: tuple[frozenset[str], ...]) -> bool:
    """Whether the command's words begin like this, for sure."""
    if len(command.names) < len(prefix) or command.known < len(prefix) or not prefix:
        return False
    if command.words[0] not in prefix[0] and not (command.trusted_program and command.names[0] in prefix[0]):
        return False
    return all(name in choice for name, choice in zip(command.names[1:], prefix[1:], strict=False))


def _is_exactly(command: Command, line: tuple[frozenset[str], ...]) -> bool:
    """Whether words and redirections are these and no more, and the shell makes nothing else of them."""
    said = (*command.words, *command.redirects)
    if command.unknown or len(said) != len(line):
        return False
    return all(word in choice for word, choice in zip(said, line, strict=True))


def _may_begin(command: Command, prefix: tuple[frozenset[str], ...]) -> Match:
    """Whether the words may be these: options, and a value after each, may stand between them."""
    if not prefix or (command.names[0] not in prefix[0] and command.words[0] not in prefix[0]):
        return "no" if command.names[0] or not prefix else "maybe"
    at, after_option = 1, False
    for choice in prefix[1:]:
        while True:
            if at >= len(command.names):
                return "no"
            if at >= command.known:
                return "maybe"
            name = command.names[at]
            at += 1
            if name in choice:
                break
            if not name.startswith("-") and not after_option:
                return "no"
            after_option = name.startswith("-")
    return "yes"


def _weaker(one: Match, other: Match) -> Match:
    return "no" if "no" in (one, other) else "maybe" if "maybe" in (one, other) else "yes"


def _best(matches: Iterable[Match]) -> Match:
    found = list(matches)
    return "yes" if "yes" in found else "maybe" if "maybe" in found else "no"


def _in_globs(path: str, globs: Sequence[str], workspace: str) -> bool:
    return any(glob_of(pattern, workspace).matches(path) for pattern in globs)


def _is_host(host: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(host.lower(), pattern.lower()) for pattern in patterns)


def _is_tool(server: str, tool: str, pattern: str) -> bool:
    wanted_server, _, wanted_tool = pattern.partition("/")
    return fnmatch.fnmatchcase(server, wanted_server) and fnmatch.fnmatchcase(tool, wanted_tool or "*")
