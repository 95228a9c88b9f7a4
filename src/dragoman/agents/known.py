"""The agents that Dragoman knows by name, and the lookup of an agent and its program by name."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from dragoman.config.errors import ConfigError
from dragoman.config.load import Layer
from dragoman.config.model import AgentConfig, Config
from dragoman.config.variables import DIRECT_SPAWN, TEST_MODE, is_on

INSTALLS = {"npm": "npm install -g", "uv": "uv tool install"}
"""By package manager, the beginning of the command that installs a package."""


@dataclass(frozen=True, slots=True)
class KnownAgent:
    """Built-in facts about an agent."""

    title: str
    command: tuple[str, ...]
    source: str
    """Its package, as `npm:NAME@VERSION` or `uv:NAME@VERSION`, else what a person does."""
    login: str
    homepage: str
    kind: str = "acp"
    keys: tuple[str, ...] = ()
    """Variables with a key or token, any of which is enough."""
    logins: tuple[str, ...] = ()
    """Files that its own login writes, `~` and variables allowed; empty: not known."""
    registry_id: str = ""
    """Its id in the public registry, if that is not its name here."""
    scripts: str = ""
    """Why its package has to run scripts of its own when it is installed; empty: it has not."""

    @property
    def package(self) -> tuple[str, str, str] | None:
        """The package manager, the package and its version; None if there is no package."""
        manager, colon, rest = self.source.partition(":")
        name, at, version = rest.rpartition("@")
        return (manager, name, version) if colon and at and manager in INSTALLS else None

    @property
    def install(self) -> str:
        """How a person installs it without us."""
        if self.package is None:
            return self.source
        manager, name, _ = self.package
        return f"{INSTALLS[manager]} {name}"


KNOWN: dict[str, KnownAgent] = {
    "builtin": KnownAgent("Dragoman's own agent", (), "", "", "", kind="builtin"),
    "claude": KnownAgent(
        "Claude Code",
        ("claude",),
        "npm:@anthropic-ai/claude-code@2.1.327",
        "run `claude` once and log in, or set ANTHROPIC_API_KEY",
        "https://claude.com/claude-code",
        kind="claude",
        keys=(
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
        ),
        logins=("${CLAUDE_CONFIG_DIR:-~/.claude}/.credentials.json",),
        scripts="its program is put in place by a script",
    ),
    "codex": KnownAgent(
        "Codex",
        ("codex",),
        "npm:@openai/codex@0.169.0",
        "run `codex login`, or set OPENAI_API_KEY",
        "https://github.com/openai/codex",
        kind="codex",
        keys=(
            "OPENAI_API_KEY",
            "CODEX_API_KEY",
        ),
        logins=("${CODEX_HOME:-~/.codex}/auth.json",),
    ),
    "claude-acp": KnownAgent(
        "Claude Code, through its ACP adapter",
        ("claude-agent-acp",),
        "npm:@agentclientprotocol/claude-agent-acp@0.100.0",
        "run `claude` once and log in, or set ANTHROPIC_API_KEY",
        "https://github.com/agentclientprotocol/claude-agent-acp",
        keys=(
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
        ),
        logins=("${CLAUDE_CONFIG_DIR:-~/.claude}/.credentials.json",),
    ),
    "codex-acp": KnownAgent(
        "Codex, through its ACP adapter",
        ("codex-acp",),
        "npm:@agentclientprotocol/codex-acp@2.6.0",
        "run `codex login`, or set OPENAI_API_KEY",
        "https://github.com/agentclientprotocol/codex-acp",
        keys=(
            "OPENAI_API_KEY",
            "CODEX_API_KEY",
        ),
        logins=("${CODEX_HOME:-~/.codex}/auth.json",),
    ),
    "gemini": KnownAgent(
        "Gemini CLI",
        ("gemini", "--acp"),
        "npm:@google/gemini-cli@0.61.0",
        "run `gemini` once and log in, or set GEMINI_API_KEY",
        "https://github.com/google-gemini/gemini-cli",
        keys=(
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
        ),
        logins=("~/.gemini/oauth_creds.json",),
    ),
    "opencode": KnownAgent(
        "OpenCode",
        ("opencode", "acp"),
        "npm:opencode-ai@1.18.33",
        "run `opencode auth login`",
        "https://opencode.ai",
        logins=("${XDG_DATA_HOME:-~/.local/share}/opencode/auth.json",),
        scripts="its program is put in place by a script",
    ),
    "qwen": KnownAgent(
        "Qwen Code",
        ("qwen", "--acp"),
        "npm:@qwen-code/qwen-code@0.24.4",
        "run `qwen` once and log in, or set OPENAI_API_KEY and OPENAI_BASE_URL",
        "https://github.com/QwenLM/qwen-code",
        keys=(
            "OPENAI_API_KEY",
            "DASHSCOPE_API_KEY",
        ),
        logins=("~/.qwen/oauth_creds.json",),
        registry_id="qwen-code",
    ),
    "goose": KnownAgent(
        "goose",
        ("goose", "acp"),
        "see https://block.github.io/goose/docs/getting-started/installation",
        "run `goose configure`",
        "https://block.github.io/goose/",
    ),
    "copilot": KnownAgent(
        "GitHub Copilot CLI",
        ("copilot", "--acp"),
        "npm:@github/copilot@1.0.102",
        "run `copilot` once and use /login",
        "https://github.com/github/copilot-cli",
        keys=(
            "COPILOT_GITHUB_TOKEN",
            "GH_TOKEN",
            "GITHUB_TOKEN",
        ),
        registry_id="github-copilot-cli",
    ),
    "cursor": KnownAgent(
        "Cursor CLI",
        ("cursor-agent", "acp"),
        "see https://cursor.com/docs/cli/installation",
        "run `cursor-agent login`, or set CURSOR_API_KEY",
        "https://cursor.com/docs/cli/acp",
        keys=("CURSOR_API_KEY",),
    ),
    "auggie": KnownAgent(
        "Auggie CLI",
        ("auggie", "--acp"),
        "npm:@augmentcode/auggie@0.36.0",
        "run `auggie login`",
        "https://docs.augmentcode.com/cli/acp",
    ),
    "kimi": KnownAgent(
        "Kimi CLI",
        ("kimi", "acp"),
        "uv:kimi-cli@1.52.0",
        "run `kimi` once and use /login",
        "https://github.com/MoonshotAI/kimi-cli",
        scripts="a package that it needs is built from its source",
    ),
    "cline": KnownAgent(
        "Cline CLI",
        ("cline", "--acp"),
        "npm:cline@3.0.65",
        "run `cline auth`",
        "https://cline.bot/cli",
    ),
    "droid": KnownAgent(
        "Factory Droid",
        ("droid", "exec", "--output-format", "acp"),
        "npm:droid@0.215.0",
        "run `droid` once and log in, or set FACTORY_API_KEY",
        "https://factory.ai/product/cli",
        keys=("FACTORY_API_KEY",),
        registry_id="factory-droid",
    ),
    "vibe": KnownAgent(
        "Mistral Vibe",
        ("vibe-acp",),
        "uv:mistral-vibe@3.0.3",
        "run `vibe --setup`, or set MISTRAL_API_KEY",
        "https://github.com/mistralai/mistral-vibe",
        keys=("MISTRAL_API_KEY",),
        logins=("~/.vibe/.env",),
        registry_id="mistral-vibe",
    ),
    "kilo": KnownAgent(
        "Kilo Code CLI",
        ("kilo", "acp"),
        "npm:@kilocode/cli@7.8.1",
        "run `kilo auth login`",
        "https://kilo.ai",
    ),
    "kiro": KnownAgent(
        "Kiro CLI",
        ("kiro-cli", "acp"),
        "see https://kiro.dev/docs/cli/installation",
        "run `kiro-cli login`",
        "https://kiro.dev/cli",
    ),
    "junie": KnownAgent(
        "Junie",
        ("junie", "--acp=true"),
        "see https://junie.jetbrains.com",
        "run `junie` once and log in",
        "https://junie.jetbrains.com",
    ),
    "pi": KnownAgent(
        "pi",
        ("pi-acp",),
        "npm install -g pi-acp @mariozechner/pi-coding-agent",
        "run `pi` once and use /login, or set the API key of your provider",
        "https://github.com/svkozak/pi-acp",
        registry_id="pi-acp",
    ),
}


class AgentError(ConfigError):
    """No agent of this name can be run."""


class UnknownAgent(AgentError):
    """No agent has this name."""

    def __init__(self, name: str, names: Sequence[str]) -> None:
        from difflib import get_close_matches

        self.name = name
        self.nearest = get_close_matches(name.lower(), names, n=3, cutoff=0.5)
        hint = (
            f"did you mean {' or '.join(self.nearest)}?"
            if self.nearest
            else "`dragoman agents list` shows the names, `dragoman agents add` makes a new one"
        )
        super().__init__(f'there is no agent "{name}": {hint}')


class NotInstalled(AgentError):
    """The agent's program is not on this machine."""

    def __init__(self, name: str, program: str, install: str | None) -> None:
        self.name = name
        self.program = program
        self.install = install
        known = KNOWN.get(name)
        if install and known is not None and known.package is not None:
            install = f"dragoman agents install {name} (or {install})"
        hint = f"install it: {install}" if install else f"check agents.{name}.command and PATH"
        super().__init__(f'the agent "{name}" is not installed: there is no program "{program}"; {hint}')


