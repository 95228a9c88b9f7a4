"""The log: readable, one line per event, and never in the way."""

from __future__ import annotations

import json
import logging
import os
import runpy
import select
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman import log


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "log"


LOGGER = logging.getLogger("dragoman.test")


def test_fields_are_rendered_beside_the_message(file: Path) -> None:
    log.setup(file=str(file))
    LOGGER.info("started %s", "it", extra={"session": "dgm_1", "command": "a b"})
    line = file.read_text()
    assert ' level=info logger=dragoman.test msg="started it" session=dgm_1 command="a b"\n' in line
    assert line.startswith("time=20")


def test_json_lines_are_json(file: Path) -> None:
    log.setup(file=str(file), format="json")
    LOGGER.warning("line\nbreak", extra={"request": 3, "agent": "x"})
    try:
        raise ValueError("bad")
    except ValueError:
        LOGGER.exception("failed")
    first, second = map(json.loads, file.read_text().splitlines())
    assert first["level"] == "warning"
    assert (first["message"], first["request"], first["agent"]) == ("line\nbreak", 3, "x")
    assert "ValueError: bad" in second["exception"]


def test_one_event_is_one_line_whatever_is_in_it(file: Path) -> None:
    log.setup(file=str(file))
    LOGGER.info("a\nlevel=error msg=forged\x1b[2J", extra={"text": "x\ny", "odd": "\ud800"})
    (line,) = file.read_text().splitlines()
    assert "\x1b" not in line


def test_levels_below_the_chosen_one_are_left_out(file: Path) -> None:
    log.setup("warning", str(file))
    LOGGER.info("no")
    LOGGER.warning("yes")
    assert "no" not in file.read_text()
    assert "yes" in file.read_text()


def test_the_file_is_private_and_grows(file: Path) -> None:
    for _ in range(2):
        log.setup(file=str(file))
        LOGGER.info("again")
    assert len(file.read_text().splitlines()) == 2
    assert file.stat().st_mode & 0o777 == 0o600


def test_long_values_are_cut(file: Path) -> None:
    log.setup(file=str(file))
    LOGGER.info("x" * 1_000_000)
    assert len(file.read_text()) < 3000


def test_a_line_for_a_terminal_is_for_eyes() -> None:
    record = LOGGER.makeRecord("dragoman.test", 30, "f", 1, "oh\x1b[2J no", (), None, extra={"session": "s"})
    assert log.HumanLine(colour=False).format(record).endswith("warning test oh\\x1b[2J no session=s")
    assert "\x1b[33mwarning\x1b[0m" in log.HumanLine(colour=True).format(record)


def test_a_bad_log_call_is_logged_and_not_raised(file: Path) -> None:
    log.setup(file=str(file))
    LOGGER.info("%d", "not a number")
    assert "cannot format a log line" in file.read_text()


def test_a_reader_that_does_not_read_costs_lines_and_no_time() -> None:
    reading, writing = os.pipe()
    handler = log.FdHandler(writing)
    handler.setFormatter(log.FieldLine())
    record = LOGGER.makeRecord("dragoman.test", 20, "f", 1, "x" * 1000, (), None)
    for _ in range(200):
        handler.emit(record)  # would block for ever
    taken = os.read(reading, 1 << 20)
    assert taken.endswith(b"\n")
    handler.emit(record)
    later = os.read(reading, 1 << 20).splitlines()
    lost = 200 - taken.count(b"\n")
    assert b'"%d lines lost"' % lost in later[0]
    assert b"x" * 1000 in later[1]
    os.close(reading)
    handler.emit(record)  # the reader is gone
    os.close(writing)
    handler.emit(record)


SCRIPT = """
import logging
from dragoman import log
log.setup()
logging.getLogger("dragoman.x").error("hello")
print("done", flush=True)
"""


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", "2</dev/null"])
def test_a_stderr_that_cannot_be_written_hurts_nobody(redirection: str) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" -c "$1" {redirection}', sys.executable, SCRIPT],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "done\n")


def test_a_write_is_never_more_than_a_pipe_takes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(select, "PIPE_BUF", 512)  # as on macOS
    assert runpy.run_path(log.__file__)["SAFE_WRITE"] == 512
