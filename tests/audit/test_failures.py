"""What happens while the audit cannot be written."""

from __future__ import annotations

import asyncio
import fcntl
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.audit import folder as places
from dragoman.audit import gateway_audit, record
from dragoman.audit.chain import Chain
from dragoman.audit.errors import AuditError
from dragoman.audit.gateway_audit import GatewayAudit
from dragoman.audit.keys import Key, KeyProblem, load_key
from dragoman.audit.log import AuditLog
from dragoman.audit.read import Query, query
from dragoman.audit.verify import verify
from dragoman.config.audit_model import AuditConfig


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_audit, "RETRY", 0.01)


@asynccontextmanager
async def audit(folder: Path, patience: float = 30, **settings: Any) -> AsyncIterator[GatewayAudit]:
    made = GatewayAudit(folder, AuditConfig(**settings), patience)
    yield made
    await made.close()


class Asked:
    """What came of something that had to be recorded first."""

    def __init__(self) -> None:
        self.done = asyncio.Event()
        self.outcome = ""

    def then(self) -> None:
        self.outcome = "done"
        self.done.set()

    def refuse(self, reason: str) -> None:
        self.outcome = reason
        self.done.set()


def ask(audit: GatewayAudit, session: str = "dgm_a") -> Asked:
    asked = Asked()
    facts = {"session": session}
    if audit.stored("decision", facts):
        asked.then()
    else:
        audit.wait("decision", facts, asked.then, asked.refuse)
    return asked


async def test_it_goes_on_when_the_audit_can_be_written_again(tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    folder.write_text("in the way")
    async with audit(folder) as made:
        first, second = ask(made), ask(made, "dgm_b")
        assert first.outcome == ""
        made.record("tool_begun", {"session": "dgm_c"})
        folder.unlink()
        async with asyncio.timeout(10):
            await first.done.wait()
            await second.done.wait()
        assert (first.outcome, second.outcome) == ("done", "done")
        assert ask(made).outcome == "done"
    sessions = [each.get("session") for each in query(folder, Query(kind="decision"))]
    assert sessions == ["dgm_a", "dgm_b", "dgm_a"]
    assert verify(folder).consistent
    (gap,) = query(folder, Query(kind="gap"))
    assert gap["missing"] >= 1


async def test_it_is_refused_with_the_reason_after_a_while(tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    folder.write_text("in the way")
    async with audit(folder, 0.05) as made:
        asked = ask(made)
        async with asyncio.timeout(10):
            await asked.done.wait()
        assert "could not be recorded" in asked.outcome and str(folder) in asked.outcome
        folder.unlink()


async def test_what_is_written_at_last_is_not_missing(tmp_path: Path) -> None:
    """However often it was tried; what was given up is."""
    folder = tmp_path / "audit"
    folder.write_text("in the way")
    async with audit(folder) as made:
        first, second, third = ask(made), ask(made, "dgm_b"), ask(made, "dgm_c")
        for _ in range(5):
            made._try_again()
        made.give_up("dgm_b", "cancelled")
        folder.unlink()
        async with asyncio.timeout(10):
            await third.done.wait()
        assert (first.outcome, second.outcome) == ("done", "cancelled")
    (gap,) = query(folder, Query(kind="gap"))
    assert gap["missing"] == 1


async def test_one_act_that_fails_does_not_hold_up_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "audit"
    folder.write_text("in the way")

    def fail(*args: object) -> None:
        raise RuntimeError("our bug")

    async with audit(folder, 0.05) as made:
        assert not made.stored("decision", {"session": "dgm_x"})
        made.wait("decision", {"session": "dgm_x"}, fail, fail)
        late = ask(made)
        async with asyncio.timeout(10):
            await late.done.wait()
        assert "could not be recorded" in late.outcome
    async with audit(folder) as made:
        assert not made.stored("decision", {"session": "dgm_x"})
        made.wait("decision", {"session": "dgm_x"}, fail, fail)
        second = ask(made)
        folder.unlink()
        async with asyncio.timeout(10):
            await second.done.wait()
        assert second.outcome == "done"
    assert caplog.text.count("what waited for the audit failed") == 2


async def test_a_damaged_index_is_told_as_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "index.ndjson").write_bytes(b"no record\n")
    async with audit(tmp_path, 0.05) as made:
        asked = ask(made)
        async with asyncio.timeout(10):
            await asked.done.wait()
        assert "index.ndjson is damaged" in asked.outcome
    assert places.chains(tmp_path) == []


def test_paths_that_are_not_utf8_are_recorded(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, AuditConfig(), ["secret-\udcff-value"])
    log.record("session_begun", {"session": "dgm_a", "cwd": "/a/\udcff/b", "title": "a secret-\udcff-value"})
    log.record("session_begun", {"session": "dgm_a", "cwd": "/a"}, ["other-\udcff-value"])
    log.close()
    first, _ = query(tmp_path, Query(session="dgm_a"))
    assert (first["cwd"], first["title"]) == ("/a/\\udcff/b", "a ***")
    assert verify(tmp_path).consistent


def test_a_record_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"a": deep}
    log = AuditLog(tmp_path, AuditConfig())
    with pytest.raises(AuditError, match="nested"):
        log.record("decision", deep)
    log.close()


