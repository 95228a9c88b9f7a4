"""How a browser is logged in: a cookie that opens nothing alone, and a secret that only this origin's page has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from playwright.async_api import expect

from support.serve_process import Refused, ServeProcess
from support.web.browser import Arrive, Person

from .conftest import Mortal

pytestmark = pytest.mark.asyncio(loop_scope="session")

SECRET = "Object.values(localStorage).join(' ')"
NEW_SESSION = "New session"


@dataclass
class Preview:
    """A program that the agent started on another port of this host, which notes what browsers send it."""

    port: int = 0
    heads: list[dict[str, str]] = field(default_factory=list)
    visited: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").strip().split("\r\n")
        if first.startswith("GET / "):
            pairs = (line.partition(": ") for line in lines)
            self.heads.append({name.lower(): value for name, _, value in pairs})
            self.visited.set()
        body = b"<title>preview</title>your preview"
        head = (
            b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
        )
        writer.write(head % len(body) + body)
        writer.close()


@pytest_asyncio.fixture(loop_scope="session")
async def preview() -> AsyncIterator[Preview]:
    made = Preview()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    yield made
    server.close()


async def is_in(person: Person) -> None:
    await expect(person.page.get_by_role("heading", name=NEW_SESSION)).to_be_visible()
    await expect(person.page.get_by_label("Folder", exact=True)).to_be_visible()
    await expect(person.page.get_by_role("radio").first).to_be_attached()  # the gateway has said hello


async def pair_of(person: Person) -> dict[str, str]:
    """What this person's page sends."""
    name = f"dragoman-{person.serving.port}"
    (cookie,) = [each for each in await person.page.context.cookies() if each.get("name") == name]
    secret = await person.page.evaluate("localStorage.getItem('dragoman.page')")
    return {"Cookie": f"{name}={cookie.get('value')}", "X-Dragoman-Page": secret}


async def test_a_link_of_an_agent_gives_its_program_a_cookie_that_opens_nothing(
    arrive: Arrive, workspace: Path, shared: ServeProcess, preview: Preview
) -> None:
    me = await arrive()
    await me.start_session(workspace, f"say preview ready at http://127.0.0.1:{preview.port}/")
    await me.ready()
    link = me.page.get_by_role("link", name=f"http://127.0.0.1:{preview.port}/", exact=True)
    await expect(link).to_have_attribute("rel", "noopener noreferrer")
    await me.sees("this machine")
    await me.picture("local-link")
    async with me.page.expect_popup():
        await link.click()
    async with asyncio.timeout(15):
        await preview.visited.wait()
    (head,) = preview.heads
    assert f"dragoman-{shared.port}=" in head["cookie"], "browsers do not tell ports apart"
    assert "referer" not in head
    secret = (await pair_of(me))["X-Dragoman-Page"]
    assert secret not in str(head)

    async with httpx.AsyncClient(base_url=shared.base, headers={"Cookie": head["cookie"]}) as thief:
        assert (await thief.post("/api/sessions", json={"cwd": str(workspace)})).status_code == 401
        assert (await thief.post("/api/tokens", json={"name": "mine", "role": "admin"})).status_code == 401
        assert (await thief.get("/api/agents")).status_code == 401
        assert (await thief.post("/acp", json={})).status_code == 401
        page = await thief.get("/", headers={"Accept": "text/html"})
        assert secret not in page.text + str(page.headers)
    for path in ("/bridge", "/acp"):
        with pytest.raises(Refused) as refused:
            await shared.socket(path, {"Cookie": head["cookie"]})
        assert refused.value.status == 401


async def test_the_secret_leaves_the_address_at_once(arrive: Arrive, shared: ServeProcess) -> None:
    me = await arrive()
    await is_in(me)
    secret = (await pair_of(me))["X-Dragoman-Page"]
    assert len(secret) >= 43
    assert me.page.url == f"{shared.base}/"
    assert secret not in await me.page.evaluate(
        "location.href + document.cookie + document.referrer + document.title"
    )
    assert await me.page.evaluate("history.length") <= 2, (
        "the address with the secret is no step to go back to"
    )
    asked: list[str] = []
    me.page.on("request", lambda request: asked.append(request.url))
    await me.page.reload()
    await is_in(me)
    assert asked and not any(secret in url or "token" in url for url in asked)


async def test_a_reload_and_another_tab_need_no_token(arrive: Arrive, shared: ServeProcess) -> None:
    me = await arrive()
    await is_in(me)
    await me.page.reload()
    await is_in(me)
    tab = Person(await me.page.context.new_page(), shared)
    await tab.page.goto(shared.base)
    await is_in(tab)
    again = await arrive(beside=me)  # the printed address once more: nobody else is logged out by that
    await is_in(again)
    await me.page.reload()
    await is_in(me)
    assert tab.complaints == []


async def test_a_restart_of_the_gateway_logs_nobody_out(arrive: Arrive, own: Mortal) -> None:
    me = await arrive(serving=own.serving)
    await is_in(me)
    await own.kill()
    await own.rise()
    await me.page.reload()
    await is_in(me)


async def test_a_page_that_has_only_the_cookie_says_how_to_come_in(
    arrive: Arrive, shared: ServeProcess
) -> None:
    me = await arrive()
    await is_in(me)
    await me.page.evaluate("localStorage.clear()")
    await me.page.goto(f"{shared.base}/#/s/some-session")
    await me.page.reload()
    await me.sees("This browser is not logged in.")
    await me.sees("dragoman serve --url")
    await me.picture("not-logged-in")
    await me.page.get_by_label("Token").fill(shared.token)
    await me.page.get_by_role("button", name="Enter", exact=True).click()
    await expect(me.page).to_have_url(f"{shared.base}/#/s/some-session")
    await expect(me.page.get_by_text("This browser is not logged in.")).to_have_count(0)
    await me.page.goto(f"{shared.base}/#/")
    await is_in(me)
    me.complaints.clear()  # the browser calls a 401 an error


