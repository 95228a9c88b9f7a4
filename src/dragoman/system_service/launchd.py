"""The agent of launchd, which runs services of a user on macOS."""

from __future__ import annotations

import os
import plistlib
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.parsers.expat import ExpatError

from dragoman.system_service.definition import Definition, Status

LABEL = "io.github.dragoman-gateway.dragoman"
_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Launchd:
    """`launchctl` for the user's graphical session."""

    home: Path
    program: str | None

    name = "launchd"

    @property
    def file(self) -> Path:
        return self.home / "Library" / "LaunchAgents" / f"{LABEL}.plist"

    def render(self, definition: Definition) -> bytes:
        content = {
            "Label": LABEL,
            "ProgramArguments": definition.command,
            "EnvironmentVariables": definition.environment,
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},  # as Restart=on-failure
            "ProcessType": "Interactive",  # the default slows down processes, and agents with them
            "ExitTimeOut": 20,
            "Umask": 0o077,
            "SoftResourceLimits": {"NumberOfFiles": 8192},
            "StandardOutPath": "/dev/null",  # the URL with the token; logs go to stderr
            "StandardErrorPath": str(self.log),
        }
        return plistlib.dumps(content, sort_keys=False)

    @property
    def log(self) -> Path:
        return self.home / "Library" / "Logs" / "dragoman.log"

    def is_ours(self, content: bytes) -> bool:
        return self._read(content).get("Label") == LABEL

    def program_in(self, content: bytes) -> str | None:
        words = self._read(content).get("ProgramArguments")
        return str(words[0]) if isinstance(words, list) and words else None

    def unavailable(self) -> str:
        return "" if self.program is not None else "launchctl is not installed"

    def start_commands(self) -> Sequence[Sequence[str]]:
        loaded = self.status().active != "not loaded"
        again = [self._command("bootout", self._target)] if loaded else []
        return [*again, self._command("bootstrap", f"gui/{os.getuid()}", str(self.file))]

    def stop_commands(self) -> Sequence[Sequence[str]]:
        return [self._command("bootout", self._target)] if self.status().active != "not loaded" else []

    def forget_commands(self) -> Sequence[Sequence[str]]:
        return []

    def status(self) -> Status:
        try:
            done = subprocess.run(
                self._command("print", self._target),
                capture_output=True,
                text=True,
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            return Status(str(error), "unknown")
        if done.returncode != 0:
            return Status("not loaded", "no")
        return Status("active" if "state = running" in done.stdout else "inactive", "enabled")

    def hints(self) -> Sequence[str]:
        return [f"Logs: {self.log}"]

    @property
    def _target(self) -> str:
        return f"gui/{os.getuid()}/{LABEL}"

    def _command(self, *words: str) -> list[str]:
        return [self.program or "launchctl", *words]

    @staticmethod
    def _read(content: bytes) -> dict[str, object]:
        try:
            read = plistlib.loads(content)
        except (plistlib.InvalidFileException, ExpatError, ValueError, OverflowError):
            return {}
        return read if isinstance(read, dict) else {}


def find(home: Path, path: str | None) -> Launchd:
    return Launchd(home, shutil.which("launchctl", path=path))
