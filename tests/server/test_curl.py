"""The recipes of `docs/how-to/curl.md`, run with the real curl against a real `dragoman serve`."""

from __future__ import annotations

import asyncio
import re
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from support.serve_process import ServeProcess

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "curl.md"
PATIENCE = 60

pytestmark = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


@dataclass
class Recipe:
    """A section: its commands, and what they print."""

    title: str
    commands: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)


def recipes() -> tuple[str, list[Recipe]]:
    """What goes before every recipe, and the recipes."""
    found = [Recipe("")]
    pattern = re.compile(r"^## ([^\n]+)$|^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    for match in pattern.finditer(PAGE.read_text()):
        title, kind, text = match.groups()
        if title:
            found.append(Recipe(title))
        elif kind == "sh":
            found[-1].commands.append(text)
        else:
            assert kind == "output", kind
            found[-1].outputs.append(text)
    return "".join(found[0].commands), found[1:]


SETUP, RECIPES = recipes()


def test_the_page_has_all_four_ways() -> None:
    assert [each.title for each in RECIPES] == [
        "REST",
        "Inline",
        "One stream for everything",
        "Streamable HTTP",
    ]


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.title)
async def test_a_recipe_prints_what_the_page_says(
    serving: ServeProcess, home: Path, workspace: Path, recipe: Recipe
) -> None:
    script = "\n".join(["set -euo pipefail", SETUP, *recipe.commands])
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        script,
        cwd=workspace,
        env={
            "PATH": f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "DRAGOMAN_HOME": str(home),  # where the page's own line finds the token
            "URL": serving.base,
            "QUESTION_PROMPT": "permission",  # the scripted agent asks
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        printed, complaints = await asyncio.wait_for(process.communicate(), PATIENCE)
    except TimeoutError:
        process.kill()
        raise
    assert process.returncode == 0, complaints.decode()
    text = printed.decode()
    for line in [line for output in recipe.outputs for line in output.splitlines() if line]:
        wanted = ".*".join(re.escape(part) for part in line.split("…"))
        match = re.search(f"^{wanted}$", text, re.MULTILINE)
        assert match is not None, f"{line!r} is not in\n{text}"
        text = text[match.end() :]
