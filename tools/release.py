"""Prepares a release up to the upload: `make release VERSION=0.2.0`.

Builds and tries everything in a copy of the last commit that has the new version and changelog. Changes the work tree
and fills `dist/` only after all of it worked, so that a failure leaves nothing to undo; `--check` stops before that.

The build uses the packages of requirements/build.lock, the trial the versions of requirements/image.lock. Both come from
uv's cache if they are there; `UV_OFFLINE=1` forbids the network.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSION_FILE = Path("src/dragoman/__init__.py")
CHANGELOG = Path("CHANGELOG.md")
UNRELEASED = "## Unreleased"
PAGE = "dragoman/web_assets/index.html"
LICENCES = "dragoman/web_assets/third-party-licenses.txt"

BUILD_SECONDS = 900
"""An installation of packages or a build of the web chat on a slow machine takes minutes."""
SMOKE_SECONDS = 60
SHOWN_LINES = 80
"""Of the output of a command that failed; the cause of a failed web build is above two tracebacks."""

_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:(a|b|rc)(\d+))?")
_ASSIGNED = re.compile(r'^__version__ = "(?P<version>[^"]*)"$', re.MULTILINE)
_ASSET = re.compile(r'(?:src|href)="/(assets/[^"]+)"')


class ReleaseError(Exception):
    """The release cannot be made; the message says why and what to do."""


# Versions and texts


def version_key(version: str) -> tuple[int, int, int, str, int]:
    """The order of versions: pre-releases come before their version."""
    match = _VERSION.fullmatch(version)
    if match is None:
        raise ReleaseError(f"{version!r} is not a version: write 1.2.3, or 1.2.3rc1 for a pre-release.")
    major, minor, patch, stage, number = match.groups()
    return int(major), int(minor), int(patch), stage or "z", int(number or 0)


def current_version(source: str) -> str:
    found = _ASSIGNED.findall(source)
    if len(found) != 1:
        raise ReleaseError(f'{VERSION_FILE} must have one line `__version__ = "..."`; it has {len(found)}.')
    version: str = found[0]
    return version


def with_version(source: str, version: str) -> str:
    """The text of `VERSION_FILE` with another version, which must not be lower."""
    current = current_version(source)
    if version_key(version) < version_key(current):
        raise ReleaseError(f"{version} is lower than {current}, the version in {VERSION_FILE}.")
    return _ASSIGNED.sub(f'__version__ = "{version}"', source)


def with_release(changelog: str, version: str, date: str) -> str:
    """The changelog with its unreleased entries under a version, and an empty section for the next ones."""
    lines = changelog.splitlines()
    if lines.count(UNRELEASED) != 1:
        raise ReleaseError(
            f"{CHANGELOG} must have one line `{UNRELEASED}`; it has {lines.count(UNRELEASED)}."
        )
    if any(line.split()[:2] == ["##", version] for line in lines):
        raise ReleaseError(f"{CHANGELOG} already has a section for {version}: choose the next version.")
    start = lines.index(UNRELEASED) + 1
    end = next((at for at in range(start, len(lines)) if lines[at].startswith("## ")), len(lines))
    if not any(line.startswith(("-", "*")) for line in lines[start:end]):
        raise ReleaseError(f"{CHANGELOG} has no entry under Unreleased: say what a user will notice.")
    lines[start:start] = ["", f"## {version} ({date})"]
    return "\n".join(lines) + "\n"


def missing_from_page(names: Iterable[str], page: str) -> list[str]:
    """Files that the web page asks for and the wheel does not have."""
    there = set(names)
    return sorted(asset for asset in _ASSET.findall(page) if f"dragoman/web_assets/{asset}" not in there)


# Steps


def say(message: str) -> None:
    print(message, flush=True)


def run(
    command: Sequence[str | Path],
    *,
    advice: str,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    text: str = "",
    seconds: float = BUILD_SECONDS,
) -> str:
    """Its stdout; a failure is told with the end of what it printed and with `advice`."""
    words = [str(word) for word in command]
    try:
        done = subprocess.run(
            words, cwd=cwd, env=env, input=text, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ReleaseError(f"{' '.join(words)} did not end within {seconds:.0f} s. {advice}") from error
    except OSError as error:
        raise ReleaseError(f"{words[0]} could not be started: {error.strerror}. {advice}") from error
    if done.returncode != 0:
        printed = "\n".join(f"  | {line}" for line in (done.stdout + done.stderr).splitlines()[-SHOWN_LINES:])
        raise ReleaseError(f"{' '.join(words)} failed ({done.returncode}):\n{printed}\n{advice}")
    return done.stdout


def git(*words: str) -> str:
    return run(["git", *words], advice="Run this in a clone of the repository.").rstrip()


def check_tree(version: str) -> None:
    changed = git("status", "--porcelain")
    if changed:
        raise ReleaseError(f"The work tree is not clean:\n{changed}\nCommit or stash these changes first.")
    if git("tag", "--list", f"v{version}"):
        raise ReleaseError(f"The tag v{version} exists: choose the next version.")


def edited(version: str, date: str) -> dict[Path, str]:
    """The files that a release changes, with their new text."""
    return {
        VERSION_FILE: with_version((ROOT / VERSION_FILE).read_text(), version),
        CHANGELOG: with_release((ROOT / CHANGELOG).read_text(), version, date),
    }


def write(root: Path, texts: Mapping[Path, str]) -> None:
    for path, text in texts.items():
        (root / path).write_text(text)


def unpack(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")


def lend_packages(source: Path) -> None:
    """Let a copy use the npm packages that are installed here, if they are those of its lock."""
    here = ROOT / "web" / "node_modules"
    stamp = here / ".installed"
    if stamp.is_file() and stamp.read_bytes() == (source / "web" / "package-lock.json").read_bytes():
        (source / "web" / "node_modules").symlink_to(here)


class Builder:
    """Environments made with uv, and hatchling from requirements/build.lock."""

    def __init__(self, folder: Path) -> None:
        beside = Path(sys.executable).with_name("uv")
        uv = str(beside) if beside.exists() else shutil.which("uv")
        if uv is None:
            raise ReleaseError("uv was not found: run `make setup`.")
        self._uv = uv
        self._folder = folder
        self._python: Path | None = None

    def environment(self, name: str, *install: str | Path) -> Path:
        """A fresh environment with these packages; returns its folder of programs."""
        folder = self._folder / name
        advice = "Packages come from your index or uv's cache; check the network, or unset UV_OFFLINE."
        run([self._uv, "venv", "--quiet", "--python", sys.executable, folder], advice=advice)
        programs = folder / "bin"
        target = ["--quiet", "--python", str(programs / "python")]
        run([self._uv, "pip", "install", *target, *install], advice=advice)
        return programs

    def build(self, source: Path, out: Path, *targets: str) -> None:
        """Build `sdist` and `wheel` as targets; the wheel's hook builds the web chat."""
        if self._python is None:
            lock = ROOT / "requirements" / "build.lock"
            self._python = self.environment("build", "--require-hashes", "-r", lock) / "python"
        chosen = [word for target in targets for word in ("-t", target)]
        advice = "`make web` builds the page alone."
        run([self._python, "-m", "hatchling", "build", "-d", out, *chosen], cwd=source, advice=advice)