_SAFE = "-P"
"""Python option that leaves the current folder off the path: a workspace may have its own `json.py`."""


def builtin_command(agent: AgentConfig) -> list[str]:
    """The command of the built-in agent, with its model settings."""
    command = [*_interpreter(agent), "-m", "dragoman.builtin"]
    for flag, value in (
        ("--model", agent.model),
        ("--base-url", agent.base_url),
        ("--context-window", agent.context_window),
        ("--sandbox-files", agent.sandbox_files if agent.sandbox_files != "copy" else None),
    ):
        if value:
            command += [flag, str(value)]
    return command


def python_command(agent: AgentConfig) -> list[str]:
    """The command of an agent that the user wrote in Python."""
    return [*_interpreter(agent), "-m", "dragoman.builtin.host", agent.entry or ""]


def _interpreter(agent: AgentConfig) -> list[str]:
    """The configured interpreter, which must have Dragoman installed, else ours."""
    return [*(agent.command or [sys.executable]), _SAFE]


HOSTED = {"builtin": builtin_command, "python": python_command}
"""By kind: builds the command of an agent that Dragoman hosts."""


def with_command(agent: AgentConfig) -> AgentConfig:
    """The agent with the command that starts it."""
    make = HOSTED.get(agent.kind)
    return agent if make is None else msgspec.structs.replace(agent, command=make(agent))


