"""Clients that watch sessions of a gateway from elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from support.gateway_process import GatewayProcess, Start
from support.rpc_peer import RpcPeer
from support.session_client import Watch, attach, resumable_agent


@pytest.fixture
async def watch(dragoman: Start) -> AsyncIterator[Watch]:
    """One more client, over the owner's socket; all of them leave before the gateways do."""
    peers: list[RpcPeer] = []

    async def connect(gateway: GatewayProcess, **capabilities: Any) -> RpcPeer:
        peers.append(await attach(gateway, **capabilities))
        return peers[-1]

    yield connect
    for peer in peers:
        await peer.close()


@pytest.fixture
async def gateway(dragoman: Start) -> GatewayProcess:
    """An initialized client of `dragoman acp scripted`, whose agent can resume."""
    started = await dragoman(agents={"scripted": resumable_agent()})
    await started.initialize()
    return started


@pytest.fixture
def signal_file(tmp_path: Path) -> Path:
    """For `wait-file`: the agent goes on once it exists."""
    return tmp_path / "go"
