"""REST under `/api`."""

from __future__ import annotations

from pathlib import Path

from support.serving import Serving


async def test_sessions_and_agents_can_be_read(serving: Serving, workspace: Path) -> None:
    socket = await serving.socket()
    await socket.initialize()
    session = await socket.new_session(workspace)
    await socket.prompt(session, "hello")
    client = serving.http()
    listed = (await client.get("/api/sessions")).json()["sessions"]
    assert [each["id"] for each in listed] == [session]
    one = (await client.get(f"/api/sessions/{session}")).json()
    assert (one["agent"], one["cwd"], one["live"], one["clients"]) == ("scripted", str(workspace), True, 1)
    agents = (await client.get("/api/agents")).json()["agents"]
    assert {"name": "scripted", "default": True} in agents


async def test_what_is_wrong_has_a_status(serving: Serving) -> None:
    client = serving.http()
    for path, status in (("/api/sessions/dgm_nobody", 404), ("/api/sessions?cursor=x", 400), ("/api", 404)):
        assert (await client.get(path)).status_code == status, path
    assert (await client.post("/api/sessions")).status_code == 405
    assert (await serving.http(token=False).get("/api/sessions")).status_code == 401
