"""The connection to the gateway behind is cut in the middle of things, and nobody misses anything."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from support.gateway_process import GatewayProcess
from support.rpc_peer import is_request, is_update, text_of

from .conftest import Behind, Front, ProxyTo

pytestmark = pytest.mark.rule("G-130")


async def conversation(front: Front, url: str, workspace: Path) -> tuple[GatewayProcess, str]:
    client = await front(url)
    await client.initialize()
    return client, await client.new_session(workspace)


def numbers(client: GatewayProcess, session: str) -> list[int]:
    texts = (text_of(update) for update in client.of(session))
    return [int(text.split()[0]) for text in texts if text[:1].isdigit()]


async def test_a_flood_that_is_cut_three_times_arrives_once_and_in_order(
    behind: Behind, proxy_to: ProxyTo, front: Front, workspace: Path, scheme: str, tmp_path: Path
) -> None:
    far = await behind()
    proxy = await proxy_to(far)
    client, session = await conversation(front, f"{scheme}://127.0.0.1:{proxy.port}/acp", workspace)
    go = [tmp_path / f"go-{number}" for number in range(3)]
    script = "\n".join(f"flood 1000 100\nsay part {n}\nwait-file {file}" for n, file in enumerate(go))
    turn = client.start_prompt(session, f"{script}\nsay the end")
    for number, file in enumerate(go):
        await client.text(session, f"part {number}")
        proxy.cut()
        file.touch()
    done = await turn
    assert (done.stop_reason, done.texts[-1]) == ("end_turn", "the end")
    assert numbers(client, session) == list(range(1000)) * 3
    assert (await client.prompt(session, "say more")).texts == ["more"]
    assert not [u for u in client.of(session) if u["sessionUpdate"] == "user_message_chunk"]


async def test_a_turn_that_ends_meanwhile_is_answered(
    behind: Behind, proxy_to: ProxyTo, front: Front, workspace: Path, scheme: str, tmp_path: Path
) -> None:
    far = await behind()
    proxy = await proxy_to(far)
    client, session = await conversation(front, f"{scheme}://127.0.0.1:{proxy.port}/acp", workspace)
    ended = tmp_path / "ended"
    turn = client.start_prompt(session, f"say here\nwait-file {tmp_path / 'go'}\nsay gone\ntouch {ended}")
    await client.text(session, "here")
    proxy.stop_listening()
    (tmp_path / "go").touch()
    there = await far.socket()
    await there.initialize()
    async with asyncio.timeout(20):
        while True:
            [known] = (await there.request("session/list", {}))["sessions"]
            if ended.exists() and not known["_meta"]["dragoman"]["pending"]:
                break
    await proxy.listen()
    done = await turn
    assert (done.stop_reason, done.texts) == ("end_turn", ["here", "gone"])


async def test_a_prompt_that_never_arrived_is_sent_again(
    behind: Behind, proxy_to: ProxyTo, front: Front, workspace: Path
) -> None:
    far = await behind()
    proxy = await proxy_to(far)
    client, session = await conversation(front, f"ws://127.0.0.1:{proxy.port}/acp", workspace)
    await client.prompt(session, "say first")
    proxy.drop_upstream()
    turn = client.start_prompt(session, "say second")
    await client.request("session/list", {})  # the gateway in front has read the prompt
    proxy.cut()
    done = await turn
    assert (done.stop_reason, done.texts) == ("end_turn", ["second"])


async def test_an_open_question_stays_open(
    behind: Behind, proxy_to: ProxyTo, front: Front, workspace: Path, scheme: str
) -> None:
    far = await behind()
    proxy = await proxy_to(far)
    client, session = await conversation(front, f"{scheme}://127.0.0.1:{proxy.port}/acp", workspace)
    turn = client.start_prompt(session, "permission\nsay after")
    question = await client.next_message(is_request("session/request_permission"))
    proxy.stop_listening()
    option = question["params"]["options"][0]["optionId"]
    client.reply(question, {"outcome": {"outcome": "selected", "optionId": option}})
    await proxy.listen()
    done = await turn
    assert (done.stop_reason, done.texts[-1]) == ("end_turn", "after")
    asked = [message for message in client.received if message.get("method") == question["method"]]
    assert len(asked) == 1, "it is the same question"


async def test_a_cancel_while_away_arrives_later(
    behind: Behind, proxy_to: ProxyTo, front: Front, workspace: Path, scheme: str
) -> None:
    far = await behind()
    proxy = await proxy_to(far)
    client, session = await conversation(front, f"{scheme}://127.0.0.1:{proxy.port}/acp", workspace)
    turn = client.start_prompt(session, "sleep-until-cancel")
    await client.text(session, "sleeping")
    proxy.stop_listening()
    client.cancel(session)
    await proxy.listen()
    assert (await turn).stop_reason == "cancelled"


async def test_the_death_of_the_one_behind_interrupts_the_turn_and_nothing_else(
    behind: Behind, front: Front, workspace: Path, scheme: str
) -> None:
    far = await behind()
    client, session = await conversation(front, f"{scheme}://127.0.0.1:{far.port}/acp", workspace)
    turn = client.start_prompt(session, "flood 2000 100\nsay all\nsleep-until-cancel")
    await client.next_message(is_update(session))
    await far.gateway.kill()
    await behind(port=far.port)
    error = (await turn).error
    assert error is not None and "restarted during this turn" in error.message
    got = numbers(client, session)
    assert got == list(range(len(got)))
    assert (await client.prompt(session, "say again")).texts == ["again"]
