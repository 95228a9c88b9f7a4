"""Commands about the store itself: where a journal is, taking a session, back-up, restore, repair, upgrade."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman import machine
from support.command_line import CommandLine
from support.gateway_process import Start
from support.store.old_store import OldStore
from support.store.small_disk import mounting

from .test_sessions import chunk, fill, live, run

ONE = "dgm_aaaaaaaaaa"


async def test_the_folder_of_a_journal_is_printed_for_other_programs(shell: CommandLine) -> None:
    await fill(shell, **{ONE: [chunk("find me")]})
    done = await run(shell, "sessions", "path", "dgm_aaaaaa")
    assert (done.returncode, done.stderr) == (0, "")
    folder = Path(done.stdout.strip())
    assert folder == shell.home / "journal" / ONE
    assert any("find me" in file.read_text() for file in folder.glob("*.log"))
    missing = await run(shell, "sessions", "path", "dgm_zzzzzzzz")
    assert missing.returncode == 2 and "there is no session" in missing.stderr


async def test_taking_a_session_of_another_machine(shell: CommandLine) -> None:
    await fill(shell, **{ONE: [chunk("x")]})
    lock = shell.home / "journal" / ONE / "lock"
    owner = {"node": "far-away", "id": "1-a", "address": "unix:/gone"}
    lock.write_text(
        json.dumps({"epoch": 5, "owner": owner, "machine": "other@far-away", "place": "boot"}) + "\n"
    )
    done = await run(shell, "sessions", "take", ONE)
    assert (done.returncode, done.stdout) == (0, f"{ONE} can be used here now\n")
    assert "owner" not in json.loads(lock.read_text())


async def test_a_session_that_is_open_is_not_taken(dragoman: Start, shell: CommandLine) -> None:
    editor, session = await live(dragoman, shell)
    done = await run(shell, "sessions", "take", session)
    assert done.returncode == 1
    assert f"is open in process {editor.process.pid}-" in done.stderr and machine.node() in done.stderr


async def test_back_up_and_restore_by_command(dragoman: Start, shell: CommandLine) -> None:
    editor, session = await live(dragoman, shell)
    await editor.prompt(session, "say kept")
    file = shell.folder / "all.tar.gz"
    done = await run(shell, "backup", str(file))
    assert (
        done.returncode == 0 and "1 session, " in done.stdout and " KB, read back and checked" in done.stdout
    )
    assert done.stderr == ""
    again = await run(shell, "backup", str(file))
    assert again.returncode == 1 and "exists already" in again.stderr
    missing = await run(shell, "restore", "nowhere.tar", "--replace")
    assert missing.returncode == 1 and "nowhere.tar cannot be read: No such file" in missing.stderr
    busy = await run(shell, "restore", str(file), "--replace")
    assert busy.returncode == 1 and "stop every Dragoman process" in busy.stderr
    editor.leave()
    await editor.wait_exit()
    full = await run(shell, "restore", str(file))
    assert full.returncode == 1 and "--replace" in full.stderr
    restored = await run(shell, "restore", str(file), "--replace")
    assert restored.returncode == 0, restored.stderr
    assert "restored 1 session of " in restored.stdout and "/before-" in restored.stdout
    assert "kept" in (await run(shell, "sessions", "export", session)).stdout


async def test_a_backup_of_damaged_sessions_is_made_with_a_warning_for_each(shell: CommandLine) -> None:
    two, three, four = "dgm_bbbbbbbbbb", "dgm_cccccccccc", "dgm_dddddddddd"
    await fill(shell, **{each: [chunk("one"), chunk("two")] for each in (ONE, two, three, four)})
    (flipped,) = (shell.home / "journal" / ONE).glob("*.log")
    flipped.write_bytes(flipped.read_bytes().replace(b"one", b"ONE"))
    (newer,) = (shell.home / "journal" / two).glob("*.log")
    newer.write_bytes(newer.read_bytes().replace(b"#dragoman journal 1 ", b"#dragoman journal 9 "))
    shutil.rmtree(shell.home / "journal" / three)
    file = shell.folder / "all.tar"
    done = await run(shell, "backup", str(file))
    assert done.returncode == 0 and "4 sessions" in done.stdout and file.exists()
    lines = done.stderr.splitlines()
    assert len(lines) == 3 and all(line.endswith("`dragoman doctor` says more") for line in lines)
    for line, session, words in zip(
        lines,
        (ONE, two, three),
        ("damaged or missing", "newer Dragoman", "its journal is missing"),
        strict=True,
    ):
        assert line.startswith(f"dragoman: warning: session {session}: ") and words in line


async def test_a_store_of_the_version_before_is_converted_by_a_backup(shell: CommandLine) -> None:
    old = OldStore(shell.home / "dragoman.db")
    for n in range(3):
        old.session(f"{n}" * 10, [[chunk(f"said {n}")]])
    looked = await run(shell, "doctor", "store")
    assert "3 sessions are of an older Dragoman and are converted at the next start" in looked.stdout
    assert looked.returncode == 0 and "restore" not in looked.stdout
    done = await run(shell, "backup", str(shell.folder / "all.tar"))
    assert done.returncode == 0 and "3 sessions" in done.stdout
    assert "converting sessions to files: 3 of 3" in done.stderr


@pytest.mark.parametrize("target", ["/nonexistent/x.tar", "/dev/null/x.tar", "/proc/x.tar"])
async def test_a_backup_that_cannot_be_written_is_explained(shell: CommandLine, target: str) -> None:
    await fill(shell, **{ONE: [chunk("x")]})
    done = await run(shell, "backup", target)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"dragoman: {target} cannot be written: ")


async def test_a_backup_to_a_full_disk_is_explained_and_leaves_nothing(
    shell: CommandLine, tmp_path: Path
) -> None:
    await fill(shell, **{ONE: [chunk(os.urandom(50_000).hex())]})
    disk = tmp_path / "disk"
    disk.mkdir()
    for name in ("x.tar", "x.tar.gz"):
        command = f'"$@"; echo $?; ls -A {disk}'
        prefix = [*mounting(f"mount -t tmpfs -o size=8k tmpfs {disk}"), "sh", "-c", command, "sh"]
        done = await asyncio.to_thread(
            subprocess.run,
            [*prefix, sys.executable, "-m", "dragoman", "backup", str(disk / name)],
            env=shell.env, cwd=shell.folder, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.stdout == "1\n"
        assert done.stderr == (
            f"dragoman: {disk / name} cannot be written: No space left on device. There is no back-up.\n"
        )


@pytest.mark.parametrize("kind", ["missing", "folder", "text", "cut"])
async def test_an_archive_that_cannot_be_read_is_explained(shell: CommandLine, kind: str) -> None:
    await fill(shell, **{ONE: [chunk("x")]})
    file = shell.folder / "all.tar.gz"
    if kind == "folder":
        file.mkdir()
    elif kind == "text":
        file.write_text("hello")
    elif kind == "cut":
        await run(shell, "backup", str(file))
        file.write_bytes(file.read_bytes()[:-100])
    done = await run(shell, "restore", str(file), "--replace")
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"dragoman: {file} cannot be read")
    assert (await run(shell, "sessions", "export", ONE)).returncode == 0
    assert not [path for path in shell.home.iterdir() if path.name.startswith((".restore", "before-"))]


async def test_a_restore_that_was_interrupted_is_completed_by_the_next_command(shell: CommandLine) -> None:
    await fill(shell, **{ONE: [chunk("x")]})
    config = shell.home / "config.toml"
    work = shell.home / ".restore"
    (work / "new").mkdir(parents=True)
    config.rename(work / "new" / "config.toml")
    (shell.home / "dragoman.db").rename(work / "new" / "dragoman.db")
    (shell.home / "journal").rename(work / "new" / "journal")
    (work / "plan").write_text(
        '{"before": "before-x", "old": ["gone"], "new": ["config.toml", "dragoman.db", "journal"]}'
    )
    done = await run(shell, "sessions", "list")
    assert done.returncode == 0 and "dgm_aaaaaaaa" in done.stdout
    assert "a restore that was interrupted is complete now" in done.stderr
    assert f"what was there before is in {shell.home}/before-x" in done.stderr
    assert config.exists() and not work.exists()
    assert "restore" not in (await run(shell, "sessions", "list")).stderr


def test_a_configuration_file_that_is_elsewhere_is_said_to_be_missing_from_a_backup(
    shell: CommandLine, tmp_path: Path
) -> None:
    home = tmp_path / "person"
    config = home / ".config" / "dragoman" / "config.toml"
    config.parent.mkdir(parents=True)
    shutil.copy(shell.home / "config.toml", config)
    del shell.env["DRAGOMAN_HOME"]
    shell.env |= {"HOME": str(home), "XDG_RUNTIME_DIR": str(home / "run")}
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        shell.env.pop(name, None)
    shell.session()
    done = shell.run("backup", str(tmp_path / "all.tar"))
    assert done.returncode == 0
    assert done.stdout.splitlines()[1] == f"not in it: your configuration file, {config}"
    assert "configuration file is not in it" in " ".join(shell.run("backup", "--help").stdout.split())


async def test_doctor_leaves_a_session_alone_that_an_editor_has_open(
    dragoman: Start, shell: CommandLine
) -> None:
    editor, session = await live(dragoman, shell)
    await editor.prompt(session, "say one")
    for file in (shell.home / "journal" / session).glob("*.log"):
        file.write_bytes(file.read_bytes().replace(b"one", b"two"))
    done = await run(shell, "doctor", "store", "--fix", "--yes", "--json")
    assert done.returncode == 1
    (found,) = [each for each in json.loads(done.stdout)["findings"] if each["level"] == "error"]
    assert f"not repaired: left alone, because process {editor.process.pid}-" in found["detail"]
    editor.leave()
    await editor.wait_exit()
    assert (await run(shell, "doctor", "store", "--fix", "--yes")).returncode == 0
    assert (await run(shell, "doctor", "store")).returncode == 0


async def test_doctor_looks_at_a_store_on_a_read_only_disk(shell: CommandLine) -> None:
    await fill(shell, **{ONE: [chunk("x")]})
    prefix = mounting(f"mount --bind -o ro {shell.home} {shell.home}")
    done = await asyncio.to_thread(
        subprocess.run, [*prefix, sys.executable, "-m", "dragoman", "doctor", "store", "--json"],
        env=shell.env, cwd=shell.folder, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    found = json.loads(done.stdout)["findings"]
    assert "1 session, 1 journal" in [each["detail"] for each in found]


async def test_doctor_says_that_the_folder_may_not_be_written(shell: CommandLine) -> None:
    await fill(shell, **{ONE: [chunk("x")]})
    prefix: list[str] = []
    if os.geteuid() == 0:  # which may write everything, unless it gives that up
        if shutil.which("setpriv") is None:
            pytest.skip("NOT TESTED: without setpriv root cannot give up its rights")
        prefix = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    for name in ("dragoman.db-wal", "dragoman.db-shm"):
        (shell.home / name).unlink(missing_ok=True)
    shell.home.chmod(0o500)
    try:
        done = await asyncio.to_thread(
            subprocess.run, [*prefix, sys.executable, "-m", "dragoman", "doctor", "store", "--json"],
            env=shell.env, cwd=shell.folder, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    finally:
        shell.home.chmod(0o700)
    assert done.returncode == 1, done.stderr
    (error,) = [each for each in json.loads(done.stdout)["findings"] if each["level"] == "error"]
    assert f"{shell.home} cannot be written" in error["detail"]
    assert "make it writable" in error["fix"]
    assert "back-up" not in done.stdout and "away" not in done.stdout


async def test_doctor_makes_a_lost_directory_again(dragoman: Start, shell: CommandLine) -> None:
    await fill(shell, **{ONE: [chunk("still here")], "dgm_bbbbbbbbbb": [chunk("y")]})
    for file in shell.home.glob("dragoman.db*"):
        file.unlink()
    done = await run(shell, "doctor", "store")
    assert done.returncode == 1 and "dragoman.db is missing, and there are 2 journals" in done.stdout
    listed = await run(shell, "sessions", "list")
    assert listed.returncode == 1 and "`dragoman doctor --fix` brings the sessions back" in listed.stderr
    editor = await dragoman("acp", "scripted")
    await editor.initialize()
    assert "`dragoman doctor --fix` brings the sessions back" in editor.stderr
    editor.leave()
    await editor.wait_exit()
    fixed = await run(shell, "doctor", "store", "--fix", "--yes")
    assert fixed.returncode == 0, fixed.stdout
    assert (await run(shell, "doctor", "store")).returncode == 0
    assert f"Title of {ONE}" in (await run(shell, "sessions", "list")).stdout
    assert "still here" in (await run(shell, "sessions", "export", ONE)).stdout


async def test_journals_that_a_new_directory_does_not_know_are_told_at_every_start_and_in_lists(
    dragoman: Start, shell: CommandLine
) -> None:
    two = "dgm_bbbbbbbbbb"
    await fill(shell, **{ONE: [chunk("x")], two: [chunk("y")]})
    for file in shell.home.glob("dragoman.db*"):
        file.unlink()
    words = "2 sessions have journals but are not in the directory: `dragoman doctor --fix` puts them back"
    for _ in range(2):  # the first start makes an empty directory
        editor = await dragoman("acp", "scripted")
        await editor.initialize()
        editor.leave()
        await editor.wait_exit()
        assert words in editor.stderr
        listed = await run(shell, "sessions", "list")
        assert (listed.returncode, listed.stdout, listed.stderr) == (0, "", f"dragoman: {words}\n")
    for command in (("exec", "-s", ONE, "hello"), ("sessions", "show", "aaaaaa")):
        done = await run(shell, *command)
        assert done.returncode == 2 and "is not in the directory: `dragoman doctor --fix`" in done.stderr
    assert "there is no session" in (await run(shell, "sessions", "show", "dgm_zzzzzzzz")).stderr
    await run(shell, "doctor", "store", "--fix", "--yes")
    listed = await run(shell, "sessions", "list")
    assert ONE[:10] in listed.stdout and listed.stderr == ""


async def test_doctor_names_what_is_wrong_with_the_store_and_repairs_it(shell: CommandLine) -> None:
    await fill(shell, **{ONE: [chunk("x")], "dgm_bbbbbbbbbb": [chunk("y")]})
    shutil.rmtree(shell.home / "journal" / ONE)
    done = await run(shell, "doctor", "store")
    assert done.returncode == 1
    assert f"session {ONE}" in done.stdout and "its journal is missing" in done.stdout
    found = json.loads((await run(shell, "doctor", "store", "--json")).stdout)["findings"]
    assert [each["about"] for each in found if each["level"] == "error"] == [f"session {ONE}"]
    fixed = await run(shell, "doctor", "store", "--fix", "--yes")
    assert fixed.returncode == 0 and "fixed" in fixed.stdout
    assert "event 1 is accepted as lost" in fixed.stdout and "missing" not in fixed.stdout
    assert (await run(shell, "doctor", "store")).returncode == 0


@pytest.mark.parametrize("way", ["gateway", "list"])
async def test_a_store_of_the_version_before_is_converted_at_the_first_start(
    dragoman: Start, shell: CommandLine, way: str
) -> None:
    old = OldStore(shell.home / "dragoman.db")
    ids = [old.session(f"{n}" * 10, [[chunk(f"said {n}")]], cwd=str(shell.folder)) for n in range(3)]
    if way == "gateway":
        editor = await dragoman("acp", "scripted")
        await editor.initialize()
        found = (await editor.request("session/list", {}))["sessions"]
        assert {each["sessionId"] for each in found} == set(ids)
        assert "converting sessions to files: 3 of 3" in editor.stderr
        editor.leave()
        await editor.wait_exit()
    else:
        done = await run(shell, "sessions", "list")
        assert len(done.stdout.splitlines()) == 4
        assert "converting sessions to files: 3 of 3" in done.stderr
    for n, session in enumerate(ids):
        assert f"said {n}" in (await run(shell, "sessions", "export", session)).stdout
    assert "converting" not in (await run(shell, "sessions", "list")).stderr


async def test_sessions_of_an_older_process_are_named_and_the_rest_is_served(shell: CommandLine) -> None:
    old = OldStore(shell.home / "dragoman.db")
    old.owner("alive", alive=True)
    old.session("held", [[chunk("x")]], owner="alive")
    old.session("free" * 3, [[chunk("y")]])
    done = await run(shell, "sessions", "list")
    assert "1 sessions are still open in older Dragoman processes" in done.stderr
    assert len(done.stdout.splitlines()) == 2
    await asyncio.sleep(0)
