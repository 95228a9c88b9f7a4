"""`dragoman config`."""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

Run = Callable[..., subprocess.CompletedProcess[str]]

SECRET = "sk-very-secret"


def test_show_tells_who_set_what_and_hides_secrets(run: Run, home: Path) -> None:
    text = f'[agents.far]\nkind = "remote"\nurl = "wss://h/acp"\nenv = {{ KEY = "{SECRET}" }}\n'
    (home / "config.toml").write_text(text)
    done = run("config", "show", env={"DRAGOMAN_LIMITS_MAX_SESSIONS": "9"})
    assert done.returncode == 0, done.stderr
    assert "max_sessions = 9  # environment variable DRAGOMAN_LIMITS_MAX_SESSIONS" in done.stdout
    assert "port = 8420  # default" in done.stdout
    assert f'kind = "remote"  # {home}/config.toml' in done.stdout
    assert SECRET not in done.stdout
    shown = tomllib.loads(done.stdout)
    assert list(shown["agents"]) == ["far"], "agents that are only known are not shown"
    assert shown["agents"]["far"]["env"] == {"KEY": "********"}


def test_show_as_json(run: Run, home: Path) -> None:
    (home / "config.toml").write_text(f'[agents.gemini]\nenv = {{ KEY = "{SECRET}" }}\n')
    done = run("config", "show", "--json", "--all")
    shown = json.loads(done.stdout)
    assert SECRET not in done.stdout
    assert shown["origins"]["agents.gemini.env.KEY"] == f"{home}/config.toml"
    assert shown["origins"]["agents.gemini.command"] == "known agent"
    assert shown["origins"]["limits.max_sessions"] == "default"
    assert "qwen" in shown["config"]["agents"]


def test_path_tells_where_things_are(run: Run, home: Path) -> None:
    assert run("config", "path").stdout == f"{home}/config.toml\n"
    assert run("config", "path", "database").stdout == f"{home}/dragoman.db\n"
    assert f"socket     {home}/run/dragoman.sock\n" in run("config", "path", "--all").stdout
    assert json.loads(run("config", "path", "--json").stdout)["token"] == f"{home}/run/token"
    wrong = run("config", "path", "databse")
    assert wrong.returncode == 2
    assert 'did you mean "database"' in wrong.stderr


def test_init_writes_a_file_once(run: Run, home: Path) -> None:
    def shown() -> object:
        return json.loads(run("config", "show", "--json").stdout)["config"]

    default = shown()
    assert run("config", "init").returncode == 0
    assert shown() == default
    (home / "config.toml").write_text("default_agent = 'qwen'\n")
    again = run("config", "init")
    assert again.returncode == 2
    assert "exists already (--force replaces it)" in again.stderr
    assert "qwen" in (home / "config.toml").read_text()
    assert run("config", "init", "--force").returncode == 0
    assert shown() == default


def test_init_repairs_a_file_that_cannot_be_loaded(run: Run, home: Path) -> None:
    (home / "config.toml").write_text("broken = [\n")
    assert run("config", "init", "--force").returncode == 0


