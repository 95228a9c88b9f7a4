"""No box at all, but with the settings of a sandbox: its variables and its allowed roots."""

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
        """Every path is the same."""

    def folder_inside(self, path: str) -> str:
        return path

    def check(self, cwd: str, directories: Sequence[str]) -> None:
        """Every folder of this machine is there."""

    def shown(self) -> Iterator[tuple[str, str]]:
        """Nothing is shown that was not seen before."""
        return iter(())

    async def enclose(self, words: list[str], env: dict[str, str], cwd: str, *, agent: bool) -> Enclosed:
        return Enclosed(words, {**env, "PWD": cwd}, cwd)
