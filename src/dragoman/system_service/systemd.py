"""The unit of systemd's user manager."""

from __future__ import annotations

import getpass
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dragoman.system_service.definition import Definition, Status

UNIT = "dragoman.service"
LINGER = Path("/var/lib/systemd/linger")
_OURS = "# Written by `dragoman service install`"
_SECONDS = 60

_TEXT = """{ours}; `dragoman service remove` deletes it.
# Run `dragoman service install` again after agents or Dragoman moved: PATH and the program are from then.

[Unit]
Description=Dragoman, a gateway to coding agents
After=network.target

[Service]
Type=exec
{environment}
# Agents' own settings and keys, one NAME=value a line; the file is for your eyes only.
EnvironmentFile=-%h/.config/dragoman/environment
ExecStart={command}
# Logs go to stderr; on stdout is the URL with the token, which the journal must not have (`dragoman serve --url`).
StandardOutput=null
Restart=on-failure
RestartSec=2
# Turns are settled and agents ended within 10 seconds; the rest is slack for a slow disk.
TimeoutStopSec=20
KillMode=mixed

# Agents run as you and work in your projects, so your home stays writable; what they never need is closed.
NoNewPrivileges=yes
UMask=0077
RestrictSUIDSGID=yes
LockPersonality=yes
RestrictRealtime=yes
LimitNOFILE=65536
TasksMax=4096

[Install]
WantedBy=default.target
"""


def quoted(word: str) -> str:
    """A word for a unit file: `%` is a specifier there, and quotes and backslashes are read."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"' if re.search(r"[\s\"'\\;]", word) or not word else escaped


@dataclass(frozen=True, slots=True)
class Systemd:
    """`systemctl --user`; `program` is that of a PATH, or None where there is no systemd."""

    config: Path
    program: str | None

    name = "systemd"

    @property
    def file(self) -> Path:
        return self.config / "systemd" / "user" / UNIT

    def render(self, definition: Definition) -> bytes:
        environment = "\n".join(
            f"Environment={quoted(f'{name}={value}')}" for name, value in definition.environment.items()
        )
        # `$` begins a variable in the arguments of a command, but not in its path and in Environment=.
        program, *arguments = map(quoted, definition.command)
        command = " ".join([program, *(word.replace("$", "$$") for word in arguments)])
        return _TEXT.format(ours=_OURS, environment=environment, command=command).encode()

    def is_ours(self, content: bytes) -> bool:
        return content.startswith(_OURS.encode())

    def program_in(self, content: bytes) -> str | None:
        found = re.search(r"^ExecStart=[-@:+!]*(.*)$", content.decode("utf-8", "replace"), re.MULTILINE)
        try:
            words = shlex.split(found[1]) if found is not None else []
        except ValueError:
            words = []
        return words[0].replace("%%", "%") if words else None

    def unavailable(self) -> str:
        if self.program is None:
            return "systemctl is not installed"
        state = self._ask("is-system-running")
        # "degraded" is one failed unit of somebody; "offline" and a failed connection are no manager at all.
        if state in {"running", "degraded", "starting", "initializing", "maintenance"}:
            return ""
        return f"the systemd manager of this user does not answer ({state or 'no answer'})"

    def start_commands(self) -> Sequence[Sequence[str]]:
        return [self._command("daemon-reload"), self._command("enable", UNIT), self._command("restart", UNIT)]

    def stop_commands(self) -> Sequence[Sequence[str]]:
        return [self._command("disable", "--now", UNIT)]

    def forget_commands(self) -> Sequence[Sequence[str]]:
        return [self._command("daemon-reload")]

    def status(self) -> Status:
        return Status(self._ask("is-active", UNIT) or "unknown", self._ask("is-enabled", UNIT) or "unknown")

    def hints(self) -> Sequence[str]:
        hints = [f"Logs: journalctl --user -u {UNIT.removesuffix('.service')}"]
        if not (LINGER / getpass.getuser()).exists():
            hints.append("It ends when you log out; `loginctl enable-linger` keeps it running.")
        return hints

    def _command(self, *words: str) -> list[str]:
        return [self.program or "systemctl", "--user", *words]

    def _ask(self, *words: str) -> str:
        try:
            done = subprocess.run(
                self._command(*words), capture_output=True, text=True, timeout=_SECONDS, check=False
            )
        except (OSError, subprocess.SubprocessError) as error:
            return str(error)
        return done.stdout.strip() or done.stderr.strip().partition("\n")[0]


def find(config: Path, path: str | None) -> Systemd:
    return Systemd(config, shutil.which("systemctl", path=path))