def check_wheel(wheel: Path) -> list[str]:
    """The names of its files, if the web chat is complete."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        absent = sorted({PAGE, LICENCES} - set(names))
        if not absent:
            absent = missing_from_page(names, archive.read(PAGE).decode())
    if absent:
        raise ReleaseError(f"{wheel.name} lacks {', '.join(absent)}: see hatch_build.py and web/build.py.")
    return sorted(names)


def smoke(programs: Path, version: str, folder: Path) -> None:
    """What must work in a fresh installation: the version, `initialize` on stdio, and a turn of the built-in agent."""
    home, project = folder / "home", folder / "project"
    project.mkdir(parents=True)
    kept = {key: os.environ[key] for key in ("PATH", "LANG", "TERM", "TMPDIR") if key in os.environ}
    env = {**kept, "HOME": str(folder), "DRAGOMAN_HOME": str(home)}
    program = programs / "dragoman"
    advice = (
        "To repeat it: `uv build`, install the wheel in a fresh venv, and set DRAGOMAN_HOME=$(mktemp -d)."
    )

    def dragoman(*words: str, text: str = "") -> str:
        return run([program, *words], cwd=project, env=env, text=text, seconds=SMOKE_SECONDS, advice=advice)

    said = dragoman("--version").strip()
    if said != f"dragoman {version}":
        raise ReleaseError(f"`dragoman --version` prints {said!r}, not {version}. {advice}")
    params = {"protocolVersion": 1, "clientCapabilities": {}}
    request = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    answer = dragoman("acp", "builtin", text=json.dumps(request) + "\n")
    check_initialized(answer, version)
    if "/help" not in dragoman("exec", "-a", "builtin", "--quiet", "/help"):
        raise ReleaseError(f"The built-in agent does not answer /help. {advice}")


def check_initialized(answer: str, version: str) -> None:
    """The first line is the answer to `initialize`, of this version."""
    try:
        message = json.loads(answer.partition("\n")[0])
        result = message["result"]
        right = (
            message["id"] == 0
            and result["protocolVersion"] == 1
            and result["agentInfo"]["version"] == version
        )
    except (ValueError, KeyError, TypeError):
        right = False
    if not right:
        raise ReleaseError(f"`dragoman acp builtin` answers `initialize` with {answer[:500]!r}.")


def build_and_try(version: str, texts: Mapping[Path, str], folder: Path) -> list[Path]:
    """A wheel and an sdist that were installed and tried, each in an environment of its own."""
    source, out, again = folder / "source", folder / "dist", folder / "again"
    archive = folder / "source.tar"
    git("archive", "--output", str(archive), "HEAD")
    unpack(archive, source)
    write(source, texts)
    lend_packages(source)

    builder = Builder(folder)
    say("  web chat, sdist and wheel")
    builder.build(source, out, "sdist", "wheel")
    sdist, wheel = out / f"dragoman-{version}.tar.gz", out / f"dragoman-{version}-py3-none-any.whl"
    for file in (sdist, wheel):
        if not file.is_file():
            there = ", ".join(sorted(path.name for path in out.iterdir()))
            raise ReleaseError(f"{file.name} was not built; there is {there}.")
    names = check_wheel(wheel)

    say("  a wheel from the sdist")
    unpack(sdist, folder / "unpacked")
    unpacked = folder / "unpacked" / f"dragoman-{version}"
    lend_packages(unpacked)
    builder.build(unpacked, again, "wheel")
    from_sdist = again / wheel.name
    differ = sorted(set(names) ^ set(check_wheel(from_sdist)))
    if differ:
        told = ", ".join(differ[:10])
        advice = "See [tool.hatch.build.targets.sdist] in pyproject.toml."
        raise ReleaseError(f"The wheel made from the sdist differs in {len(differ)} files: {told}. {advice}")

    lock = ROOT / "requirements" / "image.lock"
    for name, file in (("wheel", wheel), ("sdist", from_sdist)):
        say(f"  {name}: install it in a fresh environment, --version, initialize, a turn")
        programs = builder.environment(name, "--constraint", lock, file)
        smoke(programs, version, folder / f"{name}-smoke")
    return [wheel, sdist]


def release(version: str, check: bool) -> None:
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    say(f"1/4 Check the work tree, {VERSION_FILE} and {CHANGELOG}")
    version_key(version)
    check_tree(version)
    texts = edited(version, date)
    with tempfile.TemporaryDirectory(prefix="dragoman-release-") as made:
        say(f"2/4 Build and try {version} in a copy")
        files = build_and_try(version, texts, Path(made))
        if check:
            say(f"Done: {version} can be released. --check leaves the work tree as it is.")
            return
        say(f"3/4 Write {VERSION_FILE} and {CHANGELOG}, and the files to dist/")
        write(ROOT, texts)
        (ROOT / "dist").mkdir(exist_ok=True)
        for file in files:
            shutil.copy(file, ROOT / "dist" / file.name)
    say("4/4 Done. What is left is yours to do:")
    for line in next_steps(version, [file.name for file in files]):
        say(f"    {line}")


def next_steps(version: str, names: Sequence[str]) -> list[str]:
    return [
        "git diff                                  # the version and the changelog",
        f'git commit -am "Release {version}"',
        "make test                                 # CI must pass on this commit",
        f'git tag -a v{version} -m "Dragoman {version}"',
        f"git push origin HEAD v{version}",
        f".venv/bin/uv publish {' '.join(f'dist/{name}' for name in names)}",
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="tools/release.py", description="Prepare a release up to the upload."
    )
    parser.add_argument("version", metavar="VERSION", help="for example 0.2.0, or 0.2.0rc1")
    parser.add_argument("--check", action="store_true", help="build and try it, and change nothing here")
    options = parser.parse_args(arguments)
    try:
        release(options.version, options.check)
    except ReleaseError as error:
        print(f"\nNo release was made. {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
