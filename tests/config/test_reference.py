"""The page and the template say what the model says."""

from __future__ import annotations

import itertools
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


def test_the_template_sets_nothing(load_with: Callable[..., Loaded]) -> None:
    assert load_with(user=template()).config == load_with().config


def test_every_key_of_the_template_is_valid_once_its_comment_is_removed(
    load_with: Callable[..., Loaded],
) -> None:
    lines = template().splitlines()
    table: list[int] = []
    """A table that is commented out: the lines of its header and of the examples that it needs."""
    for number, line in enumerate(lines):
        if line.startswith(("[", "#[")):
            examples = itertools.takewhile(lambda n: "  # " not in lines[n], range(number, len(lines)))
            table = list(examples) if line.startswith("#") else []
        elif line.startswith("#") and not line.startswith("# "):
            if table and (line.split()[0], lines[table[0]]) == ("#url", "#[mcp.NAME]"):
                continue  # instead of `command`
            on = {*table, number}
            load_with(user="\n".join(text.lstrip("#") if n in on else text for n, text in enumerate(lines)))


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
