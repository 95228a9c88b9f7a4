"""The tools, one behaviour each, in a real folder."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
import os
import shutil
import subprocess
import time
from collections.abc import AsyncIterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from dragoman.agents.custody import Custody
from dragoman.builtin.files.search import compile_pattern, glob_files, search_in_python, translate
from dragoman.builtin.tools import TOOLS
from dragoman.builtin.tools.tool import Intent
from support.agents.builtin_session import BuiltinSession
from support.waiting import until, until_gone

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture
async def bench(workspace: Path) -> AsyncIterator[BuiltinSession]:
    custody = Custody()
    bench = BuiltinSession(workspace, custody)
    yield bench
    await bench.session.close()
    await custody.close()


def test_every_schema_is_an_object_that_models_take() -> None:
    for tool in TOOLS.values():
        schema = tool.schema()
        assert schema["type"] == "object", tool.name
        assert "$ref" not in schema


# -- read


async def test_parts_of_a_file_are_read_by_line(bench: BuiltinSession, workspace: Path) -> None:
    (workspace / "n.txt").write_text("".join(f"{n}\n" for n in range(1, 101)))
    outcome = await bench.use("read", path="n.txt", line=10, limit=2)
    assert outcome.text.startswith("10\n11\n")
    assert "lines 10 to 11 of 100; read on with line=12" in outcome.text
    assert "has no line 500" in (await bench.use("read", path="n.txt", line=500)).text


async def test_numbers_in_quotes_are_numbers(bench: BuiltinSession, workspace: Path) -> None:
    (workspace / "n.txt").write_text("1\n2\n3\n")
    assert (await bench.use("read", path="n.txt", line="2", limit="1")).text.startswith("2\n")


async def test_images_are_shown_and_given_to_the_model(bench: BuiltinSession, workspace: Path) -> None:
    (workspace / "dot.png").write_bytes(PIXEL)
    outcome = await bench.use("read", path="dot.png")
    assert outcome.pictures[0].data == PIXEL
    assert bench.last_call["content"][1]["content"]["mimeType"] == "image/png"


async def test_binary_files_are_not_text(bench: BuiltinSession, workspace: Path) -> None:
    (workspace / "a.bin").write_bytes(b"\x7fELF\0\0\0")
    outcome = await bench.use("read", path="a.bin")
    assert (outcome.status, outcome.text) == (
        "failed",
        "a.bin is a binary file of 7 bytes; it is not shown as text.",
    )
    (workspace / "latin.txt").write_bytes("grün".encode("latin-1"))
    assert "not UTF-8 text" in (await bench.use("read", path="latin.txt")).text


async def test_a_file_of_two_gigabytes_is_read_in_parts(bench: BuiltinSession, workspace: Path) -> None:
    huge = workspace / "huge.log"
    with huge.open("wb") as file:
        file.write(b"line\n" * 10_000)
        file.truncate(2 * 1024**3)  # sparse: it takes no room, but it has that size
    started = time.monotonic()
    outcome = await bench.use("read", path="huge.log", line=9_999, limit=2)
    assert outcome.text.startswith("line\nline\n")
    assert time.monotonic() - started < 10
    refused = await bench.use("edit", path="huge.log", edits=[{"old": "line", "new": "row"}])
    assert "too large to edit" in refused.text


async def test_nothing_outside_of_the_workspace_is_touched(bench: BuiltinSession, workspace: Path) -> None:
    (workspace / "link").symlink_to("/etc")
    for path in ("/etc/passwd", "../outside.txt", "link/passwd"):
        assert "outside of the workspace" in (await bench.use("read", path=path)).text, path
    assert "outside of the workspace" in (await bench.use("write", path="../x", content="")).text
    assert "outside of the workspace" in (await bench.use("run", command="true", path="/")).text


@pytest.mark.parametrize(("tool", "arguments"), [("list", {}), ("glob", {"pattern": "*.txt"})])
async def test_names_that_are_not_utf8_are_shown_as_far_as_they_go(
    bench: BuiltinSession, workspace: Path, tool: str, arguments: dict[str, str]
) -> None:
    Path(os.fsdecode(os.fsencode(workspace) + b"/gr\xfcn.txt")).write_text("x")
    outcome = await bench.use(tool, **arguments)
    assert outcome.status == "done"
    assert "gr?n.txt" in outcome.text
    assert bench.last_call["status"] == "completed"


async def test_a_tool_that_breaks_is_an_outcome_like_any_other(
    bench: BuiltinSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def prepare(context: object, arguments: object) -> Intent:
        raise ZeroDivisionError

    monkeypatch.setitem(TOOLS, "list", dataclasses.replace(TOOLS["list"], prepare=prepare))
    outcome = await bench.use("list")
    assert outcome.status == "failed"
    assert "list failed with ZeroDivisionError" in outcome.text
    assert bench.last_call["status"] == "failed"


# -- write and edit


async def test_several_edits_are_made_in_order(bench: BuiltinSession, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one two two\n")
    edits = [{"old": "one", "new": "1"}, {"old": "two", "new": "2", "all": True}, {"old": "1 2", "new": "12"}]
    outcome = await bench.use("edit", path="a.txt", edits=edits)
    assert outcome.text == "Edited a.txt: 3 changes."
    assert (workspace / "a.txt").read_text() == "12 2\n"
    assert len(bench.person.questions) == 1


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ({"old": "missing", "new": "x"}, "is not in the file"),
        ({"old": "a", "new": "b"}, "is there 2 times"),
        ({"old": "a a", "new": "a a"}, "are the same"),
        ({"old": "", "new": "x"}, "is empty"),
    ],
)
async def test_edits_that_mean_nothing_change_nothing(
    bench: BuiltinSession, workspace: Path, edit: dict[str, str], message: str
) -> None:
    (workspace / "a.txt").write_text("a a\n")
    outcome = await bench.use("edit", path="a.txt", edits=[edit])
    assert outcome.status == "failed"
    assert message in outcome.text
    assert not bench.person.questions


async def test_a_file_that_changed_since_it_was_read_is_left_alone(
    bench: BuiltinSession, workspace: Path
) -> None:
    file = workspace / "a.txt"
    file.write_text("before\n")
    await bench.use("read", path="a.txt")
    file.write_text("before, and more\n")
    outcome = await bench.use("edit", path="a.txt", edits=[{"old": "before", "new": "after"}])
    assert "changed since it was read" in outcome.text
    assert file.read_text() == "before, and more\n"
    await bench.use("read", path="a.txt")
    assert (await bench.use("edit", path="a.txt", edits=[{"old": "before", "new": "after"}])).status == "done"


async def test_a_file_is_not_overwritten_unread(bench: BuiltinSession, workspace: Path) -> None:
    (workspace / "a.txt").write_text("precious\n")
    assert "read it before" in (await bench.use("write", path="a.txt", content="new")).text
    made = await bench.use("write", path="deep/er/b.txt", content="new")
    assert made.status == "done"
    assert (workspace / "deep/er/b.txt").read_text() == "new"


async def test_an_editors_unsaved_text_is_what_counts(bench: BuiltinSession, workspace: Path) -> None:
    file = workspace / "a.txt"
    file.write_text("saved\n")
    bench.person.capabilities = {"fs": {"readTextFile": True, "writeTextFile": True}}
    bench.person.buffers[str(file)] = "unsaved\n"
    assert (await bench.use("read", path="a.txt")).text == "unsaved\n"
    await bench.use("edit", path="a.txt", edits=[{"old": "unsaved", "new": "edited"}])
    assert bench.person.buffers[str(file)] == "edited\n"
    assert file.read_text() == "saved\n", "the editor saves it, not we"


# -- list, glob, grep


async def test_folders_are_listed(bench: BuiltinSession, workspace: Path) -> None:
    (workspace / "sub").mkdir()
    (workspace / "a.txt").write_text("abc")
    assert (await bench.use("list")).text == "sub/\na.txt\t3"


async def test_files_are_found_by_pattern_the_newest_first(workspace: Path) -> None:
    for age, name in enumerate(("src/a.py", "src/deep/b.py", "c.txt")):
        file = workspace / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
        os.utime(file, (1000 - age, 1000 - age))
    assert glob_files(str(workspace), "*.py", 10) == ["src/a.py", "src/deep/b.py"]
    assert glob_files(str(workspace), "src/*.py", 10) == ["src/a.py"]


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("*.py", "deep/a.py", True),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/x/y/a.py", True),
        ("src/*.py", "src/x/a.py", False),
        ("*.{ts,tsx}", "a.tsx", True),
        ("[!a]*.py", "a.py", False),
        ("?.c", "ab.c", False),
    ],
)
def test_patterns_mean_what_shells_mean(pattern: str, path: str, matches: bool) -> None:
    assert bool(translate(pattern).fullmatch(path)) is matches


@pytest.mark.parametrize("ripgrep", [False, True])
async def test_lines_are_found_and_binaries_left_out(
    bench: BuiltinSession, workspace: Path, monkeypatch: pytest.MonkeyPatch, ripgrep: bool
) -> None:
    if ripgrep and shutil.which("rg") is None:
        pytest.skip("needs ripgrep")
    if not ripgrep:
        monkeypatch.setattr("dragoman.builtin.files.search.shutil.which", lambda name: None)
    (workspace / "a.txt").write_text("first\nsecond needle\n")
    (workspace / "b.bin").write_bytes(b"needle\0")
    (workspace / "node_modules").mkdir()
    (workspace / "node_modules" / "c.txt").write_text("needle")
    outcome = await bench.use("grep", pattern="NEEDLE", ignore_case=True, glob="*.*")
    assert outcome.text == "a.txt:2: second needle"
    assert (await bench.use("grep", pattern="(")).status == "failed"


async def test_what_git_ignores_is_not_searched(bench: BuiltinSession, workspace: Path) -> None:
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    (workspace / ".gitignore").write_text("*.log\n")
    (workspace / "a.log").write_text("needle")
    (workspace / "a.txt").write_text("needle")
    assert (await bench.use("grep", pattern="needle")).text == "a.txt:1: needle"


@pytest.mark.parametrize("repository", [False, True])
async def test_links_do_not_lead_a_search_out_of_the_workspace(
    bench: BuiltinSession, workspace: Path, tmp_path: Path, repository: bool
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("needle")
    (workspace / "folder").mkdir()
    (workspace / "folder" / "a.txt").write_text("hay")
    if repository:
        subprocess.run(["git", "init", "-q", str(workspace)], check=True)
        subprocess.run(["git", "-C", str(workspace), "add", "."], check=True)
    (workspace / "folder" / "a.txt").unlink()
    (workspace / "folder").rmdir()
    (workspace / "folder").symlink_to(outside)
    (workspace / "link.txt").symlink_to(outside / "a.txt")
    assert (await bench.use("grep", pattern="needle")).text == "No match."


def ripgrep(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """A `rg` that does what the script says."""
    folder.mkdir()
    (folder / "rg").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "rg").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


async def test_a_ripgrep_with_much_to_complain_about_is_read_to_its_end(
    bench: BuiltinSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ripgrep(tmp_path / "bin", monkeypatch, "head -c 200000 /dev/zero | tr '\\0' x >&2; exit 2")
    async with asyncio.timeout(30):
        outcome = await bench.use("grep", pattern="needle")
    assert outcome.text.startswith("The search failed: xxx")


async def test_a_silent_ripgrep_is_ended_with_its_search(
    bench: BuiltinSession, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ripgrep(tmp_path / "bin", monkeypatch, f"echo $$ > {workspace}/pid; exec sleep 3600")
    searching = asyncio.ensure_future(bench.use("grep", pattern="needle"))
    file = workspace / "pid"
    await until(lambda: file.exists() and file.read_text().strip())
    searching.cancel()
    await until_gone([int(file.read_text())])


def test_the_search_stops_at_its_limit(workspace: Path) -> None:
    from threading import Event

    for number in range(20):
        (workspace / f"{number}.txt").write_text("x\nx\n")
    found = search_in_python(str(workspace), compile_pattern("x", False), None, 5, Event())
    assert len(found) == 5


# -- run


async def test_output_is_shown_while_a_command_runs(bench: BuiltinSession) -> None:
    outcome = await bench.use("run", command="echo early; sleep 0.8; echo late")
    assert outcome.text == "early\nlate\n[exit code 0]"
    contents = [str(update.get("content")) for update in bench.person.updates]
    assert any("early" in each and "late" not in each for each in contents)


async def test_a_command_that_never_ends_is_ended(bench: BuiltinSession) -> None:
    outcome = await bench.use("run", command="echo begun; sleep 3600", timeout=1)
    assert outcome.status == "failed"
    assert "begun" in outcome.text
    assert "time limit of 1 s" in outcome.text


async def test_a_command_in_the_background_is_asked_about_and_ended(bench: BuiltinSession) -> None:
    outcome = await bench.use("run", command="echo up; sleep 3600", background=True)
    id = outcome.text.rpartition(" ")[2].rstrip(".")
    async with asyncio.timeout(20):
        while "up" not in (checked := await bench.use("check_command", id=id)).text:
            await asyncio.sleep(0.05)
    assert "still running" in checked.text
    assert "ended by SIG" in (await bench.use("stop_command", id=id)).text
    assert "No command" in (await bench.use("check_command", id=id)).text


async def test_a_background_that_is_full_starts_nothing_more(
    bench: BuiltinSession, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.builtin.running_commands.MAX_BACKGROUND", 1)
    first = await bench.use("run", command="true", background=True)
    id = first.text.rpartition(" ")[2].rstrip(".")
    await bench.session.commands.background[id].wait()
    second = await bench.use("run", command="sleep 3600", background=True)
    assert second.status == "done", "the first has ended, and gives way"
    refused = await bench.use("run", command="touch started", background=True)
    assert "run in the background already" in refused.text
    assert not (workspace / "started").exists()


async def test_long_output_keeps_its_end(bench: BuiltinSession) -> None:
    outcome = await bench.use("run", command="seq 1 200000")
    assert outcome.text.endswith("200000\n[exit code 0]")
    assert "beginning of the output is left out" in outcome.text


# -- fetch


async def test_a_page_that_never_ends_is_given_up(
    bench: BuiltinSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.builtin.files.web.TIMEOUT", 0.3)

    class Drips(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                for _ in range(200):
                    self.wfile.write(b"x")
                    time.sleep(0.05)

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Drips) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        outcome = await bench.use("fetch", url=f"http://127.0.0.1:{server.server_port}/")
        server.shutdown()
    assert "did not arrive within 0.3 s" in outcome.text


async def test_a_page_is_fetched_as_text(bench: BuiltinSession) -> None:
    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/moved":
                self.send_response(302)
                self.send_header("Location", "http://other.example/")
                self.end_headers()
                return
            self.send_response(200 if self.path == "/" else 404)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<html><head><style>x{}</style></head><h1>Title</h1><p>Some  text</p></html>")

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        assert (await bench.use("fetch", url=f"{url}/")).text == "Title\nSome text"
        assert "404" in (await bench.use("fetch", url=f"{url}/none")).text
        assert "moved to another host" in (await bench.use("fetch", url=f"{url}/moved")).text
        server.shutdown()
    assert "cannot be reached" in (await bench.use("fetch", url=f"{url}/")).text
    assert "Only http and https" in (await bench.use("fetch", url="file:///etc/passwd")).text
