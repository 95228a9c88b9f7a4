"""Programs from archives: installed, updated, pinned, removed; and what interrupts that."""

from __future__ import annotations

import hashlib
import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from dragoman.config.load import load
from dragoman.config.paths import Paths
from dragoman.gateway.ports.acts import unrecorded
from dragoman.registry.errors import RegistryError, UnknownEntry
from dragoman.registry.install import Installer, this_platform
from dragoman.sandbox.programs import needed_files
from registry.conftest import Publish, entry, installed
from support.registry.archives import SCRIPT, tar, zipped
from support.registry.server import Answer, Site

INSTALL = """
import sys
from pathlib import Path
from dragoman.config.paths import find_paths
from dragoman.config.sections.registry import RegistryConfig
from dragoman.gateway.ports.acts import unrecorded
from dragoman.registry.install import Installer, Wish
work = Installer(find_paths({"DRAGOMAN_HOME": sys.argv[1]}), RegistryConfig(), unrecorded, "local")
work.install(Wish(work.catalog.find("robot")))
"""


def test_an_installed_program_becomes_an_agent(publish: Publish, paths: Paths) -> None:
    digest = hashlib.sha256(tar()).hexdigest()
    done = installed(publish(tar(), sha256=digest, args=["--acp"], env={"ROBOT": "1"}))
    agent = load(paths, environ={}).config.agents["robot"]
    assert agent.command == [str(paths.agents_dir / "robot/1.0.0/agent"), "--acp"]
    assert agent.env == {"ROBOT": "1"} and agent.kind == "acp"
    assert done.agent.pinned and done.agent.hash == digest
    assert subprocess.run(agent.command, capture_output=True, check=True).stdout == b"1.0.0\n"
    again = installed(publish(tar(), sha256=digest))
    assert not again.changed


def test_the_user_s_configuration_stands_above_it(publish: Publish, paths: Paths) -> None:
    installed(publish(tar(), args=["--acp"]))
    paths.config_file.write_text('[agents.robot]\nenv = { MINE = "1" }\nsandbox = "bubblewrap"\n')
    agent = load(paths, environ={}).config.agents["robot"]
    assert agent.command[-1] == "--acp" and agent.env == {"MINE": "1"} and agent.sandbox == "bubblewrap"


def test_a_damaged_list_is_a_warning(publish: Publish, paths: Paths) -> None:
    installed(publish(tar()))
    paths.installed_file.write_text("{")
    loaded = load(paths, environ={})
    assert "robot" not in loaded.config.agents
    assert "installed.json" in loaded.warnings[0] and "install the agents again" in loaded.warnings[0]


def test_a_wrong_hash_is_refused(publish: Publish, paths: Paths) -> None:
    work = publish(tar(), sha256="0" * 64)
    with pytest.raises(RegistryError, match="not the one that the registry names"):
        installed(work)
    assert nothing_of(paths)


def test_without_a_hash_the_first_one_counts(publish: Publish, paths: Paths) -> None:
    first = installed(publish(tar()))
    assert not first.agent.pinned
    work = publish(tar(files={"agent": b"#!/bin/sh\necho evil\n"}))
    for _ in range(2):
        with pytest.raises(RegistryError, match=r"replaced without a new version.*--repin"):
            installed(work, again=True)
        assert Path(first.agent.command[0]).read_bytes() == SCRIPT, "what is installed stays"
    work.uninstall("robot")
    with pytest.raises(RegistryError, match="replaced without"):
        installed(work)
    assert b"evil" in Path(installed(work, repin=True).agent.command[0]).read_bytes()


def test_an_update_removes_the_version_before(publish: Publish, paths: Paths) -> None:
    installed(publish(tar(), "1.0.0"))
    work = publish(tar(), "1.1.0")
    assert [each.available for each in work.outdated()] == ["1.1.0"]
    done = work.update("robot")
    assert (done.before, done.agent.version) == ("1.0.0", "1.1.0")
    assert versions(paths) == ["1.1.0"] and not work.update("robot").changed


def test_a_version_in_use_stays_until_it_is_not(publish: Publish, paths: Paths) -> None:
    script = b"#!/bin/sh\nread line\n"
    first = installed(publish(tar(files={"agent": script}), "1.0.0"))
    with subprocess.Popen(first.agent.command, stdin=subprocess.PIPE) as running:
        work = publish(tar(), "1.1.0")
        assert work.update("robot").in_use == ("1.0.0",)
        with pytest.raises(RegistryError, match=f"in use by process {running.pid}"):
            work.uninstall("robot")
        assert versions(paths) == ["1.0.0", "1.1.0"]
        running.communicate(b"\n")
    assert work.update("robot").in_use == () and versions(paths) == ["1.1.0"]
    work.uninstall("robot")
    assert nothing_of(paths) and not work.records.all()


def test_an_older_version_can_be_kept_beside(publish: Publish, paths: Paths) -> None:
    installed(publish(tar(), "2.0.0"))
    work = publish(tar(), "1.9.0")
    assert work.outdated() == []
    assert installed(work).before == "2.0.0"


