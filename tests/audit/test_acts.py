"""Acts of people are recorded before they are done, on the event loop, in threads and by commands."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from dragoman.audit import gateway_audit
from dragoman.audit.gateway_audit import GatewayAudit
from dragoman.audit.read import Query, query
from dragoman.cli.audit.tell import command_audit
from dragoman.config.audit_model import AuditConfig
from dragoman.gateway.ports.acts import NotRecorded, acting, from_threads

FACTS = {"session": "dgm_1", "by": "kim", "remote": "origin"}


def records(folder: Path) -> list[dict[str, Any]]:
    return [one for one in query(folder, Query()) if one["kind"] in ("pushed", "act_failed")]


async def test_an_act_on_the_event_loop(tmp_path: Path) -> None:
    audit = GatewayAudit(tmp_path, AuditConfig(), 1)
    async with acting(audit, "pushed", FACTS):
        (found,) = records(tmp_path)
        assert (found["by"], found["remote"]) == ("kim", "origin")
    with pytest.raises(ValueError):
        async with acting(audit, "pushed", FACTS, ["hushhush"]):
            raise ValueError("hushhush was refused by https://me:passw0rd@example.org/x")
    await audit.close()
    *_, failed = records(tmp_path)
    told = {name: failed[name] for name in ("kind", "act", "session", "by", "why")}
    assert told == {
        "kind": "act_failed",
        "act": "pushed",
        "session": "dgm_1",
        "by": "kim",
        "why": "*** was refused by https://********@example.org/x",
    }
    assert len(records(tmp_path)) == 3


async def test_an_act_in_a_thread(tmp_path: Path) -> None:
    audit = GatewayAudit(tmp_path, AuditConfig(), 1)
    act = from_threads(audit)

    def push() -> int:
        with act("pushed", FACTS):
            found = len(records(tmp_path))
        with pytest.raises(ValueError), act("pushed", FACTS):
            raise ValueError("refused")
        return found

    assert await asyncio.to_thread(push) == 1
    await audit.close()
    assert [one["kind"] for one in records(tmp_path)] == ["pushed", "pushed", "act_failed"]


@pytest.mark.parametrize("policy", ["block", "warn"])
async def test_an_act_that_cannot_be_recorded(
    tmp_path: Path, policy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_audit, "RETRY", 0.01)
    (tmp_path / "audit").write_text("in the way")
    audit = GatewayAudit(tmp_path / "audit", AuditConfig(on_failure=policy), 0.05)
    act, done = from_threads(audit), []

    def push() -> None:
        with act("pushed", FACTS):
            done.append("thread")

    if policy == "warn":
        await asyncio.to_thread(push)
    else:
        with pytest.raises(NotRecorded, match="could not be recorded"):
            await asyncio.to_thread(push)
        with pytest.raises(NotRecorded):
            async with acting(audit, "pushed", FACTS):
                done.append("loop")
    assert done == (["thread"] if policy == "warn" else [])
    await audit.close()


@pytest.mark.parametrize("policy", ["block", "warn"])
def test_an_act_of_a_command(
    home: Path, policy: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRAGOMAN_HOME", str(home))
    (home / "config.toml").write_text(f'[audit]\non_failure = "{policy}"\n')
    with command_audit() as act:
        with act("pushed", {"remote": "origin"}):
            (found,) = records(home / "audit")
            assert found["by"] == "local"
        with pytest.raises(ValueError), act("pushed", {}):
            raise ValueError("refused")
    assert [one["kind"] for one in records(home / "audit")] == ["pushed", "pushed", "act_failed"]
    (home / "audit" / "index.ndjson").write_text("damaged\n")
    with command_audit() as act:
        if policy == "block":
            with pytest.raises(NotRecorded, match=r"index\.ndjson is damaged"), act("pushed", {}):
                raise AssertionError("done")
        else:
            with act("pushed", {}):
                pass
            assert "not in the audit" in capfd.readouterr().err
