"""Runs npm and uv: with a small environment, a time limit, and nothing of the workspace in sight."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import msgspec

from dragoman.masking import mask
from dragoman.registry.errors import RegistryError
from dragoman.registry.index import Source

Show = Callable[[str], None]
LONGEST = 64 * 1024
"""Bytes of a package manager's output that are read."""
MISSING = {
    "npm": "npm is not installed: it comes with Node.js, https://nodejs.org (or your system's package `npm`)",
    "uv": "uv is not installed: https://docs.astral.sh/uv says how to get it; `pipx install uv` is one way",
}
_PASSED = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM"),
        *(
            "HTTP_PROXY",
            "HTTPS_PROXY",
            "NO_PROXY",
            "ALL_PROXY",
            "http_proxy",
            "https_proxy",
            "no_proxy",
            "all_proxy",
        ),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
        *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
        *("NPM_CONFIG_REGISTRY", "npm_config_registry", "NPM_CONFIG_USERCONFIG", "npm_config_userconfig"),
        *("NPM_CONFIG_CACHE", "npm_config_cache", "NPM_CONFIG_CAFILE", "npm_config_cafile"),
        *(
            "UV_INDEX_URL",
            "UV_DEFAULT_INDEX",
            "UV_EXTRA_INDEX_URL",
            "UV_INDEX",
            "UV_CACHE_DIR",
            "UV_CONFIG_FILE",
            "UV_NATIVE_TLS",
        ),
        *(
            "UV_PYTHON",
            "UV_PYTHON_PREFERENCE",
            "UV_PYTHON_DOWNLOADS",
            "UV_PYTHON_INSTALL_DIR",
            "UV_PYTHON_INSTALL_MIRROR",
        ),
    }
)
"""Variables that a package manager gets: no keys of agents, and none of ours."""
NPM = (
    *("--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error", "--omit=dev"),
    *("--save-exact", "--ignore-scripts"),
)


@dataclass(frozen=True, slots=True)
class Installed:
    """What a package manager made."""

    program: Path
    version: str
    integrity: str | None = None
    scripts_left: bool = False
    """The package has scripts that were not run."""


def find_manager(source: Source, environ: Mapping[str, str] | None = None) -> str | None:
    """The program of a package manager; uv may also stand beside our own interpreter."""
    env = os.environ if environ is None else environ
    beside = Path(sys.executable).with_name("uv")
    found = shutil.which(source, path=env.get("PATH"))
    return found or (str(beside) if source == "uv" and os.access(beside, os.X_OK) else None)


def manager(source: Source) -> str:
    found = find_manager(source)
    if found is None:
        raise RegistryError(f"{MISSING[source]}; then try again")
    return found


def latest(source: Source, package: str, seconds: float) -> str:
    """The newest version of a package."""
    with tempfile.TemporaryDirectory(prefix="dragoman-") as folder:
        if source == "npm":
            answer = _run([manager("npm"), "view", package, "version", "--json"], Path(folder), seconds)
            try:
                found = msgspec.json.decode(answer.strip() or b"null")
            except msgspec.DecodeError:
                found = None
        else:
            command = [
                manager("uv"),
                "pip",
                "compile",
                "--quiet",
                "--no-deps",
                "--no-header",
                "--no-annotate",
                "-",
            ]
            answer = _run([*command, "--no-build"], Path(folder), seconds, given=package.encode())
            found = answer.decode(errors="replace").strip().rpartition("==")[2]
    if not isinstance(found, str) or not found:
        raise RegistryError(f"{source} does not tell the newest version of {package}: name one")
    return found


def install_npm(
    package: str, version: str, cmd: str | None, folder: Path, seconds: float, *, scripts: bool
) -> Installed:
    """Install into `folder`; without `scripts` nothing of the package is run, with them its own scripts are."""
    npm = manager("npm")
    (folder / "package.json").write_text('{"private": true}\n')
    _run([npm, "install", *NPM, f"{package}@{version}"], folder, seconds)
    modules = folder / "node_modules"
    facts = _read_json(modules / package / "package.json")
    if facts.get("version") != version:
        raise RegistryError(
            f"npm installed {package} {facts.get('version')} in place of {version}: it is removed"
        )
    if scripts:
        _run([npm, "rebuild", "--ignore-scripts=false", "--loglevel=error", package], folder, seconds)
    program = modules / ".bin" / _npm_program(package, facts.get("bin"), cmd)
    _check_program(program, package)
    hooks = facts.get("scripts")
    has_scripts = isinstance(hooks, dict) and bool(hooks.keys() & {"preinstall", "install", "postinstall"})
    locked = _read_json(modules / ".package-lock.json").get("packages") or {}
    entry = locked.get(f"node_modules/{package}") if isinstance(locked, dict) else None
    integrity = entry.get("integrity") if isinstance(entry, dict) else None
    return Installed(
        program,
        version,
        integrity if isinstance(integrity, str) else None,
        scripts_left=has_scripts and not scripts,
    )


