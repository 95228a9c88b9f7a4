"""The web chat's page and files as a browser gets them; what they do is tested in `tests/web`."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from dragoman.server.asgi import HttpError, Request, Response
from dragoman.server.auth.admission import Refusal, Visit
from dragoman.server.pages import Pages, missing_page, refused_page


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """As `web/build.py` leaves it."""
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html><title>chat</title>")
    (tmp_path / "assets" / "index-abc.js").write_text("export {};")
    (tmp_path / "assets" / "index-abc.js.gz").write_bytes(gzip.compress(b"export {};"))
    (tmp_path / "assets" / "small.css").write_text("a{}")
    (tmp_path / "assets" / "notes.txt").write_text("not for browsers")
    return tmp_path


def asking(path: str, **headers: str) -> Request:
    named = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"method": "GET", "path": path, "query_string": b"", "headers": named}

    async def nothing(*_: object) -> dict[str, object]:
        return {}

    return Request(scope, nothing, nothing)  # type: ignore[arg-type]


def headers(response: Response) -> dict[str, str]:
    sent = response.all_headers()
    assert len(sent) == len({name for name, _ in sent}), "a header twice is two policies at once"
    return dict(sent)


async def test_the_page_may_load_nothing_from_elsewhere_and_run_nothing_inline(built: Path) -> None:
    response = await Pages(built).index(asking("/"))
    policy = headers(response)["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert headers(response)["cache-control"] == "no-store"


async def test_files_with_a_hash_in_their_name_are_kept_for_good(built: Path) -> None:
    response = await Pages(built).asset(asking("/assets/index-abc.js"))
    assert response.body == b"export {};"
    assert headers(response)["cache-control"] == "private, max-age=31536000, immutable"
    assert headers(response)["content-type"].startswith("text/javascript")
    assert "content-encoding" not in headers(response)


async def test_the_compressed_form_is_for_those_who_take_it(built: Path) -> None:
    pages = Pages(built)
    squeezed = await pages.asset(asking("/assets/index-abc.js", accept_encoding="gzip, deflate, br"))
    assert headers(squeezed)["content-encoding"] == "gzip"
    assert gzip.decompress(squeezed.body) == b"export {};"
    plain = await pages.asset(asking("/assets/small.css", accept_encoding="gzip"))
    assert plain.body == b"a{}"


@pytest.mark.parametrize(
    "name",
    ["../index.html", "../../pages.py", "nothing.js", "notes.txt", "a/b.js", ".vite", "", "index-abc.js.gz"],
)
async def test_nothing_but_built_files_is_served(built: Path, name: str) -> None:
    with pytest.raises(HttpError) as refused:
        await Pages(built).asset(asking(f"/assets/{name}"))
    assert refused.value.status == 404


async def test_an_installation_without_the_chat_says_how_to_get_it(tmp_path: Path) -> None:
    response = await Pages(tmp_path).index(asking("/"))
    assert response.status == 503
    assert b"make web" in response.body
    assert "style-src 'sha256-" in headers(response)["content-security-policy"]


def test_a_browser_without_a_token_gets_a_field_for_it() -> None:
    refusal = Refusal(401, "A token is needed: send `Authorization`.", (("www-authenticate", "Bearer"),))
    page = refused_page(Visit("GET", "/", "", {"accept": "text/html"}), refusal)
    assert page is not None
    assert page.status == 401
    assert b"<code>dragoman serve --url</code> prints it again" in page.body
    assert b"Authorization" not in page.body, "nobody types a header into a browser"
    assert b"`" not in page.body
    assert b'name="token"' in page.body
    assert headers(page)["www-authenticate"] == "Bearer"


def test_a_wrong_address_is_a_page_for_people_and_json_for_programs() -> None:
    nowhere = HttpError(404, "There is nothing here.")
    page = missing_page(Visit("GET", "/<s>/x", "", {"accept": "text/html,*/*"}), nowhere)
    assert page is not None
    assert page.status == 404
    assert b"<code>/&lt;s&gt;/x</code>" in page.body
    assert b'href="/"' in page.body
    assert "style-src 'sha256-" in headers(page)["content-security-policy"]
    assert missing_page(Visit("GET", "/x", "", {"accept": "*/*"}), nowhere) is None
    assert missing_page(Visit("GET", "/x", "", {"accept": "text/html"}), HttpError(409, "No.")) is None


@pytest.mark.parametrize(
    "visit",
    [
        Visit("GET", "/", "", {"accept": "application/json"}),
        Visit("GET", "/api", "", {"accept": "text/html"}),
    ],
)
def test_programs_get_their_error_as_before(visit: Visit) -> None:
    assert refused_page(visit, Refusal(401, "No.")) is None
