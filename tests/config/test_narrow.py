"""An untrusted workspace file chooses only what is at least as narrow as what the user has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.config.errors import ConfigError
from dragoman.config.load import Loaded
from dragoman.config.paths import Paths
from dragoman.config.root import WORKSPACE_FILE
from dragoman.config.workspace import Trust

LoadWith = Callable[..., Loaded]

BASE = """
default_agent = "mine"
[agents.mine]
command = ["mine"]
{mine}
[agents.theirs]
command = ["theirs"]
{theirs}
[sandboxes.wide]
kind = "bubblewrap"
mounts = ["/data"]
[sandboxes.tight]
kind = "bubblewrap"
network = false
memory = "1g"
[sandboxes.roomy]
kind = "bubblewrap"
network = false
memory = "2g"
[sandboxes.image]
kind = "podman"
image = "x"
[sandboxes.none]
kind = "local"
"""
CHOOSES = 'default_agent = "theirs"\n'

WIDER = [
    ('sandbox = "bubblewrap"', "", "runs in no sandbox"),
    ('sandbox = "bubblewrap"', 'sandbox = "local"', "runs in no sandbox"),
    ('sandbox = "bubblewrap"', 'sandbox = "none"', "runs in no sandbox"),
    ('sandbox = "bubblewrap"', 'sandbox = "wide"', "mounts"),
    ('sandbox = "tight"', 'sandbox = "bubblewrap"', "network"),
    ('sandbox = "tight"', 'sandbox = "roomy"', "memory"),
    ('sandbox = "bubblewrap"', 'sandbox = "image"', "kind"),
    ("", "serve_fs = true", "serve_fs"),
    ("", "serve_terminal = true", "serve_terminal"),
    ("duet = false", "", "duet"),
    ("", 'share = "all"', "share"),
    ("", 'env = { KEY = "k" }', "KEY"),
    ('env = { KEY = "a" }', 'env = { KEY = "b" }', "KEY"),
    ("", 'secrets = { KEY = "env:KEY" }', "KEY"),
    ("", 'continue_command = ["tasks"]', "continue_command"),
    ("", "auto_resume = true", "auto_resume"),
    ("", 'kind = "remote"\nurl = "wss://far/acp"', "remote"),
]
NARROWER = [
    ("", 'sandbox = "bubblewrap"'),
    ('sandbox = "none"', 'sandbox = "tight"'),
    ('sandbox = "bubblewrap"', 'sandbox = "bubblewrap"'),
    ('sandbox = "wide"', 'sandbox = "tight"'),
    ('sandbox = "roomy"', 'sandbox = "tight"'),
    ("serve_fs = true\nserve_terminal = true", ""),
    ('env = { KEY = "k" }', 'env = { KEY = "k" }'),
    ("", "duet = false"),
]


@pytest.mark.parametrize(("mine", "theirs", "why"), WIDER)
def test_an_agent_that_may_do_more_needs_trust(
    load_with: LoadWith, paths: Paths, project: Path, mine: str, theirs: str, why: str
) -> None:
    loaded = load_with(user=BASE.format(mine=mine, theirs=theirs), workspace=CHOOSES)
    assert loaded.config.default_agent == "mine"
    assert loaded.origin("default_agent") == str(paths.config_file)
    (warning,) = loaded.warnings
    assert 'ignored default_agent = "theirs"' in warning
    assert why in warning
    assert f"run `dragoman config trust` in {project}" in warning
    Trust(paths).grant(project / WORKSPACE_FILE, CHOOSES.encode())
    trusted = load_with()
    assert (trusted.config.default_agent, trusted.warnings) == ("theirs", [])


@pytest.mark.parametrize(("mine", "theirs"), NARROWER)
def test_an_agent_that_may_do_no_more_needs_none(load_with: LoadWith, mine: str, theirs: str) -> None:
    loaded = load_with(user=BASE.format(mine=mine, theirs=theirs), workspace=CHOOSES)
    assert (loaded.config.default_agent, loaded.warnings) == ("theirs", [])


@pytest.mark.parametrize(
    "command",
    [
        '["claude", "--dangerously-skip-permissions"]',
        '["gemini", "--acp", "--yolo"]',
        '["gemini", "--approval-mode=yolo"]',
        '["codex", "--sandbox", "danger-full-access"]',
        '["claude", "--permission-mode", "bypassPermissions"]',
        '["copilot", "--allow-all-tools"]',
    ],
)
def test_an_agent_that_approves_itself_needs_trust(load_with: LoadWith, command: str) -> None:
    user = f'[agents.theirs]\ncommand = {command}\n[agents.mine]\ncommand = ["x"]\n'
    loaded = load_with(user=f'default_agent = "mine"\n{user}', workspace=CHOOSES)
    assert loaded.config.default_agent == "mine"
    assert "without asking" in loaded.warnings[0]


def test_a_sandbox_that_the_environment_sets_counts(load_with: LoadWith) -> None:
    user = BASE.format(mine="", theirs="")
    loaded = load_with(user=user, workspace=CHOOSES, env={"DRAGOMAN_AGENTS_MINE_SANDBOX": "bubblewrap"})
    assert loaded.config.default_agent == "mine"


def test_a_choice_that_does_not_count_is_not_warned_of(load_with: LoadWith) -> None:
    user = BASE.format(mine='sandbox = "bubblewrap"', theirs="")
    loaded = load_with(user=user, workspace=CHOOSES, env={"DRAGOMAN_DEFAULT_AGENT": "mine"})
    assert (loaded.config.default_agent, loaded.warnings) == ("mine", [])


def test_a_known_agent_may_be_chosen(load_with: LoadWith) -> None:
    loaded = load_with(workspace='default_agent = "gemini"\n')
    assert (loaded.config.default_agent, loaded.warnings) == ("gemini", [])


def test_a_workspace_names_no_program_in_test_mode(load_with: LoadWith) -> None:
    """There an unknown name is a program to run."""
    loaded = load_with(workspace='default_agent = "./evil"\n', env={"DRAGOMAN_ACP_TEST_MODE": "1"})
    assert loaded.config.default_agent == "builtin"
    assert 'ignored default_agent = "./evil"' in loaded.warnings[0]


@pytest.mark.parametrize(
    ("user", "key", "value"),
    [
        ("", "max_sessions", "5000"),
        ("", "max_message_bytes", "99999999999"),
        ("max_prompt_bytes = 10", "max_prompt_bytes", "11"),
        ("max_prompt_bytes = 10", "max_prompt_bytes", "0"),
        ("", "cancel_timeout", "1e9"),
        ("", "start_timeout", "1e9"),
        ("", "start_timeout", "inf"),
    ],
)
def test_a_workspace_raises_no_limit(load_with: LoadWith, user: str, key: str, value: str) -> None:
    before = load_with(user=f"[limits]\n{user}\n").config.limits
    loaded = load_with(workspace=f"[limits]\n{key} = {value}\n")
    assert loaded.config.limits == before
    assert f"ignored limits.{key} = " in loaded.warnings[0]
    assert "dragoman config trust" in loaded.warnings[0]


def test_a_workspace_lowers_limits(load_with: LoadWith) -> None:
    loaded = load_with(workspace="[limits]\nmax_sessions = 3\nstart_timeout = 5000.0\nmax_prompt_bytes = 7\n")
    limits = loaded.config.limits
    assert (limits.max_sessions, limits.max_prompt_bytes, limits.start_timeout) == (3, 7, 60.0)


def test_a_workspace_accepts_no_batches_that_the_user_rejects(load_with: LoadWith) -> None:
    loaded = load_with(user='[protocol]\nbatches = "reject"\n', workspace='[protocol]\nbatches = "accept"\n')
    assert loaded.config.protocol.batches == "reject"
    assert 'ignored protocol.batches = "accept"' in loaded.warnings[0]


def test_a_workspace_with_an_unknown_agent_is_told_so(load_with: LoadWith) -> None:
    with pytest.raises(ConfigError, match='there is no agent "nobody"'):
        load_with(workspace='default_agent = "nobody"\n')
