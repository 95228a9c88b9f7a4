"""Finds the remembered answers that may be about an act, so that a thousand of them cost a decision nothing.

Each rule that allows is found by something that the act must have: the whole line of an exact command, a program, a
file, a tool of a server or a host. A rule with patterns there, or one that denies, is looked at for every act.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from dragoman.policy.act import Act
from dragoman.policy.memory.memory import Memory
from dragoman.policy.rules import Rule

Key = tuple[str, ...]
_GLOB = re.compile(r"[*?\[\]{}]|^~")


class MemoryIndex:
    """The rules of memories by what they are about, the oldest first."""

    def __init__(self, memories: Iterable[Memory] = ()) -> None:
        self._general: list[tuple[int, Memory, Rule]] = []
        self._found: dict[Key, list[tuple[int, Memory, Rule]]] = {}
        rules = [(memory, rule) for memory in memories for rule in memory.rules()]
        for order, (memory, rule) in enumerate(rules):
            keys = _keys_of_rule(rule)
            if not keys:
                self._general.append((order, memory, rule))
            for key in set(keys):
                self._found.setdefault(key, []).append((order, memory, rule))

    def about(self, act: Act) -> list[tuple[Memory, Rule]]:
        """Rules that may be about an act, with their memories."""
        found = {entry[0]: entry for entry in self._general}
        if self._found:
            for key in _keys_of_act(act):
                for entry in self._found.get(key, ()):
                    found[entry[0]] = entry
        return [found[order][1:] for order in sorted(found)]


def _keys_of_rule(rule: Rule) -> list[Key]:
    """An act that the rule covers has one of them; empty if that cannot be said."""
    config = rule.config
    if rule.decision != "allow":
        return []
    if rule.prefixes:
        if not all(rule.prefixes):
            return []
        if config.exact and all(len(choice) == 1 for prefix in rule.prefixes for choice in prefix):
            return [("line", *(next(iter(choice)) for choice in prefix)) for prefix in rule.prefixes]
        return [("program", name) for name in rule.programs]
    for kind, names in (("path", config.paths), ("mcp", config.mcp), ("host", config.hosts)):
        if names:
            plain = not any(_GLOB.search(name) for name in names)
            plain = plain and (kind != "mcp" or all("/" in name for name in names))
            return [(kind, name.lower() if kind == "host" else name) for name in names] if plain else []
    return []


def _keys_of_act(act: Act) -> Iterable[Key]:
    for command in act.commands:
        yield ("line", *command.words, *command.redirects)
        yield ("program", command.names[0])
        yield ("program", command.words[0])
    for path in act.all_paths:
        yield ("path", path.path)
    for host in act.hosts:
        yield ("host", host.lower())
    if act.mcp is not None:
        yield ("mcp", f"{act.mcp.server}/{act.mcp.tool}")
