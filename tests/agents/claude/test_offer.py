"""A new session of Claude Code is answered with what it offered last time, and corrected when it has told us again."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.agents.claude.agent import MOST_OFFERS, Offer
from support.gateway_process import GatewayProcess, Start
from support.rpc_peer import RpcFailure, is_update

SCRIPTED = Path(__file__).parents[2] / "support" / "agents" / "scripted_claude.py"
BOTH, ONE = {"models": ["default", "haiku"]}, {"models": ["default"]}


class Claude:
    """A `claude` that begins to speak when it is told what to offer."""

    def __init__(self, start: Start, folder: Path) -> None:
        self._start = start
        self._folder = folder
        self._file = folder / "offer.json"

    def offers(self, offer: dict[str, Any] | None) -> None:
        self._file.unlink(missing_ok=True)
        if offer is not None:
            half = self._file.with_suffix(".half")
            half.write_text(json.dumps(offer))
            os.replace(half, self._file)

    async def gateway(self) -> GatewayProcess:
        command = [sys.executable, "-S", "-E", str(SCRIPTED), "--x-offer", str(self._file)]
        env = {"CLAUDE_CONFIG_DIR": str(self._folder / "claude")}
        table = {"kind": "claude", "command": command, "env": env}
        gateway = await self._start("acp", "claude", agents={"claude": table})
        await gateway.initialize(clientCapabilities={"_meta": {"dragoman": {"models": True}}})
        return gateway


@pytest.fixture
async def claude(dragoman: Start, tmp_path: Path, workspace: Path) -> Claude:
    """One that has been started before, and offered two models."""
    known = Claude(dragoman, tmp_path)
    known.offers(BOTH)
    gateway = await known.gateway()
    await gateway.new_session(workspace)
    known.offers(None)
    return known


async def new_session(gateway: GatewayProcess, workspace: Path) -> tuple[str, list[str]]:
    """Its id and its models."""
    told = await gateway.request("session/new", {"cwd": str(workspace), "mcpServers": []})
    return told["sessionId"], [model["modelId"] for model in told["models"]["availableModels"]]


async def test_a_session_does_not_wait_for_it(claude: Claude, workspace: Path) -> None:
    gateway = await claude.gateway()
    session, models = await new_session(gateway, workspace)
    assert models == BOTH["models"]
    running = gateway.start_prompt(session, "Hello")
    claude.offers(BOTH)
    await gateway.next_message(is_update(session, "available_commands_update"))
    assert "".join((await running).texts) == "Hello"


async def test_what_it_offers_now_is_told_and_remembered(claude: Claude, workspace: Path) -> None:
    gateway = await claude.gateway()
    session, models = await new_session(gateway, workspace)
    assert models == BOTH["models"]
    claude.offers(ONE)
    told = (await gateway.next_message(is_update(session, "config_option_update")))["params"]["update"]
    options = {each["id"]: each for each in told["configOptions"]}
    assert [each["value"] for each in options["model"]["options"]] == ONE["models"]
    assert (await new_session(gateway, workspace))[1] == ONE["models"]


async def test_a_choice_waits_for_it(claude: Claude, workspace: Path) -> None:
    gateway = await claude.gateway()
    session, _ = await new_session(gateway, workspace)
    chosen = gateway.start_request("session/set_model", {"sessionId": session, "modelId": "haiku"})
    claude.offers(BOTH)
    assert "result" in await gateway.response(chosen)
    turn = await gateway.prompt(session, "report")
    assert json.loads("".join(turn.texts).removeprefix("report "))["model"] == "claude-haiku-4-5"


async def test_a_turn_that_waits_for_it_is_cancelled(claude: Claude, workspace: Path) -> None:
    gateway = await claude.gateway()
    session, _ = await new_session(gateway, workspace)
    running = gateway.start_prompt(session, "Hello")
    gateway.cancel(session)
    claude.offers(BOTH)
    assert (await running).stop_reason == "cancelled"
    assert (await gateway.prompt(session, "Once more")).stop_reason == "end_turn"


async def test_one_that_does_not_start_any_more_says_why_and_comes_back(
    claude: Claude, workspace: Path
) -> None:
    gateway = await claude.gateway()
    session, _ = await new_session(gateway, workspace)
    running = gateway.start_prompt(session, "Hello")
    claude.offers({"last words": "settings.json: unexpected comma"})
    failed = (await running).error
    assert failed is not None
    assert "unexpected comma" in failed.message
    with pytest.raises(RpcFailure, match="unexpected comma"):
        await new_session(gateway, workspace)
    claude.offers(BOTH)
    assert "".join((await gateway.prompt(session, "Hello")).texts) == "Hello"


async def test_a_session_that_is_closed_meanwhile_is_gone(claude: Claude, workspace: Path) -> None:
    gateway = await claude.gateway()
    session, _ = await new_session(gateway, workspace)
    await gateway.request("session/close", {"sessionId": session})
    claude.offers(BOTH)
    other, _ = await new_session(gateway, workspace)
    assert (await gateway.prompt(other, "Hello")).stop_reason == "end_turn"
    assert "did not start" not in gateway.stderr


def test_another_version_or_login_offers_something_else(tmp_path: Path) -> None:
    def offer(version: str, **environ: str) -> Offer:
        made = Offer(tmp_path, ["claude"], environ)
        made.is_of(version)
        return made

    offer("2.1", HOME="/home/ada").keep(
        {"models": [{"value": "opus"}], "account": {"email": "ada@example.org"}}
    )
    assert offer("2.1", HOME="/home/ada").get() == {"models": [{"value": "opus"}]}
    assert offer("2.2", HOME="/home/ada").get() is None
    assert offer("2.1", HOME="/home/bob").get() is None
    assert "ada@" not in "".join(file.read_text() for file in tmp_path.iterdir())


def test_only_so_many_are_kept(tmp_path: Path) -> None:
    offers = [Offer(tmp_path, ["claude"], {}) for _ in range(2 * MOST_OFFERS)]
    for number, offer in enumerate(offers):
        offer.is_of(f"2.{number}")
        offer.keep({"models": [{"value": "opus"}]})
    assert [offer.get() is not None for offer in offers] == [False] * MOST_OFFERS + [True] * MOST_OFFERS