async def test_logging_out_holds_for_all_tabs_and_at_the_gateway(
    arrive: Arrive, shared: ServeProcess
) -> None:
    me = await arrive()
    await is_in(me)
    tab = await arrive(beside=me)
    await is_in(tab)
    pair = await pair_of(me)
    other = await arrive()
    await is_in(other)
    await me.page.get_by_role("button", name="Log out").click()
    await expect(me.page.get_by_role("heading", name="Dragoman wants a token")).to_be_visible()
    await expect(tab.page.get_by_role("heading", name="Dragoman wants a token")).to_be_visible()
    await tab.sees("This browser is not logged in.")
    assert await tab.page.evaluate("localStorage.getItem('dragoman.page')") is None
    for path in ("/", "/api/agents"):
        assert (await shared.http(token=False).get(path, headers=pair)).status_code == 401
    await other.page.reload()
    await is_in(other)
    for person in (me, tab):
        person.complaints.clear()  # the browser calls a 401 an error


async def test_a_made_up_secret_in_the_address_logs_nobody_out(arrive: Arrive, shared: ServeProcess) -> None:
    me = await arrive()
    await is_in(me)
    await me.page.goto("about:blank")
    await me.page.goto(f"{shared.base}/#page=made-up")
    await is_in(me)
    assert "made-up" not in me.page.url
    await me.page.goto(f"{shared.base}/#page=made-up-again")  # in a page that is open already
    await expect(me.page).to_have_url(f"{shared.base}/")
    await me.page.reload()
    await is_in(me)
    me.complaints.clear()  # the browser calls a 401 an error


async def test_exports_are_fetched_with_the_secret(arrive: Arrive, workspace: Path) -> None:
    me = await arrive()
    await me.start_session(workspace, "say worth keeping")
    await me.ready()
    for form in ("Markdown", "NDJSON"):
        await me.page.get_by_role("button", name="Session actions").click()
        async with me.page.expect_download() as saving:
            await me.page.get_by_role("menuitem", name=f"Export as {form}").click()
        saved = await (await saving.value).path()
        assert "worth keeping" in saved.read_text()


async def test_addresses_of_the_gateway_that_are_no_chat_can_be_read(
    arrive: Arrive, shared: ServeProcess
) -> None:
    me = await arrive("/api/docs")
    assert me.page.url == f"{shared.base}/api/docs"
    await expect(me.page.get_by_role("heading", name="Dragoman API")).to_be_visible()
    assert (
        await me.page.evaluate("getComputedStyle(document.querySelector('table')).borderCollapse")
        == "collapse"
    )
    await me.page.get_by_role("link", name="OpenAPI 3.1").click()
    await me.sees('"openapi":"3.1.0"')
    await me.page.goto(f"{shared.base}/metrics")
    await me.sees("dragoman_")
    await me.page.evaluate("localStorage.clear()")
    await me.page.reload()
    await me.sees("This browser is not logged in.")
    me.complaints.clear()  # the browser calls a 401 an error


async def test_a_tab_that_is_logged_out_by_another_shows_nothing_of_a_session(
    arrive: Arrive, workspace: Path
) -> None:
    me = await arrive()
    await me.start_session(workspace, "say a secret plan")
    await me.sees("a secret plan")
    tab = await arrive(f"/#/s/{me.session_id}", beside=me)
    await tab.sees("a secret plan")
    place = me.session_id
    await tab.page.get_by_role("button", name="Log out").click()
    await expect(me.page.get_by_role("heading", name="Dragoman wants a token")).to_be_visible()
    await expect(me.page.get_by_text("a secret plan")).to_have_count(0)
    await me.page.get_by_label("Token").fill(me.serving.token)
    await me.page.get_by_role("button", name="Open").click()
    await me.sees("a secret plan")
    assert me.session_id == place
    for person in (me, tab):
        person.complaints.clear()  # the browser calls a 401 an error


async def test_a_wrong_token_is_called_wrong_and_leaves_the_address(
    arrive: Arrive, shared: ServeProcess
) -> None:
    me = await arrive("/healthz")
    await me.page.context.clear_cookies()
    await me.page.goto(f"{shared.base}/")
    assert await me.page.get_by_text("That token is not valid").count() == 0
    await me.page.get_by_label("Token").fill(shared.token[:-1])
    await me.page.get_by_role("button", name="Open").click()
    await me.sees("That token is not valid.")
    await expect(me.page).to_have_url(f"{shared.base}/")
    await me.page.go_back()
    assert shared.token[:-1] not in me.page.url
    await me.page.get_by_label("Token").fill(f"  {shared.base}/?token={shared.token}\n")
    await me.page.get_by_role("button", name="Open").click()
    await is_in(me)
    assert "token" not in me.page.url
    me.complaints.clear()  # the browser calls a 401 an error


async def test_the_field_in_the_page_takes_the_whole_address_too(arrive: Arrive, own: Mortal) -> None:
    me = await arrive(serving=own.serving)
    await is_in(me)
    await me.page.evaluate("localStorage.clear()")
    await me.page.reload()
    await me.sees("This browser is not logged in.")
    await me.page.get_by_label("Token").fill(f"{own.serving.base}/?token={own.serving.token}")
    await me.page.get_by_role("button", name="Enter").click()
    await is_in(me)
    me.complaints.clear()  # the browser calls a 401 an error