def test_trust_lets_a_workspace_name_commands(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "project" / ".dragoman"
    folder.mkdir()
    (folder / "config.toml").write_text('[agents.theirs]\ncommand = ["./theirs"]\n')
    before = run("agents", "list")
    assert "theirs" not in before.stdout
    assert "ignored agents.theirs.command" in before.stderr
    assert "dragoman config trust" in before.stderr
    granted = run("config", "trust")
    assert granted.stdout == f"{folder}/config.toml is trusted; it sets agents\n"
    after = run("agents", "list")
    assert "./theirs" in after.stdout
    assert after.stderr == ""
    assert "no longer trusted" in run("config", "trust", "--remove").stdout
    assert "theirs" not in run("agents", "list").stdout


def test_trust_without_a_file_is_an_error(run: Run) -> None:
    done = run("config", "trust")
    assert done.returncode == 2
    assert "there is no " in done.stderr


SECRET_PLACES = f"""
default_agent = "far"
[agents.far]
kind = "remote"
url = "ws://127.0.0.1:9/acp?token={SECRET}&room={SECRET}"
[agents.model]
kind = "builtin"
base_url = "http://me:{SECRET}@127.0.0.1:9/v1?key={SECRET}"
[agents.tool]
command = ["tool", "--api-key", "{SECRET}", "--url=https://me:{SECRET}@host/", "API_TOKEN={SECRET}"]
[sandboxes.box]
kind = "docker"
image = "x"
engine = ["no-such-docker", "--host=tcp://me:{SECRET}@host:1"]
options = ["--env=MY_TOKEN={SECRET}"]
[traces]
endpoint = "https://me:{SECRET}@host/v1/traces?api_key={SECRET}"
"""


def test_no_command_shows_secrets_of_addresses_and_command_lines(run: Run, home: Path) -> None:
    (home / "config.toml").write_text(SECRET_PLACES)
    for arguments in (
        ["config", "show"],
        ["config", "show", "--json", "--all"],
        ["agents", "list"],
        ["agents", "list", "--json"],
        ["agents", "check", "far"],
        ["agents", "check", "far", "--json"],
        ["doctor"],
        ["doctor", "--json"],
    ):
        done = run(*arguments, env={"DRAGOMAN_LOG_LEVEL": "debug"})
        assert SECRET not in done.stdout + done.stderr, arguments
        assert done.stdout
    listed = {row["name"]: row for row in json.loads(run("agents", "list", "--json").stdout)}
    assert listed["far"]["url"] == "ws://127.0.0.1:9/acp?token=********&room=********"
    assert listed["tool"]["command"][2:4] == ["********", "--url=https://********@host/"]


def test_no_mistake_shows_the_secrets_of_an_address(run: Run, home: Path) -> None:
    for url in (
        f"wss://me:{SECRET}/x@host/acp",
        f"wss://me:{SECRET}@host/acp",
        f"ftp://host/?token={SECRET}",
    ):
        (home / "config.toml").write_text(f'[agents.far]\nkind = "remote"\nurl = "{url}"\n')
        done = run("agents", "list")
        assert done.returncode == 2
        assert "agents.far.url" in done.stderr
        assert SECRET not in done.stderr


def test_every_command_refuses_a_home_that_others_write_to(run: Run, home: Path) -> None:
    (home / "config.toml").write_text('[agents.evil]\ncommand = ["./evil"]\n')
    home.chmod(0o777)
    for arguments in (
        ["agents", "list"],
        ["config", "show"],
        ["config", "init", "--force"],
        ["tokens", "create", "x"],
        ["sessions", "list"],
        ["exec", "hello"],
        ["acp", "evil"],
        ["serve", "--url"],
    ):
        done = run(*arguments)
        assert done.returncode == 2, arguments
        assert f"{home} can be written to by other users (mode 0777)" in done.stderr
        assert "evil" not in done.stdout
    done = run("doctor")
    assert done.returncode == 1 and "evil" not in done.stdout
    assert "mode 0777" in done.stdout and f"chmod go-w {home}" in done.stdout
    assert sorted(each.name for each in home.iterdir()) == ["config.toml"]


def test_one_key_is_set_read_and_refused(run: Run, home: Path) -> None:
    (home / "config.toml").write_text("# mine\n[serve]\nport = 1  # low\n\n[log]\nlevel = 'info'\n")
    assert run("config", "set", "serve.port", "8421").returncode == 0
    assert run("config", "set", "agents.claude.env.MODEL", "opus 4").returncode == 0
    assert run("config", "set", "default_agent", "claude").returncode == 0
    assert run("config", "set", "sessions.queue", "abc").stderr.startswith("dragoman: sessions.queue: ")
    assert run("config", "get", "serve.port").stdout == "8421\n"
    assert run("config", "get", "agents.claude.env.MODEL").stdout == "********\n"
    assert run("config", "get", "default_agent", "--json").stdout == '"claude"\n'
    text = (home / "config.toml").read_text()
    assert "# mine" in text and "port = 8421  # low" in text
    for arguments, message in [
        (("set", "serve.prot", "1"), 'did you mean "port"'),
        (("set", "serve.port", "soon"), "serve.port: expected an integer"),
        (("set", "default_agent", "clod"), "there is no agent"),
        (("set", "a b", "1"), '"a b" is no key'),
        (("get", "serve.prot"), 'there is no key "serve.prot"'),
    ]:
        done = run("config", *arguments)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert (home / "config.toml").read_text() == text
    assert run("config", "get", "serve.auth_token").returncode == 1


def test_the_file_is_edited_in_an_editor_and_checked(run: Run, home: Path) -> None:
    def editor(command: str) -> dict[str, str]:
        return {"EDITOR": f"/bin/sh -c '{command}' sh", "PATH": "/usr/bin:/bin"}

    assert "not put in force" in run("config", "edit", env=editor('echo "x = 1" > "$1"')).stderr
    (home / "config.draft.toml").unlink()
    done = run("config", "edit", env=editor('echo "serve.port = 8499" > "$1"'))
    assert (done.returncode, "is in force" in done.stdout) == (0, True), done.stderr
    assert run("config", "get", "serve.port").stdout == "8499\n"
