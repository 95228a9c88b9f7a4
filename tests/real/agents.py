"""The real agents: how each is started offline, in a home of its own, against the scripted model."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from real.install import LATEST
from real.natures import expected
from support.gateway_process import Table, toml

NOWHERE = {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}
"""For agents that call home whatever their settings say: nobody listens on the discard port."""

Settings = Callable[[Path, str], Mapping[str, str]]


@dataclass(frozen=True)
class RealAgent:
    """One agent; `prepare` writes its settings into a home and returns its environment."""

    name: str
    version: str
    program: str
    """Below `node_modules`; a pattern, where the name depends on the machine."""
    arguments: tuple[str, ...]
    prepare: Settings
    kind: str = "acp"
    like: str | None = None
    """The version whose behaviour is expected of it, if not its own."""

    def does(self, behaviour: str) -> object:
        """What it is known to do."""
        return expected(self.name, self.like or self.version, behaviour)

    def program_in(self, modules: Path) -> Path:
        return sorted(modules.glob(self.program))[0]

    def table(self, modules: Path, home: Path, model: str) -> Table:
        """Its section of the configuration."""
        program = self.program_in(modules)
        script = ["node", str(program)] if program.suffix in (".js", ".mjs") else [str(program)]
        for folder in ("", "tmp", "config", "data", "state", "cache"):
            (home / folder).mkdir(exist_ok=True)
        own = {f"XDG_{kind}_HOME": str(home / kind.lower()) for kind in ("CONFIG", "DATA", "STATE", "CACHE")}
        env = {"HOME": str(home), "TMPDIR": str(home / "tmp"), **own, **self.prepare(home, model)}
        return {"kind": self.kind, "command": [*script, *self.arguments], "env": env}


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def _claude(home: Path, model: str) -> Mapping[str, str]:
    return {
        "ANTHROPIC_BASE_URL": model,
        "ANTHROPIC_API_KEY": "sk-ant-scripted",
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": "1",
        "DISABLE_TELEMETRY": "1",
    }


def _codex(home: Path, model: str) -> Mapping[str, str]:
    provider = {
        "name": "scripted",
        "base_url": f"{model}/v1",
        "wire_api": "responses",
        "env_key": "SCRIPTED_KEY",
        "requires_openai_auth": False,
        "supports_websockets": False,
        "request_max_retries": 1,
        "stream_max_retries": 1,
    }
    settings = {
        "model": "gpt-5.5",  # decides which tools are offered; an unknown one gets no apply_patch
        "model_provider": "scripted",
        "approval_policy": "on-request",
        "sandbox_mode": "workspace-write",
        "check_for_update_on_startup": False,
        "analytics": {"enabled": False},
        "model_providers": {"scripted": provider},
    }
    _write(home / ".codex" / "config.toml", toml(settings))
    # In its default mode "agent" a reviewing model is asked instead of a person.
    mode = {"INITIAL_AGENT_MODE": "workspace-write", "NO_BROWSER": "1"}
    return {"CODEX_HOME": str(home / ".codex"), "SCRIPTED_KEY": "sk-scripted", **mode, **NOWHERE}


def _opencode(home: Path, model: str) -> Mapping[str, str]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{model}/v1", "apiKey": "sk-scripted"},
        "models": {"model": {"name": "model", "reasoning": True}, "other": {"name": "other"}},
    }
    settings = {
        "provider": {"scripted": provider},
        "enabled_providers": ["scripted"],
        "model": "scripted/model",
        "small_model": "scripted/model",
        "permission": {"bash": "ask", "edit": "ask"},
        "autoupdate": False,
        "share": "disabled",
    }
    _write(home / "config" / "opencode" / "opencode.json", json.dumps(settings))
    quiet = ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS")
    return {**{f"OPENCODE_DISABLE_{what}": "1" for what in quiet}, **NOWHERE}


def _gemini(home: Path, model: str) -> Mapping[str, str]:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "general": {"enableAutoUpdate": False},
    }
    _write(home / ".gemini" / "settings.json", json.dumps(settings))
    return {
        "GEMINI_API_KEY": "scripted",
        "GOOGLE_GEMINI_BASE_URL": model,
        "GEMINI_MODEL": "gemini-2.5-pro",
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
    }


def _qwen(home: Path, model: str) -> Mapping[str, str]:
    settings = {
        "security": {"auth": {"selectedType": "openai"}},
        "privacy": {"usageStatisticsEnabled": False},
    }
    _write(home / ".qwen" / "settings.json", json.dumps(settings))
    return {"OPENAI_API_KEY": "sk-scripted", "OPENAI_BASE_URL": f"{model}/v1", "OPENAI_MODEL": "model"}


AGENTS = (
    RealAgent("claude", "2.1.325", "@anthropic-ai/claude-code-*/claude", (), _claude, kind="claude"),
    RealAgent("codex", "0.166.0", "@openai/codex-*/vendor/*/bin/codex", (), _codex, kind="codex"),
    RealAgent(
        "claude-agent-acp", "0.99.1", "@agentclientprotocol/claude-agent-acp/dist/index.js", (), _claude
    ),
    RealAgent("codex-acp", "2.6.0", "@agentclientprotocol/codex-acp/dist/index.js", (), _codex),
    RealAgent("opencode", "1.18.33", "opencode-*/bin/opencode", ("acp",), _opencode),
    RealAgent("gemini", "0.61.0", "@google/gemini-cli/bundle/gemini.js", ("--acp",), _gemini),
    RealAgent("qwen", "0.24.4", "@qwen-code/qwen-code/cli.js", ("--acp",), _qwen),
)


def chosen() -> tuple[RealAgent, ...]:
    """All of them as they are pinned, or one in another version (`latest.py`)."""
    name, _, version = os.environ.get(LATEST, "").partition("=")
    if not name:
        return AGENTS
    return tuple(replace(each, version=version, like=each.version) for each in AGENTS if each.name == name)
