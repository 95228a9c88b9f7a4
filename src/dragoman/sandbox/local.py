"""The kind `local`: no confinement, only a sandbox's settings (variables and allowed roots)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dragoman.agents.environment import agent_environment
from dragoman.gateway.ports.sandbox import Enclosed
from dragoman.sandbox.box import Place, WorkspaceBox


class LocalBox(WorkspaceBox):
    apart = False

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.paths = None
        self.environment = agent_environment(place.environ, place.config.env)

    def paths_for(self, cwd: str | None) -> None:
        """None: paths are the same inside."""

    def folder_inside(self, path: str) -> str:
        return path

    def check(self, cwd: str, directories: Sequence[str]) -> None:
        """Accepts every folder of this machine."""

    def shown(self) -> Iterator[tuple[str, str]]:
        """Nothing: an agent without a box sees the whole machine anyway."""
        return iter(())

    async def enclose(self, words: list[str], env: dict[str, str], cwd: str, *, agent: bool) -> Enclosed:
        return Enclosed(words, {**env, "PWD": cwd}, cwd)
