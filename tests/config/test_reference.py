"""The page and the template say what the model says."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from pathlib import Path

from dragoman.config.load import Loaded
from dragoman.config.reference import END, START, refresh, template
from dragoman.config.show import as_toml

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "configuration.md"


def test_the_page_is_up_to_date() -> None:
    page = PAGE.read_text()
    assert START in page
    assert END in page
    assert page == refresh(page), f"run: python -m dragoman.config.reference {PAGE}"


def test_every_line_of_the_template_is_a_comment() -> None:
    assert tomllib.loads(template()) == {}


def test_the_template_names_the_choices_of_a_key() -> None:
    lines = template().splitlines()
    sync = next(line for line in lines if line.startswith("#sync = "))
    assert sync.endswith('One of "full", "normal".')
    outside = next(line for line in lines if line.startswith("#outside_workspace = "))
    assert outside.startswith("#outside_workspace = true ") and outside.endswith("unset by default.")


def test_the_template_is_valid_once_its_keys_are_on(load_with: Callable[..., Loaded]) -> None:
    lines = [line for line in template().splitlines() if ' = ""' not in line]
    text = "\n".join(
        line[1:] if line.startswith("#") and not line.startswith("# ") else line for line in lines
    )
    config = load_with(user=text).config
    assert config.agents["NAME"].command == ["my-agent", "--acp"]


def test_what_is_shown_can_be_a_configuration_again(load_with: Callable[..., Loaded]) -> None:
    user = '[agents.x]\ncommand = ["x"]\n[sandboxes.b]\nkind = "ssh"\nhost = "h"\n[[policy.rules]]\ndecision = "ask"\n'
    loaded = load_with(user=user)
    again = load_with(user=as_toml(loaded, everything=True))
    assert again.config == loaded.config
