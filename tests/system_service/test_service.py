"""`dragoman service`: the unit, what the service manager is told, and the command in the unit's own environment."""

from __future__ import annotations

import json
import plistlib
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.system_service.definition import Definition
from dragoman.system_service.launchd import LABEL, Launchd
from dragoman.system_service.systemd import Systemd
from support.command_line import CommandLine

ROOT = Path(__file__).resolve().parents[2]
DRAGOMAN = Path(sys.executable).with_name("dragoman")
ODD = Definition(
    Path("/opt/my tools 100%/$x/dragoman"), "/usr/bin:/opt/100% of it", {"DRAGOMAN_HOME": "/a b"}
)
SYSTEMCTL = """#!/bin/sh
echo "$*" >> "$0.log"
case "$2" in
is-system-running) cat "$0.state" ;;
is-active) echo inactive ;;
is-enabled) echo disabled ;;
disable) [ -f "$0.stuck" ] && { echo "it hangs" >&2; exit 1; } ;;
esac
exit 0
"""


@pytest.fixture
def systemctl(tmp_path: Path) -> Path:
    """A stand-in for systemctl that writes down what it is told."""
    program = tmp_path / "bin" / "systemctl"
    program.parent.mkdir()
    program.write_text(SYSTEMCTL)
    program.chmod(0o755)
    program.with_name("systemctl.state").write_text("degraded\n")
    return program


