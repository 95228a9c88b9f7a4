"""Checks which kinds of sandbox work on this machine, and why the others do not."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dragoman.agents.environment import inherited
from dragoman.config.model import Config
from dragoman.config.sandbox_model import SandboxConfig
from dragoman.masking import mask
from dragoman.sandbox.bubblewrap import INSTALL, PROGRAM, system_folders

ROOT = (
    "this is root: an agent inside has no capabilities, but is root to the files that it is shown, and what it makes "
    "is root's; better run Dragoman as an ordinary user"
)
"""The note of `dragoman doctor` on a kind that protects less when root starts it."""

PATIENCE = 20.0
"""Seconds to wait for a tool."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of checking a kind, or a configured sandbox."""

    name: str
    kind: str
    works: bool
    detail: str


def examine_kinds() -> list[Finding]:
    """Check every kind, without a configured sandbox."""
    return [Finding(kind, kind, *check(SandboxConfig())) for kind, check in _KINDS.items()]


def examine_sandboxes(config: Config) -> list[Finding]:
    """Check the configured sandboxes, each with its image, host or tool."""
    findings = []
    for name, box in config.sandboxes.items():
        works, detail = _KINDS[box.kind](box)
        if works and box.kind in _CONFIGURED:
            works, detail = _CONFIGURED[box.kind](box)
        findings.append(Finding(name, box.kind, works, mask(detail)))
    return findings


_Verdict = tuple[bool, str]


def _local(box: SandboxConfig) -> _Verdict:
    whose = "root, over the whole machine" if _is_root() else "yours"
    return True, f"nothing is needed; agents run beside the gateway, with all rights of {whose}"


def _command(box: SandboxConfig) -> _Verdict:
    return True, "isolates as well as the program that you configure"


def _bubblewrap(box: SandboxConfig) -> _Verdict:
    if os.uname().sysname != "Linux":
        return False, "there is no bubblewrap on this system; it is for Linux"
    if shutil.which(PROGRAM) is None:
        return False, f"the program {PROGRAM} is not on PATH. {INSTALL}"
    # Not all of `/`: that fails when a container ends meanwhile, whose mounts are below /var.
    made = [PROGRAM, "--unshare-all", "--cap-drop", "ALL", *system_folders()]
    said = _try([*made, "--proc", "/proc", "--dev", "/dev", "true"])
    if said is None:
        return True, f"works; {ROOT}" if _is_root() else "works"
    if "ermission" in said or "not permitted" in said:
        fix = (
            "this machine forbids user namespaces: allow them (sysctl kernel.unprivileged_userns_clone=1, or an "
            "AppArmor profile for bwrap), or use another kind"
        )
        return False, f"{said}; {fix}"
    return False, said


def _engine(kind: str) -> Callable[[SandboxConfig], _Verdict]:
    def check(box: SandboxConfig) -> _Verdict:
        engine = box.engine or [kind]
        if shutil.which(engine[0]) is None:
            return False, f"the program {engine[0]} is not on PATH; install {kind}"
        said = _try([*engine, "info"])
        return (
            (True, "its engine answers") if said is None else (False, f"its engine does not answer: {said}")
        )

    return check


def _image(kind: str) -> Callable[[SandboxConfig], _Verdict]:
    def check(box: SandboxConfig) -> _Verdict:
        engine = box.engine or [kind]
        if _try([*engine, "image", "inspect", "--format", "{{.Id}}", str(box.image)]) is None:
            return True, f"the image {box.image} is there"
        return False, f"the image {box.image} is not on this machine: {' '.join(engine)} pull {box.image}"

    return check


def _ssh(box: SandboxConfig) -> _Verdict:
    if shutil.which("ssh") is None:
        return False, "the program ssh is not on PATH; install OpenSSH's client"
    return True, "ssh is installed"


def _host(box: SandboxConfig) -> _Verdict:
    said = _try(
        ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", *box.options, str(box.host), "true"]
    )
    return (True, f"{box.host} lets us in") if said is None else (False, f"{box.host}: {said}")


def _tool(box: SandboxConfig) -> _Verdict:
    if shutil.which(box.command[0]) is None:
        return False, f"the program {box.command[0]} is not on PATH"
    return True, f"{box.command[0]} is installed; it isolates as well as that program does"


_KINDS: Mapping[str, Callable[[SandboxConfig], _Verdict]] = {
    "local": _local,
    "bubblewrap": _bubblewrap,
    "podman": _engine("podman"),
    "docker": _engine("docker"),
    "ssh": _ssh,
    "command": _command,
}
_CONFIGURED: Mapping[str, Callable[[SandboxConfig], _Verdict]] = {
    "podman": _image("podman"),
    "docker": _image("docker"),
    "ssh": _host,
    "command": _tool,
}
"""Checks that need the settings of a sandbox."""


def _is_root() -> bool:
    return os.geteuid() == 0


def _try(words: Sequence[str]) -> str | None:
    """Run a command; None if it works, else the last line of its output."""
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
            env=inherited(os.environ),
            check=False,
        )
    except OSError as error:
        return str(error.strerror)
    except subprocess.TimeoutExpired:
        return f"no answer within {PATIENCE:g} s"
    if done.returncode == 0:
        return None
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return lines[-1] if lines else f"exit code {done.returncode}"
