"""What `import dragoman` offers, and what it costs."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import re
import subprocess
import sys
from pathlib import Path

import dragoman
import dragoman.client
import dragoman.client.sync
from dragoman.agent import Turn

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "reference" / "python-api.md"
LOADED = """
import json, sys
before = set(sys.modules)
import dragoman
dragoman.__version__
print(json.dumps(sorted(set(sys.modules) - before)))
"""


def test_importing_the_package_imports_nothing_else() -> None:
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, check=True, timeout=60)
    loaded = json.loads(done.stdout)
    assert loaded == ["dragoman"], "neither asyncio nor msgspec nor anything else"


def test_the_version_is_that_of_the_installed_package() -> None:
    assert dragoman.__version__ == importlib.metadata.version("dragoman"), "run `make setup`"


def test_every_public_name_exists_and_is_documented() -> None:
    page = PAGE.read_text()
    for name in dragoman.__all__:
        assert hasattr(dragoman, name)
        assert f"`dragoman.{name}`" in page
    assert f"`{Turn.__module__}.{Turn.__name__}`" in page


def test_every_name_of_the_client_library_is_documented() -> None:
    page = PAGE.read_text()
    for module in (dragoman.client, dragoman.client.sync):
        assert sorted(module.__all__) == list(module.__all__)
        for name in module.__all__:
            assert hasattr(module, name)
            assert re.search(rf"`{name}\b", page), name


def test_a_turn_has_the_members_that_the_page_lists() -> None:
    listed = set(re.findall(r"turn\.(\w+)", (DOCS / "how-to" / "python-agent.md").read_text()))
    assert listed >= {"cwd", "say"}
    assert listed <= {field.name for field in dataclasses.fields(Turn)} | set(dir(Turn))
