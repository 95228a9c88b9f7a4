"""Browsers' logins: how long they hold, and what is kept of them."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from dragoman.gateway.access.identity import Identity
from dragoman.server import limits
from dragoman.server.auth.credentials import Credentials
from dragoman.server.auth.logins import LIFETIME, USED_STEP, Logins
from dragoman.server.auth.named_tokens import TokenFile, digest

TOKEN = digest("a token")
DAY = 24 * 3600


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "logins.json"


def test_a_login_ends_after_thirty_days_without_use(clock: Clock) -> None:
    logins = Logins(clock=clock)
    pair = logins.begin(TOKEN)
    clock.now += LIFETIME - 1
    assert logins.find(pair.cookie) is not None
    clock.now += 1
    assert logins.find(pair.cookie) is None
    assert not logins.holds(digest(pair.cookie))
    logins.use(digest(pair.cookie))
    assert logins.find(pair.cookie) is None, "what has ended is not renewed"


def test_each_use_begins_the_thirty_days_again_also_over_restarts(clock: Clock, file: Path) -> None:
    pair = Logins(file, clock).begin(TOKEN)
    for _ in range(10):
        clock.now += 29 * DAY
        logins = Logins(file, clock)
        login = logins.find(pair.cookie)
        assert login is not None and login.has_page(pair.page)
        logins.use(login.cookie)


def test_use_is_written_down_once_an_hour(clock: Clock, file: Path) -> None:
    logins = Logins(file, clock)
    pair = logins.begin(TOKEN)
    before = file.read_bytes()
    clock.now += USED_STEP - 1
    logins.use(digest(pair.cookie))
    assert file.read_bytes() == before
    clock.now += 1
    logins.use(digest(pair.cookie))
    assert file.read_bytes() != before


def test_only_the_page_secret_of_that_cookie_fits() -> None:
    logins = Logins()
    one, other = logins.begin(TOKEN), logins.begin(TOKEN)
    login = logins.find(one.cookie)
    assert login is not None and login.has_page(one.page)
    for wrong in ("", other.page, one.cookie, one.page + "x", one.page.upper(), digest(one.page), "\ud800ü"):
        assert not login.has_page(wrong)
    for wrong in ("", one.page, digest(one.cookie), "x"):
        assert logins.find(wrong) is None


def test_a_browser_keeps_its_cookie_when_it_shows_the_same_token_again() -> None:
    logins = Logins()
    first = logins.begin(TOKEN)
    again = logins.begin(TOKEN, first.cookie)
    assert (again.cookie, again.page != first.page) == (first.cookie, True)
    login = logins.find(first.cookie)
    assert login is not None and login.has_page(first.page) and login.has_page(again.page)
    another = logins.begin(digest("another token"), first.cookie)
    assert another.cookie != first.cookie
    assert logins.begin(TOKEN, "made up").cookie != "made up"


def test_logins_and_secrets_are_bounded(clock: Clock) -> None:
    logins = Logins(clock=clock)
    first, other = logins.begin(TOKEN), logins.begin(digest("another token"))
    for _ in range(limits.MAX_LOGINS):
        clock.now += 1
        logins.begin(TOKEN)
    assert logins.find(first.cookie) is None, "the one longest unused"
    assert logins.find(other.cookie) is not None, "one token does not push another's browsers out"
    for _ in range(limits.MAX_PAGE_SECRETS):
        logins.begin(digest("another token"), other.cookie)
    login = logins.find(other.cookie)
    assert login is not None and len(login.pages) == limits.MAX_PAGE_SECRETS
    assert not login.has_page(other.page)


def test_the_file_is_private_and_has_only_hashes(file: Path) -> None:
    pair = Logins(file).begin(TOKEN)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert pair.cookie not in file.read_text() and pair.page not in file.read_text()
    file.chmod(0o644)
    assert Logins(file).find(pair.cookie) is not None
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b"{", b'{"logins": [1]}', b"\xff", b"[]"])
def test_a_broken_file_is_said_and_logs_browsers_out(
    file: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    pair = Logins(file).begin(TOKEN)
    file.write_bytes(content)
    logins = Logins(file)
    assert logins.find(pair.cookie) is None
    assert "log in again" in caplog.text
    assert logins.find(logins.begin(TOKEN).cookie) is not None


def test_a_folder_that_cannot_be_written_keeps_logins_as_long_as_the_process(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logins = Logins(tmp_path / "missing" / "logins.json")
    assert logins.find(logins.begin(TOKEN).cookie) is not None
    assert "cannot be stored" in caplog.text


def test_logins_end_with_their_token(tmp_path: Path, file: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    credentials = Credentials("the-instance", tokens, logins=Logins(file))
    _, secret = tokens.create("phone", "control")
    phone, instance = credentials.by_secret(secret), credentials.by_secret("the-instance")
    assert phone is not None and instance is not None
    of_phone, of_instance = credentials.log_in(phone, ""), credentials.log_in(instance, "")
    found = credentials.by_cookie(of_phone.cookie)
    assert found is not None and found[0] == phone and credentials.stays(found[0])
    tokens.revoke("phone")
    assert credentials.by_cookie(of_phone.cookie) is None and not credentials.stays(found[0])
    assert credentials.by_cookie(of_instance.cookie) is not None
    assert Logins(file).find(of_phone.cookie) is None, "nor is it kept"
    assert Credentials("another-instance", tokens, logins=Logins(file)).by_cookie(of_instance.cookie) is None


def test_logging_out_ends_one_login_and_not_the_token() -> None:
    credentials = Credentials("the-instance")
    instance = credentials.by_secret("the-instance")
    assert instance is not None
    one, other = (credentials.by_cookie(credentials.log_in(instance, "").cookie) for _ in range(2))
    assert one is not None and other is not None
    credentials.log_out(one[0])
    assert not credentials.stays(one[0]) and credentials.holds(one[0])
    assert credentials.stays(other[0]) and credentials.stays(instance)
    assert isinstance(one[0], Identity) and one[0] == other[0], "both are whose token it is"
