"""What a person reads when a remote agent cannot be reached."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.gateway_process import Start
from support.rpc_peer import RpcFailure

from .conftest import TOKEN, Behind, Front


async def said(front: Front, url: str, **settings: Any) -> str:
    """Why a client of this agent is refused."""
    client = await front(url, **settings)
    with pytest.raises(RpcFailure) as failure:
        await client.initialize()
    assert failure.value.data["reason"] == "agent_unavailable"
    return failure.value.message


async def test_each_wrong_setting_says_what_to_do(
    behind: Behind, dragoman: Start, workspace: Path, tmp_path: Path
) -> None:
    far = await behind(serve=certificate(tmp_path))
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        free = nobody.getsockname()[1]
    (tmp_path / "wrong").write_text("wrong")
    here, good = f"127.0.0.1:{far.port}", {"ca": str(tmp_path / "cert.pem"), "token": "env:FAR_TOKEN"}
    rows: dict[str, tuple[str, dict[str, str], str]] = {
        "fine": (f"{here}/acp", good, ""),
        "nobody": (f"127.0.0.1:{free}/acp", good, f"s://127.0.0.1:{free}/acp: start `dragoman serve`"),
        "stranger": (f"{here}/acp", {"token": good["token"]}, "is not trusted"),
        "nowhere": (f"{here}/nothing", good, "there is no agent at this path (404)"),
        "token": (f"{here}/acp", {**good, "token": f"file:{tmp_path}/wrong"}, "a valid token (401)"),
        "unset": (f"{here}/acp", {**good, "token": "env:NOT_SET"}, "NOT_SET, which is not set"),
        "other": (f"{here}/healthz", good, "it is usually /acp"),
    }
    agents = {
        f"{name}-{scheme}": {"kind": "remote", "url": f"{scheme}s://{place}", **settings}
        for name, (place, settings, _) in rows.items()
        for scheme in ("ws", "http")
    }
    client = await dragoman("acp", agents=agents, env={"FAR_TOKEN": TOKEN})
    await client.initialize()
    for name in agents:
        new = {"cwd": str(workspace), "mcpServers": [], "_meta": {"dragoman": {"agent": name}}}
        answer = await client.request_raw("session/new", new)
        expected = rows[name.rpartition("-")[0]][2]
        if not expected:
            assert "result" in answer
            continue
        message = answer["error"]["message"]
        assert expected in message
        assert message.startswith(f"The agent {name} cannot be reached: ")


@pytest.mark.parametrize("scheme", ["wss", "https"])
async def test_tls_where_there_is_none(behind: Behind, front: Front, scheme: str) -> None:
    far = await behind()
    assert "does not answer with TLS" in await said(front, f"{scheme}://127.0.0.1:{far.port}/acp")


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"url": "ftp://x/acp"}, "agents.far.url: expected ws://HOST/acp"),
        ({"url": "ws://box.example/acp"}, "agents.far.url: everything, the token too"),
        ({"url": "wss://me:secret@box.example/acp"}, "agents.far.url: a password does not belong"),
        (
            {"url": "wss://box.example/acp", "token": "the-secret-itself"},
            "agents.far.token: expected env:NAME",
        ),
        ({"url": "wss://box.example/acp", "sandbox": "local"}, "agents.far.sandbox: a remote agent runs"),
        ({}, "agents.far.url"),
    ],
)
async def test_a_wrong_configuration_is_named(
    dragoman: Start, settings: dict[str, Any], expected: str
) -> None:
    gateway = await dragoman("acp", "far", agents={"far": {"kind": "remote", **settings}})
    assert await gateway.wait_exit() == 2
    assert expected in gateway.stderr
    assert "secret" not in gateway.stderr.replace("not the secret itself", "")


def certificate(folder: Path) -> dict[str, str]:
    """A certificate for 127.0.0.1 that is its own authority."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
            *("-nodes", "-keyout", str(key), "-out", str(cert), "-days", "2", "-subj", "/CN=127.0.0.1"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
    )
    return {"tls_cert": str(cert), "tls_key": str(key)}
