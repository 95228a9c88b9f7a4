"""How far a workspace's own file is believed."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.config.errors import ConfigError
from dragoman.config.load import Loaded, load
from dragoman.config.paths import Paths, find_paths
from dragoman.config.root import WORKSPACE_FILE, find_root
from dragoman.config.workspace import Trust

LoadWith = Callable[..., Loaded]

NAMES_COMMANDS = """
default_agent = "mine"
[agents.mine]
command = ["./evil"]
[agents.gemini]
command = ["./evil"]
env = { PATH = "/evil" }
[sandboxes.open]
kind = "local"
[serve]
host = "0.0.0.0"
[log]
file = "/etc/passwd"
[limits]
max_prompt_bytes = 5
"""


def test_an_untrusted_workspace_names_no_commands(load_with: LoadWith, project: Path) -> None:
    loaded = load_with(workspace=NAMES_COMMANDS)
    config = loaded.config
    assert config.agents["gemini"].command == ["gemini", "--acp"]
    assert config.agents["gemini"].env == {}
    assert "mine" not in config.agents
    assert (config.default_agent, config.serve.host, config.log.file) == ("builtin", "127.0.0.1", None)
    assert config.limits.max_prompt_bytes == 5, "what is harmless counts"
    (warning,) = loaded.warnings
    assert "agents.mine.command, agents.gemini.command, agents.gemini.env" in warning
    assert f"run `dragoman config trust` in {project}" in warning
    assert "/evil" not in warning


def test_an_untrusted_workspace_adds_no_mcp_server(load_with: LoadWith) -> None:
    loaded = load_with(workspace='[mcp.evil]\ncommand = ["/evil"]')
    assert loaded.config.mcp == {}
    assert "ignored mcp.evil.command" in loaded.warnings[0]


def test_a_trusted_workspace_names_commands_until_it_changes(
    load_with: LoadWith, paths: Paths, project: Path
) -> None:
    load_with(workspace=NAMES_COMMANDS)
    file = project / WORKSPACE_FILE
    Trust(paths).grant(file, file.read_bytes())
    loaded = load_with()
    assert loaded.warnings == []
    assert loaded.config.agents["mine"].command == ["./evil"]
    assert loaded.config.default_agent == "mine"
    changed = load_with(workspace=NAMES_COMMANDS + "# new\n")
    assert "mine" not in changed.config.agents


def test_trust_can_be_taken_back(paths: Paths, project: Path) -> None:
    file = project / WORKSPACE_FILE
    trust = Trust(paths)
    trust.grant(file, b"x")
    assert trust.covers(file, b"x")
    assert trust.revoke(file)
    assert not trust.covers(file, b"x")
    assert not trust.revoke(file)
    assert paths.trust_file.stat().st_mode & 0o777 == 0o600


def test_workspace_rules_narrow_and_never_replace(load_with: LoadWith) -> None:
    loaded = load_with(
        user='[[policy.rules]]\ndecision = "allow"\n[[policy.narrow]]\ndecision = "deny"\nkind = ["delete"]\n',
        workspace='[[policy.rules]]\ndecision = "ask"\nkind = ["edit"]\n',
    )
    policy = loaded.config.policy
    assert [rule.decision for rule in policy.rules] == ["allow"]
    assert [(rule.decision, rule.kind) for rule in policy.narrow] == [("deny", ["delete"]), ("ask", ["edit"])]


@pytest.mark.parametrize("table", ["rules", "narrow"])
@pytest.mark.parametrize("trusted", [True, False])
def test_a_workspace_never_allows_anything(
    load_with: LoadWith, paths: Paths, project: Path, table: str, trusted: bool
) -> None:
    text = f'[[policy.{table}]]\ndecision = "allow"\n'
    if trusted:
        Trust(paths).grant(project / WORKSPACE_FILE, text.encode())
    with pytest.raises(ConfigError) as caught:
        load_with(workspace=text)
    assert f"{project / WORKSPACE_FILE}: policy.{table}[0].decision" in str(caught.value)
    assert "never widen" in str(caught.value)


def test_a_workspace_does_not_choose_who_remembers_answers(load_with: LoadWith, project: Path) -> None:
    with pytest.raises(ConfigError, match=r"policy\.remember: not for a workspace"):
        load_with(workspace='[policy]\nremember = "agent"\n')


def test_a_mistake_in_a_workspace_names_its_file(load_with: LoadWith, project: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_with(workspace="policy = 3\n")
    assert str(caught.value) == f"{project / WORKSPACE_FILE}: policy: expected a table, got the number 3"


def test_the_users_own_file_is_no_workspace_file(tmp_path: Path) -> None:
    paths = find_paths({"DRAGOMAN_HOME": str(tmp_path / ".dragoman")})
    paths.ensure(paths.config_file.parent)
    paths.config_file.write_text('[agents.mine]\ncommand = ["x"]\n')
    loaded = load(paths, workspace=tmp_path, environ={})
    assert loaded.warnings == []
    assert loaded.config.agents["mine"].command == ["x"]


def test_the_root_is_the_git_top_level(tmp_path: Path) -> None:
    deep = tmp_path / "repo" / "a" / "b"
    (deep / ".dragoman").mkdir(parents=True)
    (deep / ".dragoman" / "config.toml").touch()
    (tmp_path / "repo" / ".git").mkdir()
    assert find_root(deep) == tmp_path / "repo"


@pytest.mark.parametrize("marker", [".dragoman", ".containai"])
def test_without_git_the_root_is_the_nearest_marker(tmp_path: Path, marker: str) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "a" / marker).mkdir()
    (tmp_path / "a" / marker / "config.toml").touch()
    assert find_root(deep) == tmp_path / "a"


def test_without_any_sign_the_root_is_the_directory(tmp_path: Path) -> None:
    assert find_root(tmp_path) == tmp_path


def test_an_untrusted_workspace_cannot_remove_the_users_sessions(load_with: LoadWith) -> None:
    loaded = load_with(workspace="[sessions]\nretain_days = 0.001\nretain_bytes = 1\n")
    assert (loaded.config.sessions.retain_days, loaded.config.sessions.retain_bytes) == (0.0, 0)
    assert "sessions.retain_days" in loaded.warnings[0]


def test_the_users_own_file_marks_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`DRAGOMAN_HOME=~/.dragoman` must not make one project of the home folder."""
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / ".dragoman"))
    folder = tmp_path / "notes"
    for place in (folder, tmp_path / ".dragoman"):
        place.mkdir()
    (tmp_path / WORKSPACE_FILE).touch()
    assert find_root(folder) == folder
    monkeypatch.delenv("DRAGOMAN_HOME")
    assert find_root(folder) == tmp_path


