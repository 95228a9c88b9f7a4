"""No secret of an address or a command line is shown."""

from __future__ import annotations

import time

import pytest

from dragoman.masking import MASK, mask, mask_setting, mask_text, mask_words

SECRET = "s3cr3t"


@pytest.mark.parametrize(
    "url",
    [
        f"wss://me:{SECRET}@host/acp",
        f"wss://{SECRET}@host/acp",
        f"wss://me:a@b@{SECRET}@host/acp",
        f"https://host/acp?token={SECRET}",
        f"https://host/acp?a=1&api_key={SECRET}&b=2",
        f"https://host/acp?a=1;accessToken={SECRET}",
        f"https://host/acp#access_token={SECRET}",
        f"https://host/acp?t%6Fken={SECRET}",
        f"HTTPS://host?KEY={SECRET}",
        f"https://host/acp?X-Amz-Signature={SECRET}",
        f"postgres://me:{SECRET}@host:5432/db",
    ],
)
def test_an_address_keeps_its_secrets(url: str) -> None:
    for text in (url, f"cannot reach {url}: refused", f'"{url}"'):
        assert SECRET not in mask(text)
        assert MASK in mask(text)
        assert "host" in mask(text)
        assert SECRET not in mask_setting(text)


def test_what_is_no_secret_stays() -> None:
    link = "https://login.example/authorize?client_id=5&redirect_uri=http://127.0.0.1:1/x&state=6 (open it)"
    assert mask(link) == link
    assert mask("no address: a@b ?token=x") == "no address: a@b ?token=x"
    assert mask("wss://host:8420/acp") == "wss://host:8420/acp"


def test_a_setting_shows_no_value_at_all() -> None:
    assert mask_setting(f"wss://host/acp?room={SECRET}&x=1") == f"wss://host/acp?room={MASK}&x={MASK}"
    assert mask_setting(f"wss://host/acp?{SECRET}") == f"wss://host/acp?{MASK}"
    assert mask_setting("wss://host/acp") == "wss://host/acp"


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["x", "--token", SECRET, "--acp"], ["x", "--token", MASK, "--acp"]),
        (["x", f"--api-key={SECRET}"], ["x", f"--api-key={MASK}"]),
        (["env", f"OPENAI_API_KEY={SECRET}", "x"], ["env", f"OPENAI_API_KEY={MASK}", "x"]),
        (["run", f"--env=MY_SECRET={SECRET}"], ["run", f"--env=MY_SECRET={MASK}"]),
        (["x", "-H", f"Authorization: Bearer {SECRET}"], ["x", "-H", f"Authorization: {MASK}"]),
        (["x", f"--url=wss://u:{SECRET}@h/?a={SECRET}"], ["x", f"--url=wss://{MASK}@h/?a={MASK}"]),
        (["x", f"https://h/?token={SECRET}"], ["x", f"https://h/?token={MASK}"]),
        (["gemini", "--acp", "--model", "a:b", "k=v"], ["gemini", "--acp", "--model", "a:b", "k=v"]),
        (["x", "--keyboard", "de", "--monkey", "y"], ["x", "--keyboard", "de", "--monkey", "y"]),
    ],
)
def test_a_command_line_keeps_its_secrets(words: list[str], shown: list[str]) -> None:
    assert mask_words(words) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"apiKey":"abc def","code":"ENOENT"}', '{"apiKey":"********","code":"ENOENT"}'),
        ('{"details":"{\\"token\\":\\"abc\\"}"}', '{"details":"{\\"token\\":\\"********\\"}"}'),
        ("Authorization: Bearer abc.def, again", "Authorization: ********, again"),
        ("sent Bearer abcdefgh123", "sent Bearer ********"),
        ("Internal error: api_key=abc, token: def", "Internal error: api_key=********, token: ********"),
        ("OPENAI_API_KEY=abc failed", "OPENAI_API_KEY=******** failed"),
        ("the key sk-ant-api03-0123456789abcdef is wrong", "the key ******** is wrong"),
        ("https://me:pw@host/x", "https://********@host/x"),
        ("exit code: 7, errorCode=12, monkey: banana", "exit code: 7, errorCode=12, monkey: banana"),
    ],
)
def test_an_error_of_somebody_else_is_shown_without_its_secrets(text: str, shown: str) -> None:
    assert mask_text(text) == shown


def test_hostile_text_is_masked_in_no_time() -> None:
    began = time.thread_time()
    for text in ("a=" * 1000, "token:" * 300, 'key="' * 400, "\\" * 2000, "x" * 2000, "sk-" * 600):
        mask_text(text)
    assert time.thread_time() - began < 1
