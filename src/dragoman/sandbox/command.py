"""A box made by an external tool, such as `cai exec`; only as safe as that tool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dragoman.agents.environment import QUIET
from dragoman.gateway.ports.agent import AgentEnd
from dragoman.gateway.ports.sandbox import Enclosed
from dragoman.sandbox.allowlist import GENERAL, TOOL, allowed
from dragoman.sandbox.box import WorkspaceBox
from dragoman.sandbox.own_folders import bound

AGENT_WORDS = "{agent...}"


class CommandBox(WorkspaceBox):
    NAMES = (*GENERAL, *TOOL)

    async def enclose(self, words: list[str], env: dict[str, str], cwd: str, *, agent: bool) -> Enclosed:
        outside = self.paths.to_host.path(cwd) if self.paths is not None else cwd
        values = {"{workspace}": self.place.workspace, "{cwd}": outside}
        # The tool decides about the variables that it already has; the others are passed inside.
        tools = {**QUIET, **allowed(self.place.environ, (*self.NAMES, *self.place.config.pass_env))}
        told = {name: value for name, value in env.items() if tools.get(name) != value and name != "PWD"}
        preface = b""
        if told:
            words, preface = self.entry(words, told, stdin=agent)
        return Enclosed(_filled(self.place.config.command, values, words), tools, outside, preface)

    def shown(self) -> Iterator[tuple[str, str]]:
        yield from super().shown()
        yield from ((path, f"sandboxes.{self.name}.command") for path in bound(self.place.config.command))

    def explain(self, end: AgentEnd) -> str:
        return f" (it was started by {self.place.config.command[0]!r}, see sandboxes.{self.name}.command)"


def _filled(template: list[str], values: Mapping[str, str], agent: list[str]) -> list[str]:
    """The template's words with the values filled in; a word `{agent...}` becomes all of the agent's words."""
    filled: list[str] = []
    for word in template:
        if word == AGENT_WORDS:
            filled += agent
            continue
        for name, value in values.items():
            word = word.replace(name, value)
        filled.append(word)
    return filled
