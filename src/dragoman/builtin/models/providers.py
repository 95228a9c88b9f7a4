"""Builds the `Llm` for the full name of a model."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Mapping

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model, infer_model

from dragoman.builtin.models.choice import ModelConfig
from dragoman.builtin.models.failures import ModelFailed, plain
from dragoman.builtin.models.llm import Llm

LISTING_SECONDS = 5.0
"""Time limit for a local server to list its models."""


def build(spec: str, config: ModelConfig, environ: Mapping[str, str] = os.environ) -> Llm:
    """The model by its full name; raises `ModelFailed` if it cannot be used."""
    provider, _, name = spec.partition(":")
    try:
        return Llm(_model(provider, name, spec, config.base_url, environ), spec, config.context_window)
    except UserError as error:
        raise ModelFailed(plain(f"{spec} cannot be used: {error}"), "model_config") from error
    except ImportError as error:
        raise ModelFailed(plain(f"{spec} needs a package: {error}"), "model_config") from error


def _model(provider: str, name: str, spec: str, base_url: str | None, environ: Mapping[str, str]) -> Model:
    if provider == "ollama":
        server = base_url or _ollama_url(environ)
        return _openai_chat(name if name != "auto" else _first_model(server), server, environ)
    if provider in ("openai", "openai-chat") and (base_url or environ.get("OPENAI_BASE_URL")):
        return _openai_chat(name, base_url or environ["OPENAI_BASE_URL"], environ)
    if provider == "openai-responses" and base_url:
        from pydantic_ai.models.openai import OpenAIResponsesModel
        from pydantic_ai.providers.openai import OpenAIProvider

        key = environ.get("OPENAI_API_KEY") or "none"
        return OpenAIResponsesModel(name, provider=OpenAIProvider(base_url=base_url, api_key=key))
    if provider == "anthropic" and base_url:
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        key = environ.get("ANTHROPIC_API_KEY", "none")
        return AnthropicModel(name, provider=AnthropicProvider(api_key=key, base_url=base_url))
    if provider == "google" and base_url:
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider

        key = environ.get("GEMINI_API_KEY") or environ.get("GOOGLE_API_KEY", "none")
        return GoogleModel(name, provider=GoogleProvider(api_key=key, base_url=base_url))
    return infer_model(spec)


def _openai_chat(name: str, base_url: str, environ: Mapping[str, str]) -> Model:
    """A model of any server with the Chat Completions API; for one without keys the SDK is given a made-up key."""
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.profiles.openai import OpenAIModelProfile
    from pydantic_ai.providers.openai import OpenAIProvider

    key = environ.get("OPENAI_API_KEY") or "none"
    # Without this, a stream truncated between two messages counts as a whole answer.
    profile = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
    provider = OpenAIProvider(base_url=base_url, api_key=key)
    return OpenAIChatModel(name, provider=provider, profile=profile)


def _ollama_url(environ: Mapping[str, str]) -> str:
    host = environ.get("OLLAMA_BASE_URL") or environ.get("OLLAMA_HOST") or "localhost:11434"
    url = (host if "://" in host else f"http://{host}").rstrip("/")
    return url if url.endswith("/v1") else f"{url}/v1"


def _first_model(base_url: str) -> str:
    """The first model that an OpenAI-compatible server lists."""
    try:
        with urllib.request.urlopen(f"{base_url.rstrip('/')}/models", timeout=LISTING_SECONDS) as response:
            listing = json.load(response)
        return str(listing["data"][0]["id"])
    except (OSError, ValueError) as error:
        raise ModelFailed(f"{base_url} cannot be reached: {error}.", "model_unreachable") from error
    except (KeyError, IndexError, TypeError) as error:
        raise ModelFailed(f"{base_url} has no model yet: pull one first.", "model_unknown") from error
