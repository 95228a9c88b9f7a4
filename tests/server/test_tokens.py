"""Named tokens: what is kept of them, and what opens the door."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from dragoman.atomic_file import locked
from dragoman.config.errors import ConfigError
from dragoman.config.model import QuotaConfig
from dragoman.gateway.access.identity import LOCAL, Identity, Role
from dragoman.gateway.access.rate_limit import RateLimit
from dragoman.server.auth import named_tokens
from dragoman.server.auth.admission import Admission, Refusal, Visit
from dragoman.server.auth.credentials import Credentials
from dragoman.server.auth.named_tokens import TokenFile
from dragoman.wire.errors import RpcError

INSTANCE = "the-token-of-the-instance"


@pytest.fixture
def file(tmp_path: Path) -> TokenFile:
    return TokenFile(tmp_path / "tokens.json")


def test_the_file_is_private_and_has_no_secret_in_it(file: TokenFile) -> None:
    _, secret = file.create("phone", "observe")
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    assert secret not in file.path.read_text()
    assert len(secret) > 40


def test_a_secret_opens_as_its_role_until_it_is_revoked(file: TokenFile) -> None:
    credentials = Credentials(INSTANCE, file)
    _, secret = file.create("phone", "observe")
    identity = credentials.by_secret(secret)
    assert identity is not None
    assert (identity.name, identity.role) == ("phone", Role.OBSERVE)
    assert credentials.holds(identity)
    file.revoke("phone")
    assert credentials.by_secret(secret) is None
    assert not credentials.holds(identity)


def test_a_later_token_of_the_same_name_is_another(file: TokenFile) -> None:
    credentials = Credentials(INSTANCE, file)
    _, first = file.create("phone", "control")
    old = credentials.by_secret(first)
    file.revoke("phone")
    _, second = file.create("phone", "control")
    new = credentials.by_secret(second)
    assert old is not None and new is not None and old != new
    assert not credentials.holds(old)


def test_a_lock_that_is_held_for_long_is_an_error_that_names_its_holder(
    file: TokenFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, secret = file.create("phone", "control")
    monkeypatch.setattr(named_tokens, "LOCK_SECONDS", 0.05)
    held = locked(file.path.with_suffix(".lock"), 1)
    with held, pytest.raises(ConfigError, match=r"tokens\.lock for 0\.05 s") as failed:
        file.revoke("phone")
    assert f"the process {os.getpid()}" in str(failed.value) or "another process" in str(failed.value)
    assert Credentials(INSTANCE, file).by_secret(secret) is not None


def test_a_token_ends_by_itself(file: TokenFile) -> None:
    credentials = Credentials(INSTANCE, file)
    token, secret = file.create("guest", "control", lifetime=3600)
    identity = credentials.by_secret(secret)
    assert identity is not None
    assert token.expired(time.time() + 3601) and not token.expired(time.time())
    _, ended = file.create("gone", "control", lifetime=-1)
    assert credentials.by_secret(ended) is None
    file.create("gone", "observe")  # the name of one that has ended is free


def test_the_instance_and_local_programs_are_admin(file: TokenFile) -> None:
    credentials = Credentials(INSTANCE, file)
    identity = credentials.by_secret(INSTANCE)
    assert identity is not None and identity.role is Role.ADMIN
    assert credentials.holds(identity) and credentials.holds(LOCAL)


@pytest.mark.parametrize("name", ["", "a b", "-x", "x" * 65, "admin", "local", "a\nb"])
def test_names_that_cannot_be_are_refused(file: TokenFile, name: str) -> None:
    with pytest.raises(ConfigError):
        file.create(name, "control")


def test_a_name_is_given_once(file: TokenFile) -> None:
    file.create("phone", "control")
    with pytest.raises(ConfigError, match="revoke it first"):
        file.create("phone", "admin")
    with pytest.raises(ConfigError, match="dragoman tokens list"):
        file.revoke("fone")


def test_a_file_that_breaks_changes_nothing_and_is_said(
    file: TokenFile, caplog: pytest.LogCaptureFixture
) -> None:
    _, secret = file.create("phone", "control")
    credentials = Credentials(INSTANCE, file)
    file.path.write_text('{"tokens": [')
    assert credentials.by_secret(secret) is not None
    assert "keeping the previous tokens" in caplog.text
    with pytest.raises(ConfigError):
        Credentials(INSTANCE, file)  # but nobody starts with one


def test_a_file_that_others_can_read_is_made_private(file: TokenFile) -> None:
    file.create("phone", "control")
    file.path.chmod(0o644)
    file.read()
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600


def visit(secret: str, **headers: str) -> Visit:
    named = {"host": "localhost", "authorization": f"Bearer {secret}", **headers}
    return Visit("POST", "/acp", "", named)


def test_a_browser_gets_a_cookie_of_its_own_token(file: TokenFile) -> None:
    _, secret = file.create("phone", "observe")
    admission = Admission(Credentials(INSTANCE, file), cookie="c")
    page = admission.check(
        Visit("GET", "/", f"token={secret}", {"host": "localhost", "accept": "text/html"}, secure=True)
    )
    assert isinstance(page, Refusal) and page.status == 303
    set_cookie = dict(page.headers)["set-cookie"]
    assert secret not in set_cookie and file.read()[0].hash not in set_cookie
    assert {"HttpOnly", "SameSite=Lax", "Secure"} <= {part.strip() for part in set_cookie.split(";")}
    with_cookie = Visit("GET", "/", "", {"host": "localhost", "cookie": set_cookie.partition(";")[0]})
    admitted = admission.check(with_cookie)
    assert isinstance(admitted, Identity) and admitted.name == "phone"
    file.revoke("phone")
    assert isinstance(admission.check(with_cookie), Refusal)


@pytest.mark.parametrize(
    ("allow_from", "deny_by_default", "admitted"),
    [
        ([], False, {"admin", "phone"}),
        (["phone"], False, {"phone"}),
        (["phone"], True, {"phone"}),
        (["admin"], True, {"admin"}),
        ([], True, set()),
    ],
)
def test_allow_from_and_deny_by_default_say_whose_token_may(
    file: TokenFile, allow_from: list[str], deny_by_default: bool, admitted: set[str]
) -> None:
    _, secret = file.create("phone", "control")
    credentials = Credentials(INSTANCE, file)
    admission = Admission(
        credentials, cookie="c", allow_from=frozenset(allow_from), deny_by_default=deny_by_default
    )
    for name, shown in (("admin", INSTANCE), ("phone", secret)):
        answer = admission.check(visit(shown))
        if name in admitted:
            assert isinstance(answer, Identity) and answer.name == name
        else:
            assert isinstance(answer, Refusal) and answer.status == 403
            assert name in answer.message and "serve." in answer.message
    assert isinstance(wrong := admission.check(visit("wrong")), Refusal) and wrong.status == 401


# -- how fast


def test_a_meter_lets_a_minutes_worth_through_and_then_says_when() -> None:
    now = 100.0
    rate_limit = RateLimit(QuotaConfig(requests_per_minute=3), lambda: now)
    for _ in range(3):
        rate_limit.request()
    with pytest.raises(RpcError) as refused:
        rate_limit.request()
    assert refused.value.data == {"reason": "quota", "limit": "requests_per_minute", "retryAfter": 20}
    now += 20
    rate_limit.request()
    with pytest.raises(RpcError):
        rate_limit.request()
    now += 3600
    for _ in range(3):
        rate_limit.request()
    with pytest.raises(RpcError):  # a quiet hour is not saved up
        rate_limit.request()


def test_a_meter_counts_bytes_also_those_that_come_late() -> None:
    now = 0.0
    rate_limit = RateLimit(QuotaConfig(bytes_per_minute=600), lambda: now)
    rate_limit.request()
    rate_limit.received(1200)
    with pytest.raises(RpcError) as refused:
        rate_limit.request()
    assert refused.value.data["limit"] == "bytes_per_minute"
    assert refused.value.data["retryAfter"] == 61
    now += 61
    rate_limit.request(10)


def test_a_token_has_limits_of_its_own_over_the_defaults(file: TokenFile) -> None:
    _, secret = file.create("phone", "control", quotas={"turns": 1})
    credentials = Credentials(INSTANCE, file, QuotaConfig(turns=9, sessions=8))
    identity = credentials.by_secret(secret)
    assert identity is not None
    assert (identity.quota.turns, identity.quota.sessions) == (1, 8)
    assert credentials.rate_limit(identity) is credentials.rate_limit(identity)


def test_changing_the_file_is_noticed_also_within_one_tick_of_its_clock(file: TokenFile) -> None:
    _, secret = file.create("phone", "control")
    credentials = Credentials(INSTANCE, file)
    moment = file.path.stat().st_mtime_ns
    file.revoke("phone")
    os.utime(file.path, ns=(moment, moment))
    assert credentials.by_secret(secret) is None
