from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from dragoman.services import files
from dragoman.wire.errors import CANCELLED, INVALID_PARAMS, NOT_FOUND

READ, WRITE = "fs/read_text_file", "fs/write_text_file"


async def read(agent: Any, path: Path, **options: object) -> str:
    result = await agent.call(READ, sessionId="s", path=str(path), **options)
    assert set(result) == {"content"}
    content: str = result["content"]
    return content


async def write(agent: Any, path: Path, content: str) -> None:
    assert await agent.call(WRITE, sessionId="s", path=str(path), content=content) == {}


@pytest.mark.parametrize(
    ("line", "limit", "expected"),
    [
        (None, None, "one\r\ntwo\n\nlast"),
        (1, None, "one\r\ntwo\n\nlast"),
        (0, 1, "one\r\n"),
        (2, None, "two\n\nlast"),
        (2, 1, "two\n"),
        (3, 2, "\nlast"),
        (1, 4, "one\r\ntwo\n\nlast"),
        (4, 100, "last"),
        (5, None, ""),
        (100, 1, ""),
        (2, 0, ""),
        (None, 2, "one\r\ntwo\n"),
    ],
)
async def test_a_part_is_read_by_lines(
    agent: Any, workspace: Path, line: int | None, limit: int | None, expected: str
) -> None:
    (workspace / "f").write_bytes(b"one\r\ntwo\n\nlast")
    assert await read(agent, workspace / "f", line=line, limit=limit) == expected


async def test_lines_are_found_across_chunks(agent: Any, workspace: Path) -> None:
    lines = [f"line {number} äöü\n" for number in range(1, 100_001)]
    (workspace / "f").write_text("".join(lines))
    assert await read(agent, workspace / "f", line=70_000, limit=20_000) == "".join(lines[69_999:89_999])
    assert await read(agent, workspace / "f", line=99_999) == "".join(lines[99_998:])


async def test_a_few_lines_of_a_huge_file_are_read(agent: Any, workspace: Path) -> None:
    with (workspace / "f").open("wb") as file:
        file.write(b"first\nsecond\n")
        file.truncate(2 * 1024**3)  # sparse
    assert await read(agent, workspace / "f", line=2, limit=1) == "second\n"


