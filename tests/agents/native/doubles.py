"""Configurations of the scripted `claude` and `codex`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

SUPPORT = Path(__file__).parents[2] / "support" / "agents"


def claude(tmp_path: Path, *flags: str) -> dict[str, Any]:
    command = [sys.executable, "-S", "-E", str(SUPPORT / "scripted_claude.py"), *flags]
    return {"kind": "claude", "command": command, "env": {"CLAUDE_CONFIG_DIR": str(tmp_path / "claude")}}


def codex(tmp_path: Path, *flags: str) -> dict[str, Any]:
    command = [sys.executable, "-S", "-E", str(SUPPORT / "scripted_codex.py"), *flags]
    env = {"CODEX_HOME": str(tmp_path / "codex"), "TEST_CWD": str(tmp_path / "workspace")}
    return {"kind": "codex", "command": command, "env": env}
