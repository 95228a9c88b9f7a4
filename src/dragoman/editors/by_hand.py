"""Programs whose settings are in a form, or that take a command: what to type is shown, and no file is changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dragoman.edited_file import Change
from dragoman.editors.editor import Found, Launch, Machine


@dataclass(frozen=True, slots=True)
class ByHand:
    """A program for which only a text is shown."""

    title: str
    render: Callable[[Launch], str]
    note: str = ""

    by_hand = True

    def file(self, machine: Machine) -> Path | None:
        return None

    def show(self, launch: Launch) -> str:
        return self.render(launch)

    def install(self, launch: Launch, file: Path) -> list[Change]:
        return []

    def find(self, file: Path) -> list[Found]:
        return []

    def remove(self, name: str, file: Path) -> list[Change]:
        return []