def install_uv(
    package: str, version: str, cmd: str | None, folder: Path, seconds: float, *, scripts: bool
) -> Installed:
    """Install into a tool environment in `folder`; without `scripts` from wheels alone, which run nothing."""
    programs = folder / "bin"
    places = {"UV_TOOL_DIR": str(folder / "tools"), "UV_TOOL_BIN_DIR": str(programs)}
    name, bracket, extras = package.partition("[")
    spec = f"{name}{bracket}{extras}=={version}"
    build = [] if scripts else ["--no-build"]
    _run([manager("uv"), "tool", "install", "--no-progress", *build, spec], folder, seconds, places)
    found = sorted(file.name for file in programs.iterdir()) if programs.is_dir() else []
    wanted = cmd or (name if name in found else found[0] if len(found) == 1 else name)
    if wanted not in found:
        raise RegistryError(
            f"{package} {version} has no program {wanted}; it has {', '.join(found) or 'none'}"
        )
    return Installed(programs / wanted, version)


def _npm_program(package: str, programs: object, cmd: str | None) -> str:
    """The program that `npx` runs: the only one, else the one with the package's name."""
    short = package.rpartition("/")[2]
    names = [short] if isinstance(programs, str) else list(programs) if isinstance(programs, dict) else []
    wanted = cmd or (names[0] if len(set(names)) == 1 else short)
    if wanted not in names or "/" in wanted or wanted.startswith("."):
        raise RegistryError(f"{package} has no program {wanted}; it has {', '.join(names)[:200] or 'none'}")
    return wanted


def _check_program(program: Path, package: str) -> None:
    if not program.is_file():
        raise RegistryError(f"npm installed {package}, but its program {program.name} is missing: try again")
    program.resolve().chmod(0o755)


def _read_json(file: Path) -> dict[str, object]:
    try:
        found = msgspec.json.decode(file.read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RegistryError(f"{file.name} of the package cannot be read: {error}") from error
    return found if isinstance(found, dict) else {}


def environment(places: Mapping[str, str], environ: Mapping[str, str] | None = None) -> dict[str, str]:
    env = os.environ if environ is None else environ
    kept = {name: value for name, value in env.items() if name in _PASSED or name.startswith("LC_")}
    return {**kept, "CI": "1", "NO_COLOR": "1", **places}


def _run(
    command: list[str],
    folder: Path,
    seconds: float,
    places: Mapping[str, str] | None = None,
    given: bytes = b"",
) -> bytes:
    """Run a package manager in a folder of its own; its whole process group ends with it. Returns its stdout."""
    tool = Path(command[0]).name
    with (
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as trouble,
        tempfile.TemporaryFile() as source,
    ):
        source.write(given)
        source.seek(0)
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment(places or {}),
                stdin=source,
                stdout=out,
                stderr=trouble,
                start_new_session=True,
            )
        except OSError as error:
            raise RegistryError(f"{tool} cannot be started: {error.strerror}") from error
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise RegistryError(f"{tool} did not finish within {seconds:.0f} s (registry.timeout)") from error
        finally:
            _end(process)
        out.seek(0)
        answer = out.read(LONGEST)
        if code:
            raise RegistryError(_complaint(tool, code, command[-1], _tail(trouble)))
        return answer


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass
    process.wait()


def _tail(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - LONGEST))
    return file.read().decode(errors="replace")


def _complaint(tool: str, code: int, what: str, text: str) -> str:
    lines = [line.strip() for line in mask(text).splitlines() if line.strip()]
    if any(word in text for word in ("ETARGET", f"there is no version of {what}")):
        return f"there is no version {what}: {tool} does not know it"
    if "E404" in text or "was not found in the package registry" in text:
        return f"there is no package {what}: {tool} does not know it"
    if "ENOSPC" in text or "No space left" in text:
        return f"the disk is full: {tool} could not install {what}"
    said = " ".join(lines[:6])[:600]
    if tool == "uv" and "Python" in said:
        said += " (UV_PYTHON=3.13, for example, has uv use another Python)"
    return f"{tool} failed (exit code {code}): {said or 'it does not say why'}"
