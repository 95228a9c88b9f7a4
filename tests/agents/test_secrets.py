"""Secrets come by reference."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.agents.secrets import SecretError, resolve_secrets


async def test_from_a_variable_and_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("in a file\n")
    found = await resolve_secrets(
        {"A": "env:THEIRS", "B": f"file:{tmp_path}/key"}, {"THEIRS": "in a variable"}
    )
    assert found == {"A": "in a variable", "B": "in a file"}


async def test_from_the_keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    tool = tmp_path / "secret-tool"
    tool.write_text('#!/bin/sh\n[ "$*" = "lookup service agent account me" ] && echo stored\n')
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert await resolve_secrets({"A": "keyring:agent/me"}, {}) == {"A": "stored"}
    with pytest.raises(SecretError, match="not in the keyring"):
        await resolve_secrets({"A": "keyring:agent/nobody"}, {})


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("env:MISSING", "MISSING, which is not set"),
        ("file:/nowhere/at/all", "cannot be read"),
        ("sk-1234", "expected env:NAME"),
    ],
)
async def test_what_is_missing_is_named(reference: str, why: str) -> None:
    with pytest.raises(SecretError, match=why):
        await resolve_secrets({"KEY": reference}, {})
