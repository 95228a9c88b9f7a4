"""`GET /api/usage` and `dragoman usage`: what turns used, from scripted agents, adds up everywhere."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.gateway_process import agent
from support.serve_process import ServeProcess

from .conftest import Serve
from .test_metrics import scrape

PRICES = {"usage": {"prices": {'"*"': {"input": 2.0, "output": 10.0, "cache_read": 0.5, "per": 1000}}}}


def told(amount: object, currency: object = "USD") -> str:
    cost = {"amount": amount, "currency": currency}
    return "update " + json.dumps({"sessionUpdate": "usage_update", "used": 1, "size": 9, "cost": cost})


def used(**tokens: object) -> str:
    return "result " + json.dumps({"stopReason": "end_turn", "usage": tokens})


async def session(client: httpx.AsyncClient, workspace: Path, **members: str) -> str:
    made = await client.post("/api/sessions", json={"cwd": str(workspace), **members})
    return str(made.headers["location"])


async def prompt(client: httpx.AsyncClient, place: str, *lines: str) -> None:
    answer = await client.post(f"{place}/prompt", json={"prompt": "\n".join(lines)})
    assert answer.status_code in (200, 502), answer.text


async def report(client: httpx.AsyncClient, **query: str) -> dict[str, Any]:
    answer = await client.get("/api/usage", params=query)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def usd(group: dict[str, Any], currency: str = "USD") -> float:
    return float(sum(cost["amount"] for cost in group["costs"] if cost["currency"] == currency))


async def dragoman_usage(home: Path, *arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "dragoman", "usage", *arguments),
        env={**os.environ, "DRAGOMAN_HOME": str(home)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()


async def test_it_adds_up_by_everything_over_rest_and_command_line(
    serve: Serve, workspace: Path, home: Path
) -> None:
    serving = await serve(agents={"scripted": agent(), "other": agent()})
    client = serving.http()
    one, two = await session(client, workspace), await session(client, workspace, agent="other")
    await prompt(client, one, told(0.1), told(0.25), used(inputTokens=10, outputTokens=5, totalTokens=15))
    await prompt(client, one, told(0.3), used(inputTokens=1, outputTokens=2, totalTokens=3))
    await prompt(client, two, told(7, "EUR"))
    await prompt(client, two, "no figures at all")
    await prompt(client, one, told(0.4), "error -32000 failed")
    for by in ("agent", "model", "session", "workspace", "identity", "day", "turn"):
        found = await report(client, by=by)
        groups, total = found["groups"], found["total"]
        assert (total["turns"], total.get("unknown"), total["totalTokens"]) == (5, 1, 18), by
        assert sum(group["turns"] for group in groups) == 5, by
        assert sum(group["totalTokens"] for group in groups) == 18, by
        for currency, amount in (("USD", 0.4), ("EUR", 7)):
            assert usd(total, currency) == amount
            assert round(sum(usd(group, currency) for group in groups), 9) == amount, by
        assert json.loads(await dragoman_usage(home, "--by", by, "--json")) == found
        rows = list(csv.DictReader(io.StringIO(await dragoman_usage(home, "--by", by, "--csv"))))
        assert sum(int(row["total"] or 0) for row in rows) == 18
    turns = (await report(client, by="turn"))["groups"]
    assert [usd(turn) for turn in turns] == [0.25, 0.05, 0, 0, 0.1]
    assert turns[-1]["turn"]["outcome"] == "error"
    agents = {group["key"]: group for group in (await report(client))["groups"]}
    assert (usd(agents["scripted"]), usd(agents["other"]), agents["other"]["unknown"]) == (0.4, 0, 1)
    table = await dragoman_usage(home)
    assert "7.0000 EUR + 0.4000 USD" in table.splitlines()[-1]
    series = await scrape(serving)
    assert series["dragoman_usage_tokens_total"]['agent="scripted",kind="input"'] == 11
    assert series["dragoman_usage_cost_total"]['agent="scripted",currency="USD",estimated="false"'] == 0.4
    assert series["dragoman_usage_unknown_turns_total"]['agent="other"'] == 1


async def test_spending_outlives_its_session_and_filters_hold(serving: ServeProcess, workspace: Path) -> None:
    client = serving.http()
    place = await session(client, workspace)
    await prompt(client, place, told(1))
    before = await report(client, by="session")
    assert (await client.delete(place)).status_code == 204
    assert (await report(client, by="session"))["total"] == before["total"]
    for query in (
        {"agent": "no"},
        {"since": "2999-01-01T00:00:00Z"},
        {"until": "2001-01-01"},
        {"identity": "x"},
    ):
        assert (await report(client, **query))["total"]["turns"] == 0
    assert (await report(client, session=place.rpartition("/")[2]))["total"]["turns"] == 1
    for bad in ({"by": "colour"}, {"since": "soon"}):
        assert (await client.get("/api/usage", params=bad)).status_code == 400


async def test_an_agent_that_counts_again_from_zero_is_neither_negative_nor_counted_twice(
    serve: Serve, workspace: Path
) -> None:
    serving = await serve()
    client = serving.http()
    place = await session(client, workspace)
    await prompt(client, place, told(0.5))
    await prompt(client, place, "crash")
    await prompt(client, place, told(0.2))
    await prompt(client, place, told(0.3))
    await prompt(client, place, "nothing new is told")
    found = await report(client, by="turn")
    assert [usd(group) for group in found["groups"]] == [0.5, 0, 0.2, 0.1, 0]
    assert usd(found["total"]) == 0.8
    assert found["total"]["unknown"] == 2


async def test_the_difference_survives_a_restart_of_the_gateway(serve: Serve, workspace: Path) -> None:
    serving = await serve()
    place = await session(serving.http(), workspace)
    await prompt(serving.http(), place, told(0.5))
    await serving.close()
    await serving.gateway.stop()
    client = (await serve()).http()
    await prompt(client, place, told(0.75))
    assert usd((await report(client))["total"]) == 0.75


async def test_prices_are_for_tokens_without_a_cost_and_marked(
    serve: Serve, workspace: Path, home: Path
) -> None:
    client = (await serve(**PRICES)).http()
    place = await session(client, workspace)
    usage = {"inputTokens": 100, "outputTokens": 10, "cachedReadTokens": 40, "totalTokens": 110}
    await prompt(client, place, used(**usage))  # the cached ones are a part of the input
    total = (await report(client))["total"]
    assert total["tokens"] == {"input": 60, "output": 10, "cacheRead": 40, "cacheWrite": 0, "thought": 0}
    assert total["costs"] == [{"currency": "USD", "amount": 0.24, "estimated": 0.24}]
    assert "~0.2400 USD" in await dragoman_usage(home)
    await prompt(client, place, told(1), used(**usage))  # of both turns: not estimated, and not twice
    assert (await report(client))["total"]["costs"] == [{"currency": "USD", "amount": 1.0, "estimated": 0.24}]


@pytest.mark.parametrize("amount", [-1, "1", None, True, 1e300, [], {}])
async def test_hostile_amounts_are_ignored(serving: ServeProcess, workspace: Path, amount: object) -> None:
    client = serving.http()
    place = await session(client, workspace)
    await prompt(client, place, told(0.5))
    await prompt(client, place, told(amount), used(inputTokens=-1, outputTokens="2", totalTokens=1e99))
    await prompt(client, place, told(0.6, "\x1b[31m"), used(inputTokens=10**30, outputTokens=1))
    await prompt(client, place, told(0.75))
    total = (await report(client))["total"]
    assert (usd(total), total["totalTokens"], total["unknown"]) == (0.75, 0, 2)


async def test_without_a_journal_there_is_no_ledger(serve: Serve) -> None:
    refused = await (await serve(sessions={"journal": False})).http().get("/api/usage")
    assert (refused.status_code, refused.json()["code"]) == (409, "no_ledger")
