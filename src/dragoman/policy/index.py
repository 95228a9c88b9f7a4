"""Finds the rules that may be about an act: of hundreds of rules few concern one command or one file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

from dragoman.policy.act import Act, PathFact
from dragoman.policy.globs import glob_of
from dragoman.policy.rules import Part, Rule

_WORKSPACES = 16
"""Workspaces whose patterns are ready; mostly a policy has one."""

Entry = tuple[int, Rule]


class RuleIndex:
    """Rules by the program or by the folder that they are about, in their order."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = list(rules)
        self._general: list[Entry] = []
        self._on_paths: list[Entry] = []
        self._programs: dict[str, list[Entry]] = {}
        self._places: dict[str, _Places] = {}
        for entry in enumerate(self._rules):
            rule = entry[1]
            if not rule.programs:
                (self._on_paths if rule.config.paths else self._general).append(entry)
            for program in rule.programs:
                self._programs.setdefault(program, []).append(entry)

    def about(self, act: Act, part: Part | None = None) -> list[Rule]:
        """Rules that may match an act, or one part of it."""
        if part is None and act.opaque is not None:  # it may run any program
            return self._rules
        commands = [*act.commands, *act.wrappers] if part is None else [part.command] if part.command else []
        found = dict(self._general)
        for command in commands:
            for name in (command.names[0], command.words[0]):
                if name in self._programs:
                    found.update(self._programs[name])
            if not command.names[0]:  # an expansion: any rule may be about it
                for rules in self._programs.values():
                    found.update(rules)
        if self._on_paths:
            paths = part.paths if part is not None else (*act.all_paths, *_of_wrappers(act))
            found.update(self._about_paths(paths, act.workspace))
        if len(found) == len(self._general):
            return [rule for _, rule in self._general]
        return [found[order] for order in sorted(found)]

    def _about_paths(self, paths: Iterable[PathFact], workspace: str) -> Iterable[Entry]:
        places = self._places.get(workspace)
        if places is None:
            if len(self._places) >= _WORKSPACES:
                self._places.clear()
            places = self._places[workspace] = _Places(self._on_paths, workspace)
        found: dict[int, Rule] = {}
        for path in paths:
            if _is_wide(path):
                return self._on_paths
            for name in (path.path, *path.names):
                found.update(places.about(name))
        return found.items()


def _of_wrappers(act: Act) -> list[PathFact]:
    return [path for wrapper in act.wrappers for path in wrapper.paths]


def _is_wide(path: PathFact) -> bool:
    """Whether more files are touched than are named."""
    if path.more or not path.known or not path.path.startswith("/"):
        return True
    return path.below is not None and any(os.path.isdir(name) for name in (path.path, *path.names))  # noqa: PTH112


class _Places:
    """Rules with `paths`, for one workspace, by what stands before the first wildcard of their patterns."""

    def __init__(self, entries: Sequence[Entry], workspace: str) -> None:
        groups: dict[str, list[tuple[str, Entry]]] = {}
        for entry in entries:
            for pattern in entry[1].config.paths:
                glob = glob_of(pattern, workspace)
                groups.setdefault(glob.head, []).append((glob.expression.pattern, entry))
        self._groups = {
            head: (
                re.compile("|".join(dict.fromkeys(text for text, _ in found)), re.DOTALL),
                [(re.compile(text, re.DOTALL), entry) for text, entry in found],
            )
            for head, found in groups.items()
        }

    def about(self, path: str) -> Iterable[Entry]:
        """Rules one of whose patterns matches a path."""
        for head in _heads(path):
            group = self._groups.get(head)
            if group is not None and group[0].fullmatch(path):
                for expression, entry in group[1]:
                    if expression.fullmatch(path):
                        yield entry


def _heads(path: str) -> Iterable[str]:
    """The path, and each folder that it is in."""
    yield path
    at = path.rfind("/")
    while at > 0:
        path = path[:at]
        yield path
        at = path.rfind("/")
    yield "/"
