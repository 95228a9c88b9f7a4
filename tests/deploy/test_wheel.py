"""What a wheel passes on: the page, and the licences of all that is in it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = ROOT / "web" / "node_modules"
BUILT = ROOT / "src" / "dragoman" / "web_assets" / "third-party-licenses.txt"
IN_WHEEL = "dragoman/web_assets/third-party-licenses.txt"
TITLE = re.compile(r"^={80}\n(\S+) (\S+) \(.*\)\n={80}\n", re.MULTILINE)


def named(text: str) -> dict[str, str]:
    """Packages by name, with what the file says of each."""
    found = list(TITLE.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    return {match[1]: text[match.end() : end] for match, end in zip(found, ends, strict=True)}


def own_text(name: str) -> str:
    """The licence as the package itself has it, or as it is kept here because that has none."""
    files = [file for file in sorted((MODULES / name).iterdir()) if re.match("(?i)licen[cs]e", file.name)]
    kept = ROOT / "web" / "missing-licences" / f"{name.replace('/', '+')}.txt"
    return (files[0] if files else kept).read_text().strip()


def shipped() -> set[str]:
    """Everything that the page asks for, directly or not, whatever the bundler made of it."""
    packages = json.loads((ROOT / "web" / "package-lock.json").read_text())["packages"]
    return {
        path.rpartition("node_modules/")[2] for path, about in packages.items() if path and "dev" not in about
    }


def check(text: str) -> None:
    licences = named(text)
    direct = json.loads((ROOT / "web" / "package.json").read_text())["dependencies"]
    assert set(direct) <= set(licences), "every dependency is in the page"
    assert set(licences) <= shipped() | {"vite", "rolldown"}, (
        "and nothing else is, but helpers of the bundler"
    )
    for name, said in licences.items():
        assert own_text(name) in said, name
        assert "copyright" in said.lower() or "mozilla public license" in said.lower(), name


def copied_source(folder: Path) -> Path:
    built = shutil.ignore_patterns("node_modules", "dist*", "web_assets", "__pycache__")
    for name in ("src", "web"):
        shutil.copytree(ROOT / name, folder / name, ignore=built)
    for name in ("pyproject.toml", "hatch_build.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    (folder / "web" / "node_modules").symlink_to(MODULES)
    return folder


def test_the_page_comes_with_the_licences_of_what_is_in_it() -> None:
    check(BUILT.read_text())


@pytest.mark.long
def test_the_wheel_has_them_too(tmp_path: Path) -> None:
    source = copied_source(tmp_path / "source")  # other tests use the page that is built in the real one
    uv = Path(sys.executable).with_name("uv")
    command = [str(uv), "build", "--quiet", "--wheel", "--out-dir", str(tmp_path / "out"), str(source)]
    subprocess.run(command, check=True, timeout=600)
    with zipfile.ZipFile(next((tmp_path / "out").glob("*.whl"))) as wheel:
        check(wheel.read(IN_WHEEL).decode())
        assert any(name.endswith("licenses/LICENSE") for name in wheel.namelist())