ADAPTED = frozenset({"claude", "codex"})
"""Kinds with their own protocol, which an adapter translates to ACP."""


def known_layer() -> Layer:
    """The known agents as the lowest configuration layer, so that a user can override single keys."""
    agents = {name: {"kind": known.kind, "command": list(known.command)} for name, known in KNOWN.items()}
    return Layer("known agent", {"agents": agents})


def find_agent(config: Config, name: str, environ: Mapping[str, str] | None = None) -> AgentConfig:
    """The agent called `name`, ready to start; raises `UnknownAgent`."""
    env = os.environ if environ is None else environ
    agent = config.agents.get(name)
    if agent is None:
        if not is_on(env, TEST_MODE):
            raise UnknownAgent(name, list(config.agents))
        agent = AgentConfig(command=[name, "--acp"])
    if is_on(env, DIRECT_SPAWN):
        agent = msgspec.structs.replace(agent, sandbox=None)
    return with_command(agent)


def locate(command: Sequence[str], path: str | None = None) -> Path | None:
    """The program that `command` starts, on `path` (default: PATH), or None."""
    if not command or not command[0]:
        return None
    program = command[0]
    if "/" in program:
        return _program(Path(program))
    search = os.environ.get("PATH", os.defpath) if path is None else path
    for directory in search.split(os.pathsep):
        if directory and (found := _program(Path(directory, program))) is not None:
            return found
    return None


def is_installed(agent: AgentConfig) -> bool:
    """Whether the agent's program is on this machine; a remote agent needs none."""
    return agent.kind == "remote" or locate(with_command(agent).command, agent.env.get("PATH")) is not None


def _program(file: Path) -> Path | None:
    return file if file.is_file() and os.access(file, os.X_OK) else None


def require(name: str, agent: AgentConfig) -> Path:
    """The path of the agent's program; raises `NotInstalled` with the command that installs it."""
    found = locate(agent.command, agent.env.get("PATH"))
    if found is None:
        raise NotInstalled(name, agent.command[0] if agent.command else "", install_hint(name, agent))
    return found


def install_hint(name: str, agent: AgentConfig) -> str | None:
    """How to install the agent; None unless it has the known agent's command."""
    known = KNOWN.get(name)
    if known is None or not known.install or list(known.command[:1]) != agent.command[:1]:
        return None
    return known.install
