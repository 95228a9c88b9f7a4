"""Chooses the model: by the configuration, the API keys in the environment, or the session; imports no SDK."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass

NONE = "none"
"""The option value for working without a model."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A model provider, and the environment variables that show that the user has access."""

    prefix: str
    title: str
    keys: tuple[str, ...]
    models: tuple[str, ...]
    """The first is the default."""


PROVIDERS = (
    Provider(
        "anthropic",
        "Anthropic",
        ("ANTHROPIC_API_KEY",),
        ("claude-sonnet-5-5", "claude-opus-5-5", "claude-haiku-5-5"),
    ),
    Provider("openai", "OpenAI", ("OPENAI_API_KEY",), ("gpt-5.4", "gpt-5.4-mini", "gpt-5.4-nano")),
    Provider(
        "google",
        "Google",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        ("gemini-flash-latest", "gemini-3.1-pro-preview", "gemini-flash-lite-latest"),
    ),
    Provider("ollama", "Ollama", ("OLLAMA_HOST", "OLLAMA_BASE_URL"), ("auto",)),
)
"""Tried in this order if no model is configured."""

KEYS = ", ".join(provider.keys[0] for provider in PROVIDERS[:2]) + f" or {PROVIDERS[2].keys[0]}"


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The model settings of `[agents.NAME]`."""

    model: str | None = None
    base_url: str | None = None
    context_window: int | None = None
    sandbox_files: str = "copy"
    """What sandbox mode works on: a `copy` of the workspace, or the `workspace`."""


class Models:
    """The models that a session can choose from."""

    def __init__(self, config: ModelConfig, environ: Mapping[str, str]) -> None:
        self.config = config
        self._environ = environ

    def default(self) -> str | None:
        """The model of a new session."""
        if self.config.model:
            return self.full_name(self.config.model)
        for provider in PROVIDERS:
            if self._has_key(provider):
                return f"{provider.prefix}:{provider.models[0]}"
        return None

    def missing(self) -> str:
        """What the default model still needs, in words; empty if it can be asked."""
        if not installed():
            return "install dragoman[agent]"
        name = self.default()
        if name is None:
            return f"set {KEYS}, or agents.builtin.model"
        for provider in PROVIDERS:
            if name.startswith(provider.prefix) and not self.config.base_url and provider.models != ("auto",):
                return "" if self._has_key(provider) else f"set {' or '.join(provider.keys)}"
        return ""  # a server of the user's own needs no key

    def full_name(self, given: str) -> str:
        """The model as `provider:name`; a bare name belongs to the configured server or to the provider that has it."""
        if ":" in given and given.partition(":")[0].isidentifier():
            return given
        if ":" in given and given.partition(":")[0].replace("-", "_").isidentifier():
            return given
        if self.config.base_url:
            return f"openai-chat:{given}"
        for provider in PROVIDERS:
            if given in provider.models or given.startswith(_FAMILIES.get(provider.prefix, "\0")):
                return f"{provider.prefix}:{given}"
        return f"openai:{given}"

    def offers(self, current: str | None) -> list[tuple[str, str]]:
        """Values and titles of the session's model option; the current model is always among them."""
        found: dict[str, str] = {}
        if self.config.model:
            found[self.full_name(self.config.model)] = self.config.model
        if current is not None:
            found.setdefault(current, current.partition(":")[2] or current)
        for provider in PROVIDERS:
            if self._has_key(provider):
                for name in provider.models:
                    title = f"{provider.title}: {'first model there' if name == 'auto' else name}"
                    found.setdefault(f"{provider.prefix}:{name}", title)
        return [*found.items(), (NONE, "No model: commands only")]

    def guidance(self) -> str:
        """Instructions for a user without a model on how to get one."""
        lines = []
        if not installed():
            lines.append("- Install what speaks to models: `pip install 'dragoman[agent]'`.")
        lines += [
            "- Set a key where you start Dragoman: `ANTHROPIC_API_KEY`, `OPENAI_API_KEY` or `GEMINI_API_KEY`.",
            "- Or name a local server in `config.toml` (`dragoman config path` says where it is):",
            "",
            "  ```toml",
            "  [agents.builtin]",
            '  model = "ollama:llama3.2"              # or openai:…, anthropic:…, google:…',
            '  base_url = "http://localhost:11434/v1"  # any OpenAI-compatible server: Ollama, llama.cpp, vLLM',
            "  ```",
            "",
            "Then start a new session, or pick one here with `/model PROVIDER:NAME`.",
        ]
        return "\n".join(lines)

    def _has_key(self, provider: Provider) -> bool:
        return any(self._environ.get(key) for key in provider.keys)


_FAMILIES = {"anthropic": "claude", "openai": "gpt", "google": "gemini"}


def installed() -> bool:
    """Whether the extra `dragoman[agent]` is installed."""
    return importlib.util.find_spec("pydantic_ai") is not None