def test_the_lock_of_another_process_is_not_waited_for_longer_than_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "LOCK_PATIENCE", 0.05)
    monkeypatch.setattr("dragoman.audit.chain.LOCKED_PAUSE", 1000.0)
    with (tmp_path / places.INDEX_LOCK).open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        chain = Chain(tmp_path)
        with pytest.raises(AuditError, match="another process holds"):
            chain.append("decision", {})
    with pytest.raises(AuditError, match="another process holds"):  # nor again at once
        chain.append("decision", {})
    chain._locked_until = 0
    chain.append("decision", {})
    chain.close()


def test_signing_goes_on_after_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the disk, or of a damaged index; the thread lives as long as the process."""
    monkeypatch.setattr("dragoman.audit.log.SIGN_EVERY", 0.01)
    tried, failures = threading.Event(), [OSError("disk"), record.Broken("index"), RuntimeError("our bug")]

    def load(folder: Path) -> Key:
        if failures:
            raise failures.pop()
        tried.set()
        return load_key(folder)

    monkeypatch.setattr("dragoman.audit.chain.load_key", load)
    log = AuditLog(tmp_path, AuditConfig())
    log.record("decision", {})
    assert tried.wait(10)
    log.close()
    assert verify(tmp_path).chains[0].signed


def test_a_chain_without_a_key_ends_all_the_same(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    load_key(tmp_path)
    (tmp_path / "key").unlink()
    log = AuditLog(tmp_path, AuditConfig())
    log.record("decision", {})
    log.close()
    assert "the audit cannot be signed" in caplog.text
    report = verify(tmp_path)
    assert report.consistent and report.chains[0].ended and not report.chains[0].alive
    assert any("its end is not signed" in note for note in report.notes)


async def test_a_cancelled_turn_does_not_wait(tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    folder.write_text("in the way")
    async with audit(folder) as made:
        mine, other = ask(made), ask(made, "dgm_b")
        made.give_up("dgm_a", "cancelled")
        assert (mine.outcome, other.outcome) == ("cancelled", "")
        folder.unlink()


async def test_no_more_wait_than_a_thousand(tmp_path: Path) -> None:
    folder = tmp_path / "audit"
    folder.write_text("in the way")
    async with audit(folder) as made:
        asked = [ask(made) for _ in range(gateway_audit.MOST_WAITING + 1)]
        assert asked[-1].outcome != "" and asked[0].outcome == ""
        folder.unlink()


async def test_a_warning_goes_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "audit"
    folder.write_text("in the way")
    async with audit(folder, on_failure="warn") as made:
        assert ask(made).outcome == "done"
        assert "the audit cannot be written" in caplog.text
        folder.unlink()


async def test_secrets_are_not_recorded(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, AuditConfig(), ["hunter2-token"])
    log.record("decision", {"title": "curl -H hunter2-token x", "n_": 1}, ["prefix-value"])
    log.record("decision", {"title": ["a", {"b": "prefix-value"}]}, ["prefix-value"])
    log.hide(["later-secret"])
    log.record("decision", {"title": "later-secret"})
    log.close()
    text = b"".join(path.read_bytes() for path in tmp_path.rglob("*.ndjson"))
    for secret in (b"hunter2-token", b"prefix-value", b"later-secret"):
        assert secret not in text
    assert text.count(b"***") == 3
    assert verify(tmp_path).consistent


def test_a_key_that_others_may_read_is_not_used(tmp_path: Path) -> None:
    load_key(tmp_path)
    (tmp_path / "key").chmod(0o644)
    with pytest.raises(KeyProblem, match="chmod 600"):
        load_key(tmp_path)


def test_a_key_that_is_gone_is_told(tmp_path: Path) -> None:
    load_key(tmp_path)
    (tmp_path / "key").unlink()
    with pytest.raises(KeyProblem, match="audit key --new"):
        load_key(tmp_path)


def test_records_go_on_without_a_key(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = AuditLog(tmp_path, AuditConfig())
    log.record("decision", {})
    log.sign()
    (tmp_path / "key").unlink()
    log.record("decision", {})
    log.close()
    assert len(list(query(tmp_path, Query(kind="decision")))) == 2