async def test_more_than_an_answer_may_hold_is_refused_and_a_part_is_not(
    agent: Any, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_ANSWER_BYTES", 1000)
    (workspace / "f").write_bytes(b"123456789\n" * 101)
    error = await agent.refused(READ, path=str(workspace / "f"))
    assert (error["code"], error["data"]["reason"]) == (INVALID_PARAMS, "too_large")
    assert "line and limit" in error["message"]
    assert len(await read(agent, workspace / "f", line=2)) == 1000
    assert (await agent.refused(READ, path=str(workspace / "f"), limit=101))["data"]["reason"] == "too_large"


async def test_what_is_not_utf8_is_refused_but_its_text_lines_are_not(agent: Any, workspace: Path) -> None:
    (workspace / "f").write_bytes(b"caf\xe9\ntext\n")
    error = await agent.refused(READ, path=str(workspace / "f"))
    assert (error["code"], error["data"]["reason"]) == (INVALID_PARAMS, "encoding")
    assert await read(agent, workspace / "f", line=2) == "text\n"


@pytest.mark.parametrize(
    "params", [{}, {"path": 1}, {"path": "/f", "line": -1}, {"path": "/f", "limit": "x"}, {"path": None}]
)
async def test_params_of_a_wrong_shape_are_named(agent: Any, params: dict[str, object]) -> None:
    error = await agent.refused(READ, **params)
    assert error["code"] == INVALID_PARAMS
    assert "Invalid params" in error["message"]


async def test_a_missing_file_is_not_found(agent: Any, workspace: Path) -> None:
    error = await agent.refused(READ, path=str(workspace / "gone"))
    assert (error["code"], error["data"]["uri"]) == (NOT_FOUND, (workspace / "gone").as_uri())


async def test_a_new_file_is_written_with_its_folders(agent: Any, workspace: Path) -> None:
    await write(agent, workspace / "a" / "b" / "f", "grüße\r\n")
    assert (workspace / "a" / "b" / "f").read_bytes() == "grüße\r\n".encode()
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((workspace / "a" / "b" / "f").stat().st_mode) == 0o666 & ~umask
    assert os.listdir(workspace / "a" / "b") == ["f"]


async def test_a_file_is_replaced_whole_and_keeps_its_mode(agent: Any, workspace: Path) -> None:
    script = workspace / "run"
    script.write_text("a much longer text than the next one")
    script.chmod(0o751)
    with script.open() as reader:
        before = script.stat().st_ino
        await write(agent, script, "short")
        assert reader.read().startswith("a much longer")  # who had it open still reads the old one
    assert script.read_text() == "short"
    assert stat.S_IMODE(script.stat().st_mode) == 0o751
    assert script.stat().st_ino != before


async def test_other_names_of_a_file_see_what_is_written(agent: Any, workspace: Path) -> None:
    (workspace / "f").write_text("a longer text")
    os.link(workspace / "f", workspace / "hard")
    (workspace / "soft").symlink_to("f")
    await write(agent, workspace / "soft", "new")
    assert (workspace / "soft").is_symlink()
    assert (workspace / "hard").read_text() == (workspace / "f").read_text() == "new"
    assert (workspace / "hard").stat().st_ino == (workspace / "f").stat().st_ino


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
async def test_a_file_of_another_owner_stays_theirs(agent: Any, workspace: Path) -> None:
    (workspace / "f").write_text("old")
    os.chown(workspace / "f", 1234, 1234)
    await write(agent, workspace / "f", "new")
    assert ((workspace / "f").read_text(), (workspace / "f").stat().st_uid) == ("new", 1234)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
async def test_a_read_only_file_is_not_replaced(agent: Any, workspace: Path) -> None:
    (workspace / "f").write_text("old")
    (workspace / "f").chmod(0o444)
    error = await agent.refused(WRITE, path=str(workspace / "f"), content="new")
    assert error["data"]["reason"] == "permission_denied"
    assert (workspace / "f").read_text() == "old"


async def test_a_dangling_symlink_is_written_through_only_inside(
    agent: Any, workspace: Path, tmp_path: Path
) -> None:
    (workspace / "in").symlink_to(workspace / "target")
    (workspace / "out").symlink_to(tmp_path / "target")
    (workspace / "folder").symlink_to(tmp_path)
    await write(agent, workspace / "in", "here")
    assert (workspace / "target").read_text() == "here"
    for path in ("out", "folder/target", "folder/new/target"):
        error = await agent.refused(WRITE, path=f"{workspace}/{path}", content="x")
        assert (error["code"], error["data"]["reason"]) == (INVALID_PARAMS, "path")
    assert not (tmp_path / "target").exists()
    assert not (tmp_path / "new").exists()


async def test_a_folder_is_not_written(agent: Any, workspace: Path) -> None:
    (workspace / "folder").mkdir()
    for path in (workspace, workspace / "folder"):
        assert "a folder" in (await agent.refused(WRITE, path=str(path), content="x"))["message"]
    (workspace / "f").write_text("")
    assert (await agent.refused(WRITE, path=f"{workspace}/f/x", content=""))["code"] == NOT_FOUND


async def test_requests_are_served_in_the_order_sent(agent: Any, workspace: Path) -> None:
    path = str(workspace / "f")
    ids = []
    for number in range(20):
        ids.append(agent.ask(WRITE, path=path, content=str(number) * 100_000))
        ids.append(agent.ask(READ, path=path, limit=1))
    answers = [await agent.answer(id) for id in ids]
    assert agent.answered == ids
    assert [answer["result"]["content"] for answer in answers[1::2]] == [str(n) * 100_000 for n in range(20)]


async def test_a_cancelled_request_that_still_waits_is_not_carried_out(agent: Any, workspace: Path) -> None:
    first = agent.ask(WRITE, path=str(workspace / "first"), content="x" * 1_000_000)
    second = agent.ask(WRITE, path=str(workspace / "second"), content="")
    agent.cancel(second)
    assert (await agent.answer(second))["error"]["code"] == CANCELLED
    assert (await agent.answer(first))["result"] == {}
    await agent.call(READ, path=str(workspace / "first"))
    assert not (workspace / "second").exists()


async def test_requests_that_wait_when_the_session_closes_are_answered(agent: Any, workspace: Path) -> None:
    ids = [agent.ask(WRITE, path=str(workspace / str(n)), content="x") for n in range(3)]
    await agent.services.close()
    for id in ids:
        answer = await agent.answer(id)
        assert "result" in answer or answer["error"]["data"]["reason"] == "session_closed"
    assert (await agent.refused(READ, path=str(workspace / "0")))["data"]["reason"] == "session_closed"


async def test_a_method_of_nobody_is_not_found(agent: Any) -> None:
    assert (await agent.refused("fs/delete_file"))["code"] == -32601
