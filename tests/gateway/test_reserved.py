"""What is removed where an agent's messages enter."""

from __future__ import annotations

import json

import pytest

from dragoman.gateway.rewriting.reserved import cleaned

UPDATE = '{"jsonrpc":"2.0","method":"session/update","params":%s}'
OURS, MINE = '{"dragoman":{"seq":9}}', '{"mine":1}'


@pytest.mark.parametrize(
    "params",
    [
        f'{{"_meta":{OURS},"_meta":{MINE},"update":{{}}}}',
        f'{{"_meta":{MINE},"_meta":{OURS},"update":{{}}}}',
        f'{{"update":{{"_meta":{OURS},"_meta":{MINE}}}}}',
        f'{{"update":{{"_meta":{OURS},"_meta":null}}}}',
        f'{{"update":{{"_meta":{OURS}}},"update":{{}}}}',
        f'{{"update":{{"toolCall":{{"_meta":{OURS},"_meta":{MINE}}}}}}}',
        f'{{"options":[{{"_meta":{OURS},"_meta":{MINE}}}],"toolCall":{{}}}}',
        f'{{"options":[{{"_meta":{OURS}}}],"options":[]}}',
        '{"_meta":{"dragoman":1,"dragoman":2}}',
        '{"_meta":{"\\u0064ragoman":1},"_meta":{}}',
    ],
)
def test_a_member_that_comes_twice_hides_nothing(params: str) -> None:
    found = cleaned((UPDATE % params).encode())
    assert b"ragoman" not in found
    json.loads(found)


def test_params_that_come_twice_hide_nothing() -> None:
    found = cleaned(b'{"method":"m","params":{"_meta":%b},"params":{}}' % OURS.encode())
    assert json.loads(found) == {"method": "m", "params": {}}


@pytest.mark.parametrize(
    "params",
    [
        '{"update":{"content":{"text":"dragoman  said"}}, "_meta" : {"mine":1}}',
        '{"update":{"content":{"_meta":{"dragoman":1}}}}',
        '{"options":"dragoman","toolCall":[1]}',
        '{"_meta":"dragoman"}',
    ],
)
def test_what_is_not_reserved_keeps_every_byte(params: str) -> None:
    line = (UPDATE % params).encode()
    assert cleaned(line) is line
