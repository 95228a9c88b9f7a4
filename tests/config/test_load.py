"""Layers, and what a person reads when one of them is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.config.errors import ConfigError
from dragoman.config.load import Loaded, flag
from dragoman.config.paths import Paths

LoadWith = Callable[..., Loaded]


def test_without_any_file_the_defaults_hold(load_with: LoadWith) -> None:
    config = load_with().config
    assert config.default_agent == "builtin"
    assert config.limits.max_sessions == 1000
    assert config.limits.max_message_bytes == 33554432
    assert config.sessions.on_disconnect == "keep"
    assert config.agents["gemini"].command == ["gemini", "--acp"]


def test_later_layers_win_key_by_key(load_with: LoadWith) -> None:
    loaded = load_with(
        user="[limits]\nmax_sessions = 1\nmax_prompt_bytes = 9\ncancel_timeout = 1\nstart_timeout = 1\n",
        workspace="[limits]\nmax_prompt_bytes = 2\ncancel_timeout = 2\nstart_timeout = 2\n",
        env={"DRAGOMAN_LIMITS_CANCEL_TIMEOUT": "3", "DRAGOMAN_LIMITS_START_TIMEOUT": "3"},
        flags=[flag("--start-timeout", ("limits", "start_timeout"), 4.0)],
    )
    limits = loaded.config.limits
    assert (limits.max_sessions, limits.max_prompt_bytes, limits.cancel_timeout, limits.start_timeout) == (
        1,
        2,
        3,
        4,
    )


def test_each_value_remembers_its_origin(load_with: LoadWith, paths: Paths, project: Path) -> None:
    loaded = load_with(
        user="[limits]\nmax_sessions = 5\n",
        workspace='[protocol]\nbatches = "reject"\n',
        env={"DRAGOMAN_SERVE_PORT": "1"},
        flags=[flag("--log-level", ("log", "level"), "debug")],
    )
    assert loaded.origin("limits", "max_sessions") == str(paths.config_file)
    assert loaded.origin("protocol", "batches") == str(project / ".dragoman/config.toml")
    assert loaded.origin("serve", "port") == "environment variable DRAGOMAN_SERVE_PORT"
    assert loaded.origin("log", "level") == "option --log-level"
    assert loaded.origin("agents", "gemini", "command") == "known agent"
    assert loaded.origin("sessions", "journal") == "default"


def test_one_key_of_a_known_agent_can_be_changed(load_with: LoadWith) -> None:
    agent = load_with(user='[agents.gemini.env]\nGEMINI_API_KEY = "k"\n').config.agents["gemini"]
    assert (agent.command, agent.env) == (["gemini", "--acp"], {"GEMINI_API_KEY": "k"})


MISTAKES = [
    ("[limits]\nmax_sesions = 3", 'limits.max_sesions: there is no such key; did you mean "max_sessions"'),
    ("[limit]\nmax_sessions = 3", 'limit: there is no such key; did you mean "limits"'),
    (
        '[limits]\nmax_sessions = "many"',
        "limits.max_sessions: expected an integer of at least 1, got the string",
    ),
    (
        "[limits]\nmax_sessions = 0",
        "limits.max_sessions: expected an integer of at least 1, got the number 0",
    ),
    ("[limits]\nmax_sessions = true", "limits.max_sessions: expected an integer of at least 1, got true"),
    ("[serve]\nport = 70000", "serve.port: expected an integer from 0 to 65535, got the number 70000"),
    ("default_agent = 3", "default_agent: expected a string, got the number 3"),
    ('limits = "none"', 'limits: expected a table, got the string "none"'),
    (
        '[agents.x]\ncommand = "run me"',
        'agents.x.command: expected a list of strings, got the string "run me"',
    ),
    ('[agents.x]\ncommand = ["a", 3]', "agents.x.command[1]: expected a string, got the number 3"),
    ('[agents.x]\nkind = "acpp"', 'agents.x.kind: expected one of "acp", "builtin", "claude"'),
    ('[agents.x]\nkind = "acpp"', 'did you mean "acp"?'),
    (
        "[agents.x]\n[agents.x.env]\nKEY = 12345",
        "agents.x.env.KEY: expected a string, got a number (not shown)",
    ),
    ("[agents.x]\ncomand = []", 'agents.x.comand: there is no such key; did you mean "command"'),
    ("[agents.x]\nshare = 'all'", 'agents.x.command: an agent of kind "acp" needs it'),
    ('[agents.x]\nkind = "remote"', 'agents.x.url: an agent of kind "remote" needs it'),
    ('[agents.rpc]\ncommand = ["x"]', "agents.rpc: the name is reserved, as are events, inline, sse"),
    ('[agents."a/b"]\ncommand = ["x"]', "agents.a/b: a name has letters, digits, - and _ only"),
    (
        '[agents.gemini]\nsandbox = "boks"\n[sandboxes.box]',
        'agents.gemini.sandbox: there is no sandbox "boks"; did you',
    ),
    ('[sandboxes.box]\nkind = "podman"', 'sandboxes.box.image: a sandbox of kind "podman" needs it'),
    (
        '[sandboxes.box]\nkind = "command"\ncommand = ["cai"]',
        'sandboxes.box.command: expected "{agent...}" among',
    ),
    ('default_agent = "gemni"', 'default_agent: there is no agent "gemni"; did you mean "gemini"'),
    (
        '[[workspaces]]\npath = "/x"\nagent = "gemni"',
        'workspaces[0].agent: there is no agent "gemni"; did you mean',
    ),
    ('[[workspaces]]\nagent = "gemini"', "workspaces[0].path: expected a string, got nothing"),
    (
        '[[policy.rules]]\ndecision = "alow"',
        'policy.rules[0].decision: expected one of "allow", "ask", "deny"',
    ),
    ("[mcp.x]", "mcp.x: a server has either `command` or `url`"),
    ('[mcp.x]\ncommand = ["a"]\nurl = "http://h/"', "mcp.x: a server has either `command` or `url`"),
    ('[mcp."a b"]\ncommand = ["a"]', "a name has letters, digits, - and _ only"),
    ('[mcp.x]\nurl = "ws://h/"', "mcp.x.url: expected http://HOST/… or https://HOST/…"),
    ('[mcp.x]\nurl = "https://me:secret@h/"', "mcp.x.url: expected http://HOST/… or https://HOST/…"),
    (
        '[mcp.x]\ncommand = ["a"]\nheaders = {A = "1"}',
        "mcp.x.headers: a server with `command` has no headers",
    ),
    (
        '[mcp.x]\ncommand = ["a"]\nsecrets = {A = "s3"}',
        "mcp.x.secrets.A: expected env:NAME, file:PATH or keyring",
    ),
    (
        '[mcp.x]\ncommand = ["a"]\nenv = {A = "1"}\nsecrets = {A = "env:B"}',
        "mcp.x.secrets.A: it is set twice: leave one of them out",
    ),
    (
        '[mcp.x]\ncommand = ["a"]\nagents = ["gemni"]',
        'mcp.x.agents: there is no agent "gemni"; did you mean "gemini"',
    ),
    (
        '[[policy.narrow]]\ndecision = "allow"',
        'policy.narrow[0].decision: expected "deny" or "ask", got "allow"',
    ),
    ('[audit]\nanchors = ["file:relative"]', "audit.anchors[0]: expected file:/PATH, https://URL"),
    ('[audit]\nanchors = ["syslog:", "ftp://x"]', "audit.anchors[1]: expected file:/PATH"),
]


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_a_mistake_names_the_file_the_key_and_what_was_expected(
    load_with: LoadWith, paths: Paths, text: str, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_with(user=text)
    assert str(caught.value).startswith(f"{paths.config_file}: ")
    assert message in str(caught.value)


def test_all_mistakes_are_named_at_once(load_with: LoadWith) -> None:
    with pytest.raises(ConfigError) as caught:
        load_with(user='[serve]\nport = "x"\n', workspace="[protocol]\nbatches = 1\n")
    first, second = str(caught.value).splitlines()
    assert "home/config.toml: serve.port" in first
    assert "project/.dragoman/config.toml: protocol.batches" in second


@pytest.mark.parametrize(
    ("text", "line"),
    [("a = 1\nb = \nc = 2\n", 2), ("[limits\n", 1), ("x = 1\nx = 2\n", 2), ('x = """\n\n', 3)],
)
def test_a_syntax_error_names_file_and_line(load_with: LoadWith, paths: Paths, text: str, line: int) -> None:
    with pytest.raises(ConfigError) as caught:
        load_with(user=text)
    assert str(caught.value).startswith(f"{paths.config_file}:{line}: is not valid TOML: ")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a = " + "[" * 3000, "is nested too deeply"),
        ("[a" + ".a" * 3000 + "]\nx = 1", "is nested too deeply"),
        ("a = " + "[1," * 200 + "]" * 200, "is nested too deeply"),
        ("a = " + "9" * 5000, "holds a number that is too long"),
    ],
    ids=["lists", "tables", "closed lists", "digits"],
)
def test_a_file_that_python_cannot_hold_is_an_error(load_with: LoadWith, text: str, what: str) -> None:
    with pytest.raises(ConfigError, match=f"config.toml: {what}"):
        load_with(user=text)


def test_a_file_that_is_not_text_is_an_error_with_its_line(load_with: LoadWith, paths: Paths) -> None:
    paths.ensure(paths.config_file.parent)
    paths.config_file.write_bytes(b"# fine\n# \xff\n")
    with pytest.raises(ConfigError, match=r"config.toml:2: is not UTF-8 text"):
        load_with()


def test_a_file_that_cannot_be_read_is_an_error(load_with: LoadWith, paths: Paths) -> None:
    paths.ensure(paths.config_file)
    with pytest.raises(ConfigError, match=r"config.toml: cannot be read: Is a directory"):
        load_with()


def test_in_test_mode_any_agent_name_is_accepted(load_with: LoadWith) -> None:
    loaded = load_with(user='default_agent = "mock"\n', env={"DRAGOMAN_ACP_TEST_MODE": "1"})
    assert loaded.config.default_agent == "mock"
