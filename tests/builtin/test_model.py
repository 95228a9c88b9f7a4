"""Choosing a model, and what is said when it cannot be reached."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from dragoman.builtin.models.choice import ModelConfig, Models
from support.agents.builtin_process import Builtin, StartBuiltin, said
from support.agents.fake_llm import FakeLlm, text


@pytest.mark.parametrize(
    ("config", "environ", "expected"),
    [
        (ModelConfig(), {}, None),
        (ModelConfig(), {"ANTHROPIC_API_KEY": "k"}, "anthropic:claude-sonnet-5-5"),
        (ModelConfig(), {"OPENAI_API_KEY": "k"}, "openai:gpt-5.4"),
        (ModelConfig(), {"GEMINI_API_KEY": "k"}, "google:gemini-flash-latest"),
        (ModelConfig(), {"OLLAMA_HOST": "box:11434"}, "ollama:auto"),
        (ModelConfig("openai:x"), {"ANTHROPIC_API_KEY": "k"}, "openai:x"),
        (ModelConfig("claude-opus-5-5"), {}, "anthropic:claude-opus-5-5"),
        (ModelConfig("qwen3", "http://localhost:8000/v1"), {}, "openai-chat:qwen3"),
    ],
)
def test_configuration_wins_then_the_first_key(
    config: ModelConfig, environ: dict[str, str], expected: str | None
) -> None:
    assert Models(config, environ).default() == expected


async def test_the_model_is_an_option_of_the_session(agent: Builtin, llm: FakeLlm, workspace: Path) -> None:
    result = await agent.request("session/new", {"cwd": str(workspace), "mcpServers": []})
    [option] = [each for each in result["configOptions"] if each["id"] == "model"]
    assert option["currentValue"] == "none"
    assert option["category"] == "model"


async def test_an_ollama_server_is_found_by_its_host(
    builtin: StartBuiltin, llm: FakeLlm, workspace: Path
) -> None:
    agent = await builtin(env={"OLLAMA_HOST": llm.root.removeprefix("http://")})
    llm.tell(text("Local."))
    session = await agent.new_session(workspace)
    assert said(await agent.prompt(session, "hi")) == "Local."
    assert llm.requests[-1]["model"] == "first-model"


async def test_a_key_that_is_missing_is_told_and_the_session_goes_on(agent: Builtin, workspace: Path) -> None:
    session = await agent.new_session(workspace)
    await agent.prompt(session, "/model openai:gpt-5.4")
    turn = await agent.prompt(session, "hi")
    assert turn.error is not None
    assert "OPENAI_API_KEY" in turn.error.message
    await agent.prompt(session, "/model nonsense:model")
    unknown = await agent.prompt(session, "hi")
    assert unknown.error is not None
    assert "nonsense:model" in unknown.error.message
    assert "/run" in said(await agent.prompt(session, "/help"))


async def test_an_endpoint_that_is_down_is_told(builtin: StartBuiltin, workspace: Path) -> None:
    arguments = ("--model", "openai:x", "--base-url", "http://127.0.0.1:9/v1")
    agent = await builtin(*arguments)
    session = await agent.new_session(workspace)
    turn = agent.start_prompt(session, "hi")
    notice = await agent.next_message(lambda m: "Asking again" in str(m), timeout=60)
    assert "cannot be reached" in str(notice)
    agent.cancel(session)
    assert (await turn).stop_reason == "cancelled", "also while it waits to ask again"


async def test_initialize_does_not_wait_for_what_speaks_to_models(
    builtin: StartBuiltin, workspace: Path
) -> None:
    started = time.monotonic()
    agent = await builtin("--model", "openai:x", env={"PYTHONVERBOSE": "", "OPENAI_API_KEY": "k"})
    answered = time.monotonic() - started
    loaded = Path(f"/proc/{agent.process.pid}/maps").read_text()
    assert "pydantic_core" not in loaded, f"answered after {answered:.2f} s, with pydantic loaded"
