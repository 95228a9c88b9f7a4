"""`dragoman doctor` names faults that are put into a healthy home, with the right fix; `--fix` mends the safe ones."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dragoman.checkpoints.engine import Engine as Checkpoints
from dragoman.config.sections.checkpoints import CheckpointsConfig
from dragoman.config.sections.worktrees import WorktreesConfig
from dragoman.gateway.ports.checkpoints import Mark
from dragoman.gateway.ports.worktrees import WorktreeWish
from dragoman.worktrees.engine import Engine
from support.command_line import CommandLine
from support.gateway_process import clean_environment

pytestmark = pytest.mark.xdist_group("doctor")  # the home is made once

ENVIRONMENT = {"root", "disk", "bubblewrap", "podman", "docker", "ssh", "inotify", "open files", "processes"}
"""Findings about the machine that the tests run on."""


class Home:
    """A home with a session, a worktree, an index, an audit and a token; each test gets it as it was made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path, self.project = folder / "live" / "home", folder / "live" / "project"
        for each in (self.path, self.project):
            each.mkdir(parents=True, mode=0o700)
        git = ["git", "-C", str(self.project), "-c", "user.name=a", "-c", "user.email=a@b"]
        for words in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "x"]):
            subprocess.run([*git, *words], check=True, env=clean_environment())
        self.shell = CommandLine(self.path, self.project)
        self.shell.env |= {"HOME": str(folder / "live")}
        self.shell.env.pop("XDG_CONFIG_HOME", None)
        self.path.joinpath("config.toml").chmod(0o600)
        self.session = self.shell.session("say needle")
        assert self.shell.run("sessions", "search", "needle").returncode == 0
        root = str(self.project)
        worktrees = Engine(self.path / "worktrees")
        worktrees.create(None, root, root, WorktreeWish(name="tree"), WorktreesConfig(), box=None)
        (self.path / "run").mkdir(mode=0o700, exist_ok=True)
        (self.path / "run" / "token").write_text("a-token-for-tests\n")
        (self.path / "run" / "token").chmod(0o600)
        self.configure()
        shutil.copytree(folder / "live", folder / "kept", symlinks=True)

    def configure(self, **sections: Any) -> None:
        self.shell.configure(**{"serve": {"port": 0}, **sections})

    def restore(self) -> None:
        shutil.rmtree(self.folder / "live")
        shutil.copytree(self.folder / "kept", self.folder / "live", symlinks=True)

    def doctor(self, *arguments: str) -> tuple[int, list[dict[str, Any]]]:
        done = self.shell.run("doctor", *arguments, "--json")
        return done.returncode, json.loads(done.stdout)["findings"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("doctor"))


@pytest.fixture
def home(made: Home) -> Iterator[Home]:
    yield made
    made.restore()


def test_a_healthy_home_is_all_ok(home: Home) -> None:
    code, found = home.doctor()
    wrong = [each for each in found if each["level"] != "ok" and each["about"] not in ENVIRONMENT]
    assert (code, wrong) == (0, [])
    assert {each["check"] for each in found} >= {
        "configuration",
        "agents",
        "store",
        "audit",
        "limits",
        "system",
    }
    assert any(each["about"] == "agent scripted" and "answered" in each["detail"] for each in found)


# -- faults


@dataclass(frozen=True)
class Fault:
    """What is broken, the check that names it, words of the finding and of its fix, and whether `--fix` mends it."""

    break_it: Callable[[Home], object]
    check: str
    level: str
    words: str
    fix: str
    mended: bool = False


def broken_toml(home: Home) -> None:
    file = home.path / "config.toml"
    file.write_text("# one\n# two\n[serve\nport = 1\n")


def unknown_key(home: Home) -> None:
    (home.path / "config.toml").write_text("[serve]\nport = 0\n\n[limits]\nmax_sesions = 3\n")


def gone_program(home: Home) -> None:
    home.configure(agents={"gone": {"command": ["/nonexistent/agent", "--acp"]}})


def flipped_bit(home: Home) -> None:
    file = min((home.path / "journal" / home.session).glob("*.log"))
    data = bytearray(file.read_bytes())
    data[data.index(b"needle")] ^= 1
    file.write_bytes(data)


def orphaned_journal(home: Home) -> None:
    for file in home.path.glob("dragoman.db*"):
        file.unlink()


def writable_rules(home: Home) -> None:
    home.configure(policy={"rules": [{"decision": "allow", "kind": ["read"]}]})
    (home.path / "config.toml").chmod(0o666)


def edited_audit(home: Home) -> None:
    file = next(
        file
        for file in sorted((home.path / "audit").glob("*/*.ndjson"))
        if b"session_begun" in file.read_bytes()
    )
    file.write_bytes(file.read_bytes().replace(b"session_begun", b"session_began"))


def damaged_index(home: Home) -> None:
    (home.path / "search.db").write_bytes(b"garbage" * 1000)


def deleted_worktree(home: Home) -> None:
    (folder,) = home.path.glob("worktrees/*/tree")
    shutil.rmtree(folder)


def readable_token(home: Home) -> None:
    (home.path / "run" / "token").chmod(0o644)


def useless_rule(home: Home) -> None:
    home.configure(policy={"rules": [{"decision": "deny", "paths": ["secret.txt"], "name": "mine"}]})


def deleted_session(home: Home) -> None:
    checkpoints = Checkpoints(home.path / "checkpoints", CheckpointsConfig())
    for session in (home.session, "dgm_deletedlongago"):
        with checkpoints.record(session, str(home.project), Mark("begin")):
            pass


