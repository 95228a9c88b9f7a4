"""Updates on their way to clients: only the session id changes, whatever way they take."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dragoman.gateway.json_types import JsonObject
from dragoman.gateway.rewriting.dialects import RENAMED_KINDS
from dragoman.gateway.rewriting.updates import LOOKED_AT, UpdateRewriter, read_head, update_line
from support.exact_json import exact
from support.json_values import OBJECTS, TEXTS, VALUES, encoded

START = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"agent-1","update":'


class Seen(list[JsonObject]):
    """Keeps what it is shown and edits nothing."""

    def __call__(self, update: JsonObject) -> bool:
        self.append(update)
        return False


def unseen(update: JsonObject) -> bool:
    return False


def seen_and_edited(update: JsonObject) -> bool:
    return True


def rewriter(see: Any = unseen, agent_id: str = "agent-1") -> UpdateRewriter:
    return UpdateRewriter(agent_id, "dgm_x", see)


def with_session(line: bytes, session_id: str = "dgm_x") -> Any:
    decoded = exact(line)
    decoded["params"]["sessionId"] = session_id
    return decoded


@st.composite
def update_lines(draw: st.DrawFn, kinds: st.SearchStrategy[str]) -> bytes:
    """An update with any members in any order at every level."""

    def shuffled(members: dict[str, Any]) -> dict[str, Any]:
        return dict(draw(st.permutations(list(members.items()))))

    extra = draw(OBJECTS)
    update = shuffled({**extra, "sessionUpdate": draw(kinds), "_meta": draw(VALUES)})
    params = shuffled({**draw(OBJECTS), "sessionId": "agent-1", "update": update})
    envelope = {**draw(OBJECTS), "jsonrpc": "2.0", "method": "session/update", "params": params}
    return draw(encoded(st.just(shuffled(envelope))))


ANY_KIND = st.sampled_from(["agent_message_chunk", "notice", "_x", "", "future_kind"]) | TEXTS
NOT_LOOKED_AT = ANY_KIND.filter(lambda kind: kind not in LOOKED_AT)


class TestSplice:
    @pytest.mark.parametrize(
        "update",
        [
            b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"}}',
            b'{"sessionUpdate":"notice","unknown":{"deep":[{"er":null}]},"_meta":{"k":{"v":[1.0,1e2,-0]}}}',
            b'{"sessionUpdate":"x","n":[9007199254740993,123456789012345678901234567890,1.0,1e2,1E+2,1e400]}',
            b'{ "sessionUpdate" : "x" , "t" : "\\u0061\\/\\ud83d\\ude00" , "n" : null }',
            '{"sessionUpdate":"x","t":"ü\u2028😀"}'.encode(),
            b'{"sessionUpdate":"x","sessionId":"agent-1","params":{"sessionId":"agent-1"}}',
        ],
    )
    @pytest.mark.rule("G-001", "G-002", "G-043")
    def test_not_one_byte_of_an_update_changes(self, update: bytes) -> None:
        spliced = rewriter().splice(START + update + b',"_meta":{"a":1.0}}}')
        after = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"dgm_x","update":'
        assert spliced == after + update + b',"_meta":{"a":1.0}}}'

    @given(update_lines(ANY_KIND), st.sampled_from([b"", b',"sessionId":"b"', b',"update":{}', b" "]))
    def test_the_size_of_the_update_tells_what_a_second_look_would(self, line: bytes, behind: bytes) -> None:
        line = line[:-2] + behind + b"}}"
        head = read_head(line)
        assume(head is not None)
        assert head is not None
        assert rewriter().splice(line, head.size) == rewriter().splice(line)

    @given(update_lines(ANY_KIND))
    @pytest.mark.rule("G-002", "G-043")
    def test_any_order_of_members_gives_the_same_values(self, line: bytes) -> None:
        assert exact(rewriter().splice(line)) == with_session(line)

    @given(update_lines(NOT_LOOKED_AT))
    def test_both_ways_tell_the_same(self, line: bytes) -> None:
        assert [exact(each) for each in rewriter().rewrite(line)] == [with_session(line)]

    @given(TEXTS, TEXTS)
    def test_ids_of_any_text_are_replaced(self, agent_id: str, session_id: str) -> None:
        for ascii_only in (True, False):
            params = {"sessionId": agent_id, "update": {"sessionUpdate": "x"}}
            line = json.dumps(
                {"jsonrpc": "2.0", "method": "session/update", "params": params},
                ensure_ascii=ascii_only,
                separators=(",", ":"),
            ).encode()
            spliced = UpdateRewriter(agent_id, session_id, unseen).splice(line)
            assert exact(spliced) == with_session(line, session_id)

    def test_an_id_that_another_begins_with_is_not_confused(self) -> None:
        line = START.replace(b"agent-1", b"agent-11") + b'{"sessionUpdate":"x"}}}'
        spliced = rewriter(agent_id="agent-1").splice(line)
        assert b"dgm_x1" not in spliced

    @pytest.mark.parametrize(
        "behind",
        [
            b',"sessionId":"dgm_other"}}',
            b',"sessionId":"dgm_other","sessionId":"agent-1"}}',
            b',"sessi\\u006fnId":"dgm_other"}}',
            b',"\\u0073essionId":"dgm_other","x":{"y":{"z":"w"}}}}',
            b'},"params":{"sessionId":"dgm_other","update":{"sessionUpdate":"x"}}}',
            b'},"p\\u0061rams":{"sessionId":"agent-1","sessionId":"dgm_other","update":{}}}',
            b' , "sessionId" : "dgm_other" } }',
            b',"update":{"sessionUpdate":"y"}}}',
        ],
    )
    @pytest.mark.parametrize("text", [b"hello", b'say \\"sessionId\\"', b"\\\\"])
    def test_no_second_session_id_survives(self, text: bytes, behind: bytes) -> None:
        chunk = b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%b"}}' % text
        for spliced in (
            rewriter().splice(START + chunk + behind),
            *rewriter().rewrite(START + chunk + behind),
        ):
            once(spliced)
            assert b"dgm_other" not in spliced
            assert json.loads(spliced)["params"]["sessionId"] == "dgm_x"

    def test_names_inside_an_update_are_its_own(self) -> None:
        update = b'{"sessionUpdate":"x","rawInput":{"sessionId":"mine","update":{"sessionId":"mine"}},"sessionId":"m"}'
        assert (
            rewriter().splice(START + update + b"}}") == START.replace(b"agent-1", b"dgm_x") + update + b"}}"
        )


def once(line: bytes) -> None:
    """The message and its params have no member twice, however it is spelled."""

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in found]
        if {"params", "sessionId"} & set(names):
            assert len(names) == len(set(names)), line
        return dict(found)

    json.loads(line, object_pairs_hook=pairs)


class TestRewrite:
    @pytest.mark.parametrize("kind", sorted(LOOKED_AT - {"user_message", *RENAMED_KINDS}))
    @pytest.mark.rule("G-002")
    def test_an_update_that_is_v1_already_passes_byte_by_byte(self, kind: str) -> None:
        update = b'{"sessionUpdate":"%b","currentModeId":"m","n":[1.0,1e2,18446744073709551617],"x":null}'
        seen = Seen()
        (line,) = rewriter(seen).rewrite(START + update % kind.encode() + b"}}")
        assert line == START.replace(b"agent-1", b"dgm_x") + update % kind.encode() + b"}}"
        assert seen[0]["sessionUpdate"] == kind

    def test_what_a_session_edits_goes_out_and_the_rest_stays(self) -> None:
        def edit(update: JsonObject) -> bool:
            update["configOptions"] = []
            return True

        update = b'{"sessionUpdate":"config_option_update","configOptions":[{}],"x":null,"n":123456789012345678901}'
        (line,) = rewriter(edit).rewrite(START + update + b',"_meta":{"big":1e2}},"extra":1.0}')
        assert exact(line) == {
            **exact(b'{"jsonrpc":"2.0","method":"session/update","extra":1.0}'),
            "params": {
                "sessionId": "dgm_x",
                "update": {
                    **exact(b'{"x":null,"n":123456789012345678901}'),
                    "sessionUpdate": "config_option_update",
                    "configOptions": [],
                },
                "_meta": exact(b'{"big":1e2}'),
            },
        }

    def test_a_dialect_is_seen_after_it_was_read(self) -> None:
        seen = Seen()
        update = b'{"sessionUpdate":"tool_call","toolCall":{"toolCallId":"t","toolName":"sh","status":"executing"}}'
        (line,) = rewriter(seen).rewrite(START + update + b"}}")
        assert seen[0]["status"] == "in_progress"
        assert exact(line)["params"]["update"]["title"] == "sh"

    def test_one_dialect_update_may_become_several(self) -> None:
        update = (
            b'{"sessionUpdate":"user_message","content":["a",{"type":"text","text":"b"}],"messageId":"m"}'
        )
        lines = rewriter().rewrite(START + update + b',"_meta":{"k":1}}}')
        assert [exact(line)["params"]["update"]["content"]["text"] for line in lines] == ["a", "b"]
        assert all(exact(line)["params"]["_meta"] == exact(b'{"k":1}') for line in lines)

    @given(update_lines(st.sampled_from(sorted(LOOKED_AT - {"user_message"}))))
    @pytest.mark.rule("G-002")
    def test_members_that_no_dialect_knows_keep_their_values(self, line: bytes) -> None:
        (out,) = rewriter(seen_and_edited).rewrite(line)
        before, after = json.loads(line), json.loads(out)
        after["params"]["update"]["sessionUpdate"] = before["params"]["update"]["sessionUpdate"]
        before["params"]["sessionId"] = "dgm_x"
        assert after == before


class TestHead:
    def test_it_tells_the_session_and_the_kind(self) -> None:
        head = read_head(
            START + b'{"content":{"sessionUpdate":"no"},"sessionUpdate":"plan"},"sessionId":"b"}}'
        )
        assert head is not None
        assert (head.session_id, head.kind) == ("b", "plan")

    @pytest.mark.parametrize(
        "line",
        [
            b"not json",
            b"[]",
            b'{"jsonrpc":"2.0","method":"session/update"}',
            b'{"jsonrpc":"2.0","method":"session/update","params":{"update":{}}}',
            b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":1,"update":{}}}',
            b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"a"}}',
            b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"a","update":[]}}',
            b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"a","update":{"sessionUpdate":1}}}',
            b'{"jsonrpc":"2.0","method":"session/other","params":{"sessionId":"a","update":{}}}',
            b'{"jsonrpc":"2.0","id":1,"method":"session/update","params":{"sessionId":"a","update":{}}}',
            b'{"jsonrpc":"2.0","id":null,"method":"session/update","params":{"sessionId":"a","update":{}}}',
            START + b'{"sessionUpdate":"x","t":"\xff"}}}',
            START + b'{"sessionUpdate":"x","t":"\\ud83d"}}}',
            START + b'{"sessionUpdate":"x","t":' + b"[" * 100_000 + b"]" * 100_000 + b"}}}",
        ],
        ids=lambda line: repr(line[-50:]),
    )
    def test_everything_but_a_good_update_takes_the_general_way(self, line: bytes) -> None:
        assert read_head(line) is None


def test_an_update_of_our_own_is_a_notification() -> None:
    assert exact(update_line("dgm_x", {"sessionUpdate": "plan", "entries": []})) == {
        "jsonrpc": "2.0",
        "method": "session/update",
        "params": {"sessionId": "dgm_x", "update": {"sessionUpdate": "plan", "entries": []}},
    }
