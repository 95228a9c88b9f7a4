"""Allowlists of the environment variables and login files of this machine that an agent in a box gets."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from pathlib import Path

from dragoman.agents.environment import inherited
from dragoman.agents.known import KNOWN
from dragoman.config.model import AgentConfig

GENERAL = (
    *("LANG", "LANGUAGE", "LC_*", "TZ", "TERM", "COLORTERM", "NO_COLOR"),
    # without these an agent behind a company's proxy has no network
    *(
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "no_proxy",
    ),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"),
)
"""Variables for every box; `*` is a wildcard."""

SAME_FILES = ("PATH", "HOME", "USER", "LOGNAME", "SHELL")
"""Variables for boxes that show this machine's programs under their own paths."""

TOOL = (
    *SAME_FILES,
    *(
        "XDG_*",
        "SSH_AUTH_SOCK",
        "DOCKER_*",
        "CONTAINER_*",
        "KUBECONFIG",
        "DBUS_SESSION_BUS_ADDRESS",
        "TMPDIR",
    ),
    *("CAI_*", "CONTAINAI_*"),
)
"""Variables for a tool that makes the box: it runs outside and needs its own settings."""

_OPENAI = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL")
_ANTHROPIC = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_MODEL")
_CLAUDE = (
    *(*_ANTHROPIC, "CLAUDE_CODE_OAUTH_TOKEN"),
    *("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX"),
)
_GOOGLE = ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_CLOUD_PROJECT", "GOOGLE_GENAI_USE_VERTEXAI")
_PROVIDERS = (*_OPENAI, *_ANTHROPIC, *_GOOGLE, "OPENROUTER_API_KEY", "GROQ_API_KEY", "MISTRAL_API_KEY")

LOGIN_VARIABLES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("claude", "claude-acp"), _CLAUDE),
    **dict.fromkeys(("codex", "codex-acp"), (*_OPENAI, "CODEX_API_KEY")),
    "gemini": _GOOGLE,
    "qwen": (*_OPENAI, "DASHSCOPE_API_KEY"),
    "copilot": ("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN"),
    "cursor": ("CURSOR_API_KEY",),
    "auggie": ("AUGMENT_SESSION_AUTH",),
    "kimi": ("KIMI_API_KEY", "MOONSHOT_API_KEY"),
    "droid": ("FACTORY_API_KEY",),
    "vibe": ("MISTRAL_API_KEY",),
    "junie": ("JUNIE_API_KEY",),
    "kiro": ("KIRO_API_KEY",),
    **dict.fromkeys(("opencode", "goose", "cline", "kilo", "pi", "builtin"), _PROVIDERS),
}
"""By agent: the variables that hold its credentials."""

LOGIN_FILES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("claude", "claude-acp"), ("~/.claude/.credentials.json",)),
    **dict.fromkeys(("codex", "codex-acp"), ("~/.codex/auth.json",)),
    "gemini": ("~/.gemini/oauth_creds.json", "~/.gemini/google_accounts.json"),
    "opencode": ("~/.local/share/opencode/auth.json",),
    "qwen": ("~/.qwen/oauth_creds.json",),
    "goose": ("~/.config/goose/config.yaml", "~/.config/goose/secrets.yaml"),
    "auggie": ("~/.augment/session.json",),
    "kilo": ("~/.local/share/kilo/auth.json",),
    "pi": ("~/.pi/agent/auth.json",),
    "vibe": ("~/.vibe/.env",),
}
"""By agent: the files that hold its credentials and nothing that the box should hide."""

_BY_PROGRAM = {Path(known.command[0]).name: name for name, known in KNOWN.items() if known.command}


def allowed(environ: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """The variables of `environ` that match one of the names.

    A pattern such as `*` does not match the gateway's own secrets: these must be named in full.
    """
    patterns = list(names)
    named = {name: environ[name] for name in patterns if name in environ}
    matching = {
        name: value
        for name, value in inherited(environ).items()
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
    }
    return {**matching, **named}


def login_of(name: str, agent: AgentConfig) -> str:
    """The key of an agent in the login tables: found by its kind, then its program, else its name."""
    if agent.kind in LOGIN_VARIABLES:
        return agent.kind
    return _BY_PROGRAM.get(Path(agent.command[0]).name, name) if agent.command else name


def login_files(agent: str, configured: list[str] | None) -> list[Path]:
    """The existing login files: the configured ones, else the agent's default ones."""
    wanted = LOGIN_FILES.get(agent, ()) if configured is None else configured
    return [path for path in (Path(text).expanduser() for text in wanted) if path.is_file()]
