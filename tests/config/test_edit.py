"""Changing the user's file without hurting it."""

from __future__ import annotations

import tomllib

import pytest

from dragoman.config.errors import ConfigError
from dragoman.config.files.edit import add_agent, remove_agent, set_value
from dragoman.config.paths import Paths

WRITTEN = """# mine
default_agent = "a"  # best

[agents.a]
command = ["a"]  # keep me

[agents.b]
command = [
  "b",
]
[agents.b.env]
K = "v"

# limits
[limits]
max_sessions = 3
"""


def write(paths: Paths, text: str) -> None:
    paths.ensure(paths.config_file.parent)
    paths.config_file.write_text(text)


def test_an_agent_is_added_to_a_new_private_file(paths: Paths) -> None:
    add_agent(paths, "x", {"command": ["x", 'say "hi"\n'], "env": {"A B": "c"}})
    expected = {"agents": {"x": {"command": ["x", 'say "hi"\n'], "env": {"A B": "c"}}}}
    assert tomllib.loads(paths.config_file.read_text()) == expected
    assert paths.config_file.stat().st_mode & 0o777 == 0o600


def test_what_was_there_stays_as_it_was(paths: Paths) -> None:
    write(paths, WRITTEN)
    add_agent(paths, "c", {"command": ["c"]})
    assert paths.config_file.read_text().startswith(WRITTEN)


def test_an_agent_is_removed_with_its_tables_and_nothing_else(paths: Paths) -> None:
    write(paths, WRITTEN)
    remove_agent(paths, "b")
    text = paths.config_file.read_text()
    assert "# keep me" in text
    assert "max_sessions = 3" in text
    assert list(tomllib.loads(text)["agents"]) == ["a"]


def test_an_agent_is_replaced_only_by_force(paths: Paths) -> None:
    write(paths, WRITTEN)
    with pytest.raises(ConfigError, match='there is an agent "a" already'):
        add_agent(paths, "a", {"command": ["new"]})
    add_agent(paths, "a", {"command": ["new"]}, replace=True)
    assert tomllib.loads(paths.config_file.read_text())["agents"]["a"] == {"command": ["new"]}


def test_a_file_that_cannot_be_edited_safely_is_left_alone(paths: Paths) -> None:
    text = 'agents = { a = { command = ["a"] } }\n'
    write(paths, text)
    with pytest.raises(ConfigError, match="edit it by hand"):
        add_agent(paths, "b", {"command": ["b"]})
    with pytest.raises(ConfigError, match="edit it by hand"):
        remove_agent(paths, "a")
    assert paths.config_file.read_text() == text


def test_a_link_to_the_file_stays_a_link(paths: Paths) -> None:
    paths.ensure(paths.config_file.parent)
    target = paths.config_file.with_name("dotfiles.toml")
    target.write_text("")
    paths.config_file.symlink_to(target)
    add_agent(paths, "x", {"command": ["x"]})
    assert paths.config_file.is_symlink()
    assert "agents.x" in target.read_text()


@pytest.mark.parametrize(
    ("before", "path", "value", "after"),
    [
        ("", "serve.port", 1, "[serve]\nport = 1\n"),
        ("", "default_agent", "x", 'default_agent = "x"\n'),
        ("[log]\n", "default_agent", "x", 'default_agent = "x"\n[log]\n'),
        ("a = 1\n\n[log]\n", "default_agent", "x", 'a = 1\ndefault_agent = "x"\n\n[log]\n'),
        ("[serve]\nport = 1  # low\n", "serve.port", 2, "[serve]\nport = 2  # low\n"),
        (
            "[serve]\nnames = [\n  'a',\n]\nport = 1\n",
            "serve.names",
            ["b"],
            '[serve]\nnames = ["b"]\nport = 1\n',
        ),
        ("[serve]\n# port = 1\n\n[log]\n", "serve.port", 2, "[serve]\nport = 2\n# port = 1\n\n[log]\n"),
        ("[serve.quotas]\nx = 1", "serve.port", 2, "[serve.quotas]\nx = 1\n\n[serve]\nport = 2\n"),
        (
            "[[policy.rules]]\nport = 1\n",
            "serve.port",
            2,
            "[[policy.rules]]\nport = 1\n\n[serve]\nport = 2\n",
        ),
    ],
)
def test_one_key_is_set_and_the_rest_stays(
    paths: Paths, before: str, path: str, value: object, after: str
) -> None:
    paths.config_file.parent.mkdir(parents=True, exist_ok=True)
    paths.config_file.write_text(before)
    set_value(paths, path.split("."), value)
    assert paths.config_file.read_text() == after


def test_a_key_inside_an_inline_table_is_left_to_the_user(paths: Paths) -> None:
    paths.config_file.parent.mkdir(parents=True, exist_ok=True)
    paths.config_file.write_text("serve = { port = 1 }\n")
    with pytest.raises(ConfigError, match="edit it by hand"):
        set_value(paths, ["serve", "port"], 2)