def test_a_connection_that_breaks_leaves_nothing(publish: Publish, site: Site, paths: Paths) -> None:
    work = publish(tar())
    site.answers["/1.0.0/a.tar.gz"].announced = 10_000_000
    with pytest.raises(RegistryError, match=r"broke after .* of 10000000 bytes; try again"):
        installed(work)
    assert nothing_of(paths)


def test_a_write_error_leaves_nothing(publish: Publish, paths: Paths) -> None:
    work = publish(tar(files={"agent": SCRIPT, "large": os.urandom(300_000)}))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        with pytest.raises(RegistryError, match="not installed: a file is too large"):
            installed(work)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert nothing_of(paths)
    assert installed(work).changed


def test_a_hostile_archive_leaves_the_version_before(publish: Publish, paths: Paths) -> None:
    installed(publish(tar()))
    work = publish(tar(files={"../../../../agent": SCRIPT}), "1.1.0")
    with pytest.raises(RegistryError, match=r"robot 1.1.0 is not installed: .*leads outside"):
        work.update("robot")
    assert work.records.all()["robot"].version == "1.0.0" and versions(paths) == ["1.0.0"]


def test_two_installations_at_once_are_one(publish: Publish, site: Site, paths: Paths) -> None:
    work = publish(tar())
    answer = site.answers["/1.0.0/a.tar.gz"]
    answer.hold = threading.Event()
    results: list[bool] = []
    threads = [threading.Thread(target=lambda: results.append(installed(work).changed)) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert answer.begun.wait(30)
    answer.hold.set()
    for thread in threads:
        thread.join(30)
    assert sorted(results) == [False, True]
    assert [path for path, _ in site.asked].count("/1.0.0/a.tar.gz") == 1


def test_a_killed_installation_is_not_visible(publish: Publish, site: Site, paths: Paths) -> None:
    """And the next one removes what it left."""
    work = publish(zipped(), name="a.zip")
    answer = site.answers["/1.0.0/a.zip"]
    answer.hold = threading.Event()
    with subprocess.Popen([sys.executable, "-c", INSTALL, str(paths.state_dir)]) as process:
        assert answer.begun.wait(60)
        process.kill()
    answer.hold.set()
    assert work.records.all() == {} and "robot" not in load(paths, environ={}).config.agents
    left = paths.agents_dir / "robot" / "0.9.0"
    left.mkdir(parents=True)
    (left / "half").write_text("")
    assert installed(work).agent.folder == "1.0.0" and versions(paths) == ["1.0.0"]


def test_unknown_names_versions_and_platforms_are_named(publish: Publish, site: Site) -> None:
    work = publish(tar())
    with pytest.raises(UnknownEntry, match="did you mean robot"):
        work.catalog.find("robbot")
    with pytest.raises(RegistryError, match=r"no version 3.0.0 of robot: it has 1.0.0"):
        installed(work, "3.0.0")
    site.put_registry(entry(binary={"plan9-mips": {"archive": site.url, "cmd": "a"}}))
    work.catalog.refresh(unrecorded, "local")
    with pytest.raises(RegistryError, match=f"no program for {this_platform()}; there are: plan9-mips"):
        installed(work)
    with pytest.raises(RegistryError, match="not offered as npm; there is: binary"):
        installed(work, source="npm")


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("http://192.0.2.1/a.tgz", "only https"),
        ("file:///etc/passwd", "no URL of a web server"),
        ("https://user:word@127.0.0.1/a.tgz", "password"),
        ("ftp://127.0.0.1/a.tgz", "only https"),
    ],
)
def test_an_archive_elsewhere_is_not_fetched(work: Installer, site: Site, target: str, why: str) -> None:
    site.answers["/a.tgz"] = Answer(status=302, headers={"Location": target})
    site.put_registry(entry(binary={this_platform(): {"archive": f"{site.url}/a.tgz", "cmd": "agent"}}))
    work.catalog.refresh(unrecorded, "local")
    with pytest.raises(RegistryError, match=why):
        installed(work)


def test_a_redirect_is_followed_a_few_times(publish: Publish, site: Site) -> None:
    work = publish(tar())
    site.answers["/real"] = site.answers["/1.0.0/a.tar.gz"]
    site.answers["/1.0.0/a.tar.gz"] = Answer(status=302, headers={"Location": "/real"})
    assert installed(work).changed
    work.uninstall("robot")
    site.answers["/real"] = Answer(status=302, headers={"Location": "/real"})
    with pytest.raises(RegistryError, match="more than 5 times"):
        installed(work)


def versions(paths: Paths) -> list[str]:
    return sorted(folder.name for folder in (paths.agents_dir / "robot").iterdir())


def nothing_of(paths: Paths) -> bool:
    return not (paths.agents_dir / "robot").exists() or versions(paths) == []


def test_a_box_shows_the_whole_folder_of_a_version(publish: Publish, paths: Paths) -> None:
    program = installed(
        publish(tar(files={"./bin/agent": SCRIPT, "data": b""}), cmd="bin/agent")
    ).agent.command
    assert needed_files(program, "/usr/bin:/bin", ("/usr", "/bin", "/lib")) == [
        paths.agents_dir / "robot/1.0.0"
    ]