@pytest.fixture
def shell(tmp_path: Path, systemctl: Path) -> CommandLine:
    home = tmp_path / "dragoman"
    home.mkdir()
    (tmp_path / "user").mkdir()
    commands = CommandLine(home, tmp_path)
    commands.env.update(HOME=str(tmp_path / "user"), PATH=f"{systemctl.parent}:/usr/bin:/bin")
    for name in ("XDG_CONFIG_HOME", "TMPDIR", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        commands.env.pop(name, None)
    return commands


def told(systemctl: Path) -> list[str]:
    """What changed something; questions are left out."""
    lines = systemctl.with_name("systemctl.log").read_text().splitlines()
    return [line for line in lines if " is-" not in line]


def directives(unit: str) -> dict[str, list[str]]:
    """The values by key, without comments."""
    found: dict[str, list[str]] = {}
    for line in unit.splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(key, []).append(value)
    return found


def unescaped(value: str) -> list[str]:
    """The words of a value as systemd reads them; specifiers are not expanded."""
    return [word.replace("%%", "%") for word in shlex.split(value)]


def test_the_service_is_installed_once_and_removed(
    shell: CommandLine, systemctl: Path, tmp_path: Path
) -> None:
    unit = tmp_path / "user" / ".config" / "systemd" / "user" / "dragoman.service"
    asked = shell.run("service", "install")
    assert asked.returncode == 3 and "runs: " in asked.stderr and not unit.exists()
    assert told(systemctl) == []

    done = shell.run("service", "install", "--yes")
    assert done.returncode == 0, done.stderr
    assert "journalctl --user -u dragoman" in done.stdout
    assert told(systemctl) == [
        "--user daemon-reload",
        "--user enable dragoman.service",
        "--user restart dragoman.service",
    ]
    found = directives(unit.read_text())
    assert unescaped(found["ExecStart"][0])[0] == str(DRAGOMAN)
    environment = dict(unescaped(line)[0].split("=", 1) for line in found["Environment"])
    assert environment["PATH"].startswith("/usr/bin:/bin") and environment["DRAGOMAN_HOME"] == str(shell.home)

    status = shell.run("service", "status", "--json")
    assert status.returncode == 3
    assert json.loads(status.stdout)["program"] == str(DRAGOMAN)
    systemctl.with_name("systemctl.log").write_text("")
    assert shell.run("service", "remove", "--yes").returncode == 0
    assert not unit.exists() and list(unit.parent.iterdir()) == []
    assert told(systemctl) == ["--user disable --now dragoman.service", "--user daemon-reload"]
    assert shell.run("service", "status").returncode == 4
    again = shell.run("service", "remove", "--yes", "--json")
    assert json.loads(again.stdout)["state"] == "already"


def test_what_fails_is_said(shell: CommandLine, systemctl: Path, tmp_path: Path) -> None:
    unit = tmp_path / "user" / ".config" / "systemd" / "user" / "dragoman.service"
    systemctl.with_name("systemctl.state").write_text("offline\n")
    none = shell.run("service", "install", "--yes")
    assert (
        none.returncode == 2 and "offline" in none.stderr and "--print" in none.stderr and not unit.exists()
    )
    assert shell.run("service", "install", "--no-start", "--yes").returncode == 0 and told(systemctl) == []
    systemctl.with_name("systemctl.state").write_text("running\n")
    systemctl.with_name("systemctl.stuck").touch()
    stuck = shell.run("service", "remove", "--yes")
    assert stuck.returncode == 1 and "it hangs" in stuck.stderr and unit.exists()
    unit.write_text("[Service]\nExecStart=/bin/true\n")
    other = shell.run("service", "remove", "--yes")
    assert other.returncode == 1 and "left alone" in other.stderr and unit.exists()
    quoted = tmp_path / "a'b"
    quoted.symlink_to("/bin/true")
    for program in ("/nowhere", str(quoted)):
        assert shell.run("service", "install", "--program", program, "--yes").returncode == 2


def test_the_unit_is_the_one_of_deploy_with_absolute_paths() -> None:
    made = directives(Systemd(Path("/x"), None).render(Definition(Path("/p"), "/bin")).decode())
    kept = directives((ROOT / "deploy" / "systemd" / "dragoman.service").read_text())
    own = ("ExecStart", "Environment")
    assert {key: value for key, value in made.items() if key not in own} == {
        key: value for key, value in kept.items() if key not in own
    }


def test_odd_characters_are_quoted_as_systemd_reads_them() -> None:
    manager = Systemd(Path("/x"), None)
    unit = manager.render(ODD)
    found = directives(unit.decode())
    assert unescaped(found["ExecStart"][0]) == ODD.command
    assert [unescaped(line)[0] for line in found["Environment"]] == [
        f"{name}={value}" for name, value in ODD.environment.items()
    ]
    assert manager.program_in(unit) == str(ODD.program) and manager.is_ours(unit)


@pytest.mark.parametrize("program", ["dragoman", "my own 100% $x; y"])
def test_systemd_finds_nothing_to_object_to(tmp_path: Path, program: str) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip(
            "NOT TESTED: systemd-analyze is not installed, so the unit of the service was not verified"
        )
    made = tmp_path / program
    made.write_text("#!/bin/sh\n")
    made.chmod(0o755)
    unit = Systemd(tmp_path, None).render(Definition(made, "/usr/bin:/bin")).decode()
    assert verified(analyze, tmp_path, unit) == ""
    assert "Unknown key" in verified(analyze, tmp_path, unit.replace("UMask=", "Mask="))


def verified(analyze: str, folder: Path, unit: str) -> str:
    """What systemd says of a unit; it needs a runtime folder even to read one."""
    file = folder / "dragoman.service"
    file.write_text(unit)
    done = subprocess.run(
        [analyze, "verify", "--user", "--man=no", str(file)],
        env={"PATH": "/usr/bin:/bin", "XDG_RUNTIME_DIR": str(folder), "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stderr or ("" if done.returncode == 0 else f"exit code {done.returncode}")


def test_the_agent_of_launchd_is_a_property_list(tmp_path: Path) -> None:
    manager = Launchd(tmp_path, None)
    content = manager.render(ODD)
    read = plistlib.loads(content)
    assert read["Label"] == LABEL and read["ProgramArguments"] == ODD.command
    assert read["EnvironmentVariables"] == ODD.environment
    assert read["KeepAlive"] == {"SuccessfulExit": False} and read["RunAtLoad"] is True
    assert manager.is_ours(content) and manager.program_in(content) == str(ODD.program)
    assert not manager.is_ours(b"<plist") and manager.program_in(b"\x00") is None
    assert manager.file == tmp_path / "Library" / "LaunchAgents" / f"{LABEL}.plist"


@pytest.mark.long
def test_the_command_of_the_unit_serves_in_the_environment_of_the_unit(
    shell: CommandLine, tmp_path: Path
) -> None:
    shell.configure(serve={"port": 0})
    tools, temporary = tmp_path / "tools", tmp_path / "temporary"
    tools.mkdir()
    temporary.mkdir()
    (tools / "gemini").write_text("#!/bin/sh\n")
    (tools / "gemini").chmod(0o755)
    shell.env.update(PATH=f"{tools}:{shell.env['PATH']}", TMPDIR=str(temporary))
    printed = shell.run("service", "install", "--print")
    found = directives(printed.stdout)
    environment = dict(unescaped(line)[0].split("=", 1) for line in found["Environment"])
    assert set(environment) <= {"PATH", "DRAGOMAN_HOME"}
    command = unescaped(found["ExecStart"][0])
    with subprocess.Popen(command, env=environment, cwd="/", stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("http://127.0.0.1:")
            listed = subprocess.run(
                [command[0], "agents", "list", "--json"], env=environment, capture_output=True, timeout=60
            )
            agents = {agent["name"]: agent for agent in json.loads(listed.stdout)}
            assert agents["gemini"]["installed"] is True
        finally:
            process.terminate()
    assert process.returncode in (0, -15)