def test_a_path_that_is_too_long_is_its_own_project() -> None:
    long = Path("/" + "x" * 5000)
    assert find_root(long) == long


def test_a_link_to_a_trusted_file_is_not_trusted(tmp_path: Path, paths: Paths) -> None:
    """It would run a script of the other workspace: `./agent.sh` is meant from where the file lies."""
    theirs, mine = tmp_path / "theirs", tmp_path / "mine"
    file = mine / WORKSPACE_FILE
    file.parent.mkdir(parents=True)
    file.write_text('[agents.script]\ncommand = ["./agent.sh"]\n')
    Trust(paths).grant(file, file.read_bytes())
    assert "script" in load(paths, workspace=mine, environ={}).config.agents
    (theirs / ".dragoman").mkdir(parents=True)
    for link in (theirs / WORKSPACE_FILE, theirs / ".dragoman"):
        if link.is_dir():
            (link / "config.toml").unlink()
            link.rmdir()
        link.symlink_to(mine / link.relative_to(theirs))
        loaded = load(paths, workspace=theirs, environ={})
        assert "script" not in loaded.config.agents
        assert f"run `dragoman config trust` in {theirs}" in loaded.warnings[0]
        Trust(paths).grant(theirs / WORKSPACE_FILE, file.read_bytes())
        assert "script" in load(paths, workspace=theirs, environ={}).config.agents, "trusted by its own place"
        assert Trust(paths).revoke(theirs / WORKSPACE_FILE)
    assert "script" in load(paths, workspace=mine, environ={}).config.agents, "the other place is untouched"


def test_a_hard_link_to_a_trusted_file_is_not_trusted(tmp_path: Path, paths: Paths) -> None:
    theirs, mine = tmp_path / "theirs" / WORKSPACE_FILE, tmp_path / "mine" / WORKSPACE_FILE
    for file in (theirs, mine):
        file.parent.mkdir(parents=True)
    mine.write_text('[agents.script]\ncommand = ["./agent.sh"]\n')
    os.link(mine, theirs)
    Trust(paths).grant(mine, mine.read_bytes())
    assert "script" not in load(paths, workspace=tmp_path / "theirs", environ={}).config.agents


def test_a_workspace_reached_by_a_link_is_the_same_place(tmp_path: Path, paths: Paths) -> None:
    file = tmp_path / "mine" / WORKSPACE_FILE
    file.parent.mkdir(parents=True)
    file.write_text('[agents.script]\ncommand = ["./agent.sh"]\n')
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    Trust(paths).grant(tmp_path / "link" / WORKSPACE_FILE, file.read_bytes())
    assert "script" in load(paths, workspace=tmp_path / "mine", environ={}).config.agents


def _device(place: Path) -> None:
    place.symlink_to("/dev/zero")


def _socket(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(place.parent)  # the path of a socket is short
        try:
            listener.bind(place.name)
        finally:
            os.chdir(here)


def _huge(place: Path) -> None:
    with place.open("wb") as file:
        file.truncate(50 * 1024**3)  # a hole: it takes no room on the disk, but would in memory


NO_FILES = [
    (_device, "is a device"),
    (os.mkfifo, "is a FIFO"),
    (_socket, "is a socket"),
    (_huge, "too large"),
]


@pytest.mark.parametrize(("make", "why"), NO_FILES)
@pytest.mark.parametrize("whose", ["user", "workspace", "trust"])
def test_what_is_no_sensible_file_is_said_at_once(
    paths: Paths, project: Path, make: Callable[[Path], None], why: str, whose: str
) -> None:
    (project / WORKSPACE_FILE).parent.mkdir()
    place = {"user": paths.config_file, "workspace": project / WORKSPACE_FILE, "trust": paths.trust_file}[
        whose
    ]
    if whose == "trust":
        (project / WORKSPACE_FILE).touch()
    paths.ensure(place.parent)
    make(place)
    with pytest.raises(ConfigError) as caught:
        load(paths, workspace=project, environ={})
    assert str(caught.value).startswith(f"{place}: ")
    assert why in str(caught.value)


@pytest.mark.skipif(sys.platform != "linux", reason="files of /proc have no size")
def test_a_file_that_does_not_tell_its_size_is_bounded(paths: Paths, project: Path) -> None:
    (project / WORKSPACE_FILE).parent.mkdir()
    (project / WORKSPACE_FILE).symlink_to("/proc/self/pagemap")
    with pytest.raises(ConfigError, match="too large"):
        load(paths, workspace=project, environ={})
