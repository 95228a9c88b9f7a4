"""Sandbox mode: its tools work in a box, and the workspace changes only when a person lets it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.agents.custody import Custody
from dragoman.builtin.sandbox import box_copy
from support.agents.builtin_process import Builtin, said
from support.agents.builtin_session import BuiltinSession

MakeBench = Callable[..., BuiltinSession]
needs_bubblewrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap")


@pytest.fixture
async def bench(workspace: Path, tmp_path: Path) -> AsyncIterator[MakeBench]:
    custody = Custody()
    made: list[BuiltinSession] = []

    def make(**settings: Any) -> BuiltinSession:
        made.append(
            BuiltinSession(workspace, custody, **{"mode": "sandbox", "boxes": tmp_path / "boxes", **settings})
        )
        return made[-1]

    yield make
    for each in made:
        await each.session.close()
    await custody.close()


def tree(folder: Path) -> dict[str, str]:
    files = (each for each in sorted(folder.rglob("*")) if each.is_file())
    return {str(each.relative_to(folder)): each.read_text() for each in files}


@pytest.fixture
def files(workspace: Path) -> dict[str, str]:
    (workspace / "src").mkdir()
    (workspace / "a.txt").write_text("alpha\n")
    (workspace / "src" / "b.txt").write_text("beta\n")
    return tree(workspace)


@pytest.mark.parametrize("prefix", ["", "sandbox_"])
@needs_bubblewrap
async def test_files_and_commands_of_sandbox_mode_share_a_box_that_is_not_the_workspace(
    bench: MakeBench, workspace: Path, files: dict[str, str], prefix: str
) -> None:
    at = bench()
    assert (await at.use(f"{prefix}write", path="new/c.txt", content="gamma\n")).status == "done"
    assert (await at.use(f"{prefix}read", path=str(workspace / "a.txt"))).text == "alpha\n"
    edits = [{"old": "alpha", "new": "omega"}]
    assert (await at.use(f"{prefix}edit", path="a.txt", edits=edits)).status == "done"
    assert at.last_call["locations"][0]["path"] == at.last_call["content"][0]["path"] == f"{workspace}/a.txt"
    seen = await at.use(f"{prefix}run", command="pwd; cat a.txt new/c.txt; rm src/b.txt; echo made > d.txt")
    assert seen.text.startswith(f"{workspace}\nomega\ngamma\n"), seen.text
    assert "d.txt" in (await at.use(f"{prefix}list")).text
    assert "a.txt:1: omega" in (await at.use(f"{prefix}grep", pattern="omega")).text
    assert "new/c.txt" in (await at.use(f"{prefix}glob", pattern="**/c.txt")).text
    assert tree(workspace) == files
    assert not at.person.questions


async def test_the_tools_are_offered_under_both_names_in_sandbox_mode_alone(bench: MakeBench) -> None:
    at = bench()
    names = {tool.name for tool in at.session.toolbox.available()}
    shared = {
        "read",
        "write",
        "edit",
        "list",
        "glob",
        "grep",
        "run",
        "check_command",
        "stop_command",
        "apply",
    }
    assert {name for name in names if name.startswith("sandbox_")} == {f"sandbox_{name}" for name in shared}
    assert shared <= names
    at.session.set_mode("full")
    assert not any(tool.name.startswith("sandbox_") for tool in at.session.toolbox.available())
    outcome = await at.use("sandbox_read", path="a.txt")
    assert (outcome.status, "not available in the mode" in outcome.text) == ("refused", True)


async def test_an_editors_buffers_are_not_in_the_box(
    bench: MakeBench, workspace: Path, files: dict[str, str]
) -> None:
    at = bench()
    at.person.capabilities = {"fs": {"readTextFile": True, "writeTextFile": True}}
    at.person.buffers[str(workspace / "a.txt")] = "unsaved\n"
    assert (await at.use("read", path="a.txt")).text == "alpha\n"
    await at.use("write", path="a.txt", content="changed\n")
    assert at.person.buffers == {str(workspace / "a.txt"): "unsaved\n"}
    assert tree(workspace) == files


@pytest.mark.parametrize("path", ["/etc/passwd", "../secret", "link/x"])
async def test_what_is_outside_stays_outside(
    bench: MakeBench, workspace: Path, tmp_path: Path, path: str
) -> None:
    (workspace / "link").symlink_to(tmp_path)
    outcome = await bench().use("write", path=path, content="x")
    assert outcome.status == "failed"
    assert str(tmp_path / "boxes") not in outcome.text


async def test_changes_are_applied_when_a_person_lets_them(
    bench: MakeBench, workspace: Path, files: dict[str, str]
) -> None:
    at = bench()
    await at.use("write", path="new/c.txt", content="gamma\n")
    await at.use("read", path="a.txt")
    await at.use("write", path="a.txt", content="omega\n")
    Path((await at.session.files()).path("src/b.txt")).unlink()
    at.person.answer = "reject_once"
    assert (await at.use("apply")).status == "refused"
    assert tree(workspace) == files
    at.person.answer = "allow_once"
    assert (await at.use("apply")).text == "3 changes applied to the workspace."
    assert tree(workspace) == {"a.txt": "omega\n", "new/c.txt": "gamma\n"}
    shown = {each["path"]: each["newText"] for each in at.person.questions[-1]["toolCall"]["content"]}
    assert shown[f"{workspace}/a.txt"] == "omega\n"
    assert (await at.use("apply")).text == "Nothing was changed in the box."


async def test_a_file_that_was_changed_on_both_sides_is_not_overwritten(
    bench: MakeBench, workspace: Path, files: dict[str, str]
) -> None:
    at = bench()
    await at.use("read", path="a.txt")
    await at.use("write", path="a.txt", content="omega\n")
    (workspace / "a.txt").write_text("by hand\n")
    outcome = await at.use("apply")
    assert (outcome.status, "a.txt" in outcome.text) == ("failed", True)
    assert (workspace / "a.txt").read_text() == "by hand\n"


@pytest.mark.parametrize("where", ["box", "workspace"])
async def test_what_changes_while_the_question_is_open_is_not_applied(
    bench: MakeBench, workspace: Path, files: dict[str, str], where: str
) -> None:
    at = bench()
    await at.use("write", path="c.txt", content="shown\n")
    changed = {"box": Path((await at.session.files()).path("c.txt")), "workspace": workspace / "c.txt"}[where]
    ask = at.person.ask_why

    async def answer(
        session: str, tool_call: Any, options: Any, *, unasked: bool | str = False
    ) -> tuple[str | None, str | None]:
        changed.write_text("not shown\n")
        return await ask(session, tool_call, options)

    at.person.ask_why = answer  # type: ignore[method-assign]
    outcome = await at.use("apply")
    assert (outcome.status, "apply again" in outcome.text) == ("failed", True)
    assert tree(workspace) == {**files, **({"c.txt": "not shown\n"} if where == "workspace" else {})}


async def test_a_file_whose_size_and_time_are_forged_is_applied_as_it_was_shown(
    bench: MakeBench, workspace: Path, files: dict[str, str]
) -> None:
    at = bench()
    await at.use("write", path="c.txt", content="good\n")
    copied = Path((await at.session.files()).path("c.txt"))
    ask = at.person.ask_why

    async def answer(
        session: str, tool_call: Any, options: Any, *, unasked: bool | str = False
    ) -> tuple[str | None, str | None]:
        times = copied.stat()
        copied.write_text("evil\n")
        os.utime(copied, ns=(times.st_atime_ns, times.st_mtime_ns))
        return await ask(session, tool_call, options)

    at.person.ask_why = answer  # type: ignore[method-assign]
    assert (await at.use("apply")).status == "done"
    assert (workspace / "c.txt").read_text() == "good\n"


async def test_a_question_names_every_file_and_where_links_lead(
    bench: MakeBench, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["dragoman.builtin.tools.apply"], "MAX_DIFFS", 1)
    at = bench()
    for name in ("a.txt", "b.txt"):
        await at.use("write", path=name, content="x\n")
    Path((await at.session.files()).path("link")).symlink_to("/etc/passwd")
    at.person.answer = "reject_once"
    await at.use("apply")
    *_, rest = at.person.questions[-1]["toolCall"]["content"]
    assert f"{workspace}/b.txt" in rest["content"]["text"]
    assert f"Link {workspace}/link to /etc/passwd" in rest["content"]["text"]
    assert not list((tmp_path / "boxes").rglob("apply-*"))


async def test_a_file_takes_the_place_of_a_folder(
    bench: MakeBench, workspace: Path, files: dict[str, str]
) -> None:
    at = bench()
    await at.use("read", path="a.txt")
    copied = Path((await at.session.files()).path("src"))
    shutil.rmtree(copied)
    copied.write_text("a file now\n")
    assert (await at.use("apply")).status == "done"
    assert tree(workspace) == {"a.txt": "alpha\n", "src": "a file now\n"}


async def test_the_box_outlives_the_process_of_its_session(
    bench: MakeBench, workspace: Path, files: dict[str, str]
) -> None:
    first = bench()
    await first.use("write", path="c.txt", content="gamma\n")
    await first.session.close()
    assert (await bench().use("read", path="c.txt")).text == "gamma\n"


@needs_bubblewrap
async def test_the_box_is_the_workspace_where_the_settings_say_so(
    bench: MakeBench, workspace: Path, files: dict[str, str]
) -> None:
    at = bench(box_in_place=True)
    await at.use("write", path="c.txt", content="gamma\n")
    await at.use("run", command="echo made > d.txt")
    assert tree(workspace) == {**files, "c.txt": "gamma\n", "d.txt": "made\n"}


async def test_a_folder_that_is_too_large_is_said_to_be(
    bench: MakeBench, files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(box_copy, "MAX_FILES", 1)
    outcome = await bench().use("read", path="a.txt")
    assert outcome.status == "refused"
    assert 'sandbox_files = "workspace"' in outcome.text


async def test_a_person_applies_changes_with_a_command(agent: Builtin, workspace: Path) -> None:
    session = await agent.new_session(workspace)
    agent.on("session/request_permission", {"outcome": {"outcome": "selected", "optionId": "allow_once"}})
    await agent.request("session/set_mode", {"sessionId": session, "modeId": "sandbox"})
    await agent.prompt(session, "/write c.txt gamma")
    assert not (workspace / "c.txt").exists()
    assert "c.txt" in said(await agent.prompt(session, "/diff"))
    assert "1 change applied" in said(await agent.prompt(session, "/apply"))
    assert (workspace / "c.txt").read_text() == "gamma\n"
    await agent.prompt(session, "/write d.txt delta")
    await agent.request("session/delete", {"sessionId": session})
    assert not (workspace / "d.txt").exists()
