"""`GET /api/search`."""

from __future__ import annotations

from pathlib import Path

from support.serve_process import ServeProcess

from .conftest import Serve


async def test_what_was_said_is_found(serving: ServeProcess, workspace: Path) -> None:
    client = serving.http()
    place = (await client.post("/api/sessions", json={"cwd": str(workspace)})).headers["location"]
    await client.post(f"{place}/prompt", json={"prompt": "say a needle in a haystack"})
    for _ in range(20):  # the index may be read before the turn's end is in the directory
        found = (await client.get("/api/search", params={"q": '"needle in"', "limit": "1"})).json()
        if found["hits"]:
            break
    [hit] = found["hits"]
    assert (hit["sessionId"], hit["by"]) == (place.rpartition("/")[2], "agent")
    assert "needle in" in hit["text"]
    assert (await client.get("/api/search", params={"q": "needle", "agent": "other"})).json()["hits"] == []
    assert (await client.delete(place)).status_code == 204
    assert (await client.get("/api/search", params={"q": "needle"})).json()["hits"] == []


async def test_bad_requests_are_explained(serving: ServeProcess) -> None:
    client = serving.http()
    for query in (
        {},
        {"q": "*"},
        {"q": "x" * 2000},
        {"q": "a", "since": "now"},
        {"q": "a", "order": "z"},
        {"q": "a", "limit": "0"},
    ):
        refused = await client.get("/api/search", params=query)
        assert refused.status_code == 400, query


async def test_without_an_index_it_is_a_conflict(serve: Serve) -> None:
    serving = await serve(sessions={"search": False})
    refused = await serving.http().get("/api/search", params={"q": "word"})
    assert (refused.status_code, refused.json()["code"]) == (409, "no_search")
