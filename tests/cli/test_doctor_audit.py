"""What `dragoman doctor` says about the audit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from dragoman.audit.chain import Chain
from dragoman.audit.log import AuditLog
from dragoman.cli.commands import root
from dragoman.cli.doctor.checks import audit as examining
from dragoman.cli.doctor.checks.audit import examine
from dragoman.cli.doctor.finding import Finding
from dragoman.config.audit_model import AuditConfig


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    chain = Chain(tmp_path / "audit")
    chain.append("decision", {"session": "dgm_a", "decision": "allow"})
    chain.close()
    return tmp_path / "audit"


def only(findings: list[Finding], level: str) -> Finding:
    (found,) = (finding for finding in findings if finding.level == level)
    return found


def test_nothing_is_said_where_there_is_none(tmp_path: Path) -> None:
    assert examine(tmp_path / "audit", AuditConfig()) == []


def test_one_that_is_as_it_should_be(folder: Path) -> None:
    (found,) = examine(folder, AuditConfig())
    assert found.level == "ok"
    assert found.detail == "3 records in 1 chains: consistent here, not anchored elsewhere"


def test_a_changed_record(folder: Path) -> None:
    (segment,) = folder.glob("*/*.ndjson")
    segment.write_bytes(segment.read_bytes().replace(b'"allow"', b'"deny"'))
    found = examine(folder, AuditConfig())
    assert found[0].level == "error" and found[0].about == f"audit {segment.parent.name}:2"
    assert "dragoman audit verify" in found[0].fix


def test_a_key_that_others_read_or_that_is_gone(folder: Path) -> None:
    (folder / "key").chmod(0o644)
    assert "chmod 600" in only(examine(folder, AuditConfig()), "error").detail
    (folder / "key").unlink()
    assert "is gone" in only(examine(folder, AuditConfig()), "error").detail


def test_a_folder_that_others_read(folder: Path) -> None:
    folder.chmod(0o755)
    assert only(examine(folder, AuditConfig()), "warning").fix == f"`chmod 700 {folder}`"


def test_anchors(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = tmp_path / "elsewhere"
    config = AuditConfig(anchors=[f"file:{elsewhere}", "https://example.org/heads?token=secret-value"])
    assert "has no heads" in only(examine(folder, config), "error").detail
    log = AuditLog(folder, AuditConfig(anchors=config.anchors[:1]))
    log.record("decision", {})
    log.close()
    first, second = examine(folder, config)
    assert "anchored elsewhere up to" in first.detail or "consistent here" in first.detail
    assert second.about == "audit anchor" and "example.org" in second.detail
    assert "secret-value" not in second.detail
    monkeypatch.setattr(examining, "BEHIND", -1)
    assert "ends at" in only(examine(folder, config), "warning").detail


def test_little_space(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(folder)
    monkeypatch.setattr(examining, "LITTLE_SPACE", usage.total + 1)
    assert " are free" in only(examine(folder, AuditConfig()), "warning").detail


def test_the_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAGOMAN_HOME", str(folder.parent))
    done = CliRunner().invoke(root, ["doctor", "audit", "--json"])
    assert [finding["level"] for finding in json.loads(done.stdout)["findings"]] == ["ok"]
    (folder / "key").chmod(0o644)
    done = CliRunner().invoke(root, ["doctor", "audit"])
    assert done.exit_code == 1 and "audit key" in done.stdout