def old_path_in_an_editor(home: Home) -> None:
    settings = home.folder / "live" / ".config" / "zed" / "settings.json"
    settings.parent.mkdir(parents=True)
    entry = {"type": "custom", "command": "/nonexistent/bin/dragoman", "args": ["acp"]}
    settings.write_text(json.dumps({"agent_servers": {"Dragoman": entry}}))


def old_path_in_the_service(home: Home) -> None:
    unit = home.folder / "live" / ".config" / "systemd" / "user" / "dragoman.service"
    unit.parent.mkdir(parents=True)
    unit.write_text("[Service]\nExecStart=/nonexistent/bin/dragoman serve\n")


def killed_serve(home: Home) -> None:
    (home.path / "run" / "serve.json").write_text('{"url": "http://127.0.0.1:1/", "pid": 4194305}')


FAULTS = {
    "broken TOML": Fault(broken_toml, "configuration", "error", "config.toml:3", "mend line 3 of"),
    "an unknown key": Fault(unknown_key, "configuration", "error", "config.toml:5", "write max_sessions in line 5"),
    "an agent without a program": Fault(
        gone_program, "agents", "error", '"/nonexistent/agent" is not on this machine', "agents.gone.command"
    ),
    "a journal with a flipped bit": Fault(
        flipped_bit, "store", "error", "damaged or missing", "restore a back-up", mended=True
    ),
    "journals without a directory": Fault(
        orphaned_journal, "store", "error", "dragoman.db is missing", "make it again", mended=True
    ),
    "rules that others may write": Fault(
        writable_rules, "policy", "error", "other users may write to it", "chmod go-w"
    ),
    "a rule that cannot match": Fault(useless_rule, "policy", "error", "matches nothing", "policy check"),
    "an edited audit record": Fault(
        edited_audit, "audit", "error", "it was changed after it was written", "dragoman audit verify"
    ),
    "a damaged search index": Fault(
        damaged_index, "search", "warning", "search.db", "doctor --fix", mended=True
    ),
    "a worktree deleted by hand": Fault(
        deleted_worktree, "worktrees", "warning", "tree is gone", "worktrees discard tree", mended=True
    ),
    "a token that others may read": Fault(
        readable_token, "files", "warning", "other users may read it (mode 0644)", "chmod 600", mended=True
    ),
    "checkpoints of a deleted session": Fault(
        deleted_session, "checkpoints", "warning", "1 session that", "doctor --fix", mended=True
    ),
    "an editor with an old path": Fault(
        old_path_in_an_editor, "editors", "error", "/nonexistent/bin/dragoman, which is gone", "editor install zed"
    ),
    "a service with an old path": Fault(
        old_path_in_the_service, "service", "error", "/nonexistent/bin/dragoman, which is gone", "service install"
    ),
    "the file of a killed serve": Fault(
        killed_serve, "serve", "warning", "was killed", "--fix removes it", mended=True
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_with_its_fix(home: Home, name: str) -> None:
    fault = FAULTS[name]
    fault.break_it(home)
    code, found = home.doctor(fault.check)
    (named,) = [each for each in found if fault.words in f"{each['about']}: {each['detail']}"]
    assert (named["level"], named["fixable"]) == (fault.level, fault.mended)
    assert fault.fix in named["fix"]
    assert code == (1 if fault.level == "error" else 0)
    if fault.mended:
        code, fixed = home.doctor(fault.check, "--fix", "--yes")
        assert code == 0 and "fixed" in [each["level"] for each in fixed], fixed
        code, after = home.doctor(fault.check)
        assert [each for each in after if each["level"] != "ok" and each["about"] not in ENVIRONMENT] == []


def test_a_port_that_another_program_holds_is_named(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        home.configure(serve={"port": held.getsockname()[1]})
        code, (found,) = home.doctor("serve")
    assert (code, found["level"]) == (0, "warning")
    assert "holds port" in found["detail"] and "dragoman config set serve.port" in found["fix"]


def test_a_file_limit_of_64_is_named(home: Home) -> None:
    limited = ["sh", "-c", 'ulimit -n 64 && exec "$@"', "sh", sys.executable, "-m", "dragoman"]
    done = subprocess.run(
        [*limited, "doctor", "limits", "--json"], env=home.shell.env, cwd=home.project, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    found = json.loads(done.stdout)["findings"][0]
    assert (done.returncode, found["level"]) == (1, "error")
    assert "at most 64" in found["detail"] and "LimitNOFILE=" in found["fix"]


# -- repairs


def test_repairs_are_in_the_audit_and_nothing_is_repaired_unasked(home: Home) -> None:
    readable_token(home)
    token = home.path / "run" / "token"
    done = home.shell.run("doctor", "files", "--fix")
    assert "--yes makes 1 repair" in done.stderr and token.stat().st_mode & 0o777 == 0o644
    done = home.shell.run("doctor", "files", "--fix", "--yes")
    assert "1 fixed" in done.stdout and token.stat().st_mode & 0o777 == 0o600
    listed = home.shell.run("audit", "query", "--kind", "repaired", "--json").stdout
    assert str(token) in listed


def test_a_person_is_asked_before_a_repair(home: Home) -> None:
    readable_token(home)
    with home.shell.terminal("doctor", "files", "--fix") as terminal:
        terminal.until("Make 1 repair?")
        terminal.type("n\n")
        terminal.end()
    assert (home.path / "run" / "token").stat().st_mode & 0o777 == 0o644
