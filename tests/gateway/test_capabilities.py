"""Who can do what: views, narrowing, and the merge table."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given

from dragoman import __version__
from dragoman.gateway.access.capabilities import (
    AgentCapabilities,
    ClientCapabilities,
    bound_result,
    fingerprint,
    unbound_result,
)
from support.json_values import OBJECTS, VALUES

AGENT: dict[str, Any] = {
    "protocolVersion": 1,
    "agentInfo": {"name": "gem", "version": "9"},
    "agentCapabilities": {
        "loadSession": False,
        "promptCapabilities": {"image": True, "future": {"x": None}},
        "mcpCapabilities": {"http": True},
        "sessionCapabilities": {"additionalDirectories": {}, "fork": {"k": 1}},
        "auth": {"logout": {}},
        "future": {"y": 1},
        "_meta": {"vendor": [1]},
    },
    "authMethods": [
        {"id": "key", "name": "API key", "_meta": {"k": 1}},
        {"id": "login", "name": "Log in", "type": "terminal", "args": ["login"]},
    ],
    "_meta": {"vendor": "x"},
    "futureRoot": None,
}


class TestClient:
    @pytest.mark.parametrize("value", [None, False, 1, "true", {}, []])
    def test_only_true_offers_files_and_terminals(self, value: Any) -> None:
        client = ClientCapabilities({"fs": {"readTextFile": value, "writeTextFile": True}, "terminal": value})
        assert not client.has_fs("fs/read_text_file")
        assert client.has_fs("fs/write_text_file")
        assert not client.has_fs("fs/delete")
        assert not client.terminal

    @given(VALUES)
    def test_a_malformed_capability_counts_as_absent(self, value: Any) -> None:
        for raw in (
            {"fs": value, "terminal": value, "session": value, "_meta": value},
            {"session": {"configOptions": value}},
        ):
            client = ClientCapabilities(raw)
            assert not client.has_fs("fs/read_text_file")
            assert client.boolean_options in (True, False)
            assert client.notices in (True, False)
            assert client.seq in (True, False)
            client.for_agent(serve_fs=False, serve_terminal=False)

    def test_elicitation_modes_are_advertised_one_by_one(self) -> None:
        assert ClientCapabilities({"elicitation": {"form": {}}}).elicitation("form")
        assert not ClientCapabilities({"elicitation": {"form": {}}}).elicitation("url")
        assert not ClientCapabilities({"elicitation": {}}).elicitation("form")
        assert not ClientCapabilities({"elicitation": {"form": None}}).elicitation("form")

    def test_markers_inside_session_and_meta(self) -> None:
        client = ClientCapabilities(
            {
                "session": {"configOptions": {"boolean": {}}, "notices": {"x": 1}},
                "_meta": {"dragoman": {"seq": True}},
            }
        )
        assert client.boolean_options and client.notices and client.seq
        none = ClientCapabilities({})
        assert not (none.boolean_options or none.notices or none.seq or none.terminal)
        denied = {"session": {"configOptions": {"boolean": False}, "notices": False}}
        assert not (ClientCapabilities(denied).boolean_options or ClientCapabilities(denied).notices)

    @given(OBJECTS)
    @pytest.mark.rule("G-032")
    def test_the_agent_is_told_what_the_client_said(self, raw: dict[str, Any]) -> None:
        assert ClientCapabilities(raw).for_agent(serve_fs=False, serve_terminal=False) == raw

    @pytest.mark.rule("G-032", "G-071")
    def test_what_cannot_work_through_a_gateway_is_left_out(self) -> None:
        raw = {
            "auth": {"terminal": True, "x": 1},
            "_meta": {"dragoman": {"seq": True}, "v": 1},
            "terminal": True,
        }
        before = copy.deepcopy(raw)
        assert ClientCapabilities(raw).for_agent(serve_fs=False, serve_terminal=False) == {
            "auth": {"x": 1},
            "_meta": {"v": 1},
            "terminal": True,
        }
        assert raw == before

    def test_what_the_gateway_serves_itself_is_added(self) -> None:
        told = ClientCapabilities({"fs": {"x": 1}}).for_agent(serve_fs=True, serve_terminal=True)
        assert told == {"fs": {"x": 1, "readTextFile": True, "writeTextFile": True}, "terminal": True}

    @pytest.mark.rule("G-032")
    def test_fingerprints_are_equal_for_equal_capabilities_only(self) -> None:
        assert fingerprint({"a": 1, "b": {"c": 1, "d": 2}}) == fingerprint({"b": {"d": 2, "c": 1}, "a": 1})
        different: list[dict[str, Any]] = [
            {},
            {"a": None},
            {"a": True},
            {"a": 1},
            {"a": "1"},
            {"a": [1, 2]},
            {"a": [2, 1]},
        ]
        assert len({fingerprint(each) for each in different}) == len(different)


class TestAgent:
    @pytest.mark.parametrize(
        ("marker", "has"), [({}, True), (True, True), ({"x": 1}, True), (None, False), (False, False)]
    )
    def test_a_session_marker_is_an_object_or_true(self, marker: Any, has: bool) -> None:
        """D-12."""
        assert (
            AgentCapabilities({"agentCapabilities": {"sessionCapabilities": {"list": marker}}}).session(
                "list"
            )
            is has
        )

    def test_an_agent_is_read(self) -> None:
        agent = AgentCapabilities(AGENT)
        assert not agent.load
        assert agent.prompt("image") and not agent.prompt("audio")
        assert agent.mcp("http") and not agent.mcp("sse")
        assert agent.logout
        assert agent.auth_method_ids == ["key", "login"]

    @given(VALUES)
    def test_anything_malformed_counts_as_absent(self, value: Any) -> None:
        for result in (
            {"agentCapabilities": value, "authMethods": value},
            {"agentCapabilities": {"sessionCapabilities": value, "promptCapabilities": value, "auth": value}},
        ):
            agent = AgentCapabilities(result)
            assert not (agent.load or agent.prompt("image") or agent.mcp("http") or agent.logout)
            assert isinstance(agent.auth_method_ids, list)


class TestBound:
    @pytest.mark.rule("G-033")
    def test_the_agents_answer_plus_the_gateways_own(self) -> None:
        before = copy.deepcopy(AGENT)
        result = bound_result("gem", AGENT, journal=True)
        assert before == AGENT
        caps = result["agentCapabilities"]
        assert caps == {
            **AGENT["agentCapabilities"],
            "loadSession": True,
            "sessionCapabilities": {
                "additionalDirectories": {},
                "fork": {"k": 1},
                "list": {},
                "resume": {},
                "close": {},
                "delete": {},
            },
        }
        assert result["agentInfo"] == AGENT["agentInfo"]
        assert result["futureRoot"] is None
        assert result["_meta"] == {"vendor": "x", "dragoman": {"version": __version__, "agents": ["gem"]}}

    def test_without_a_journal_only_what_needs_none_is_added(self) -> None:
        caps = bound_result("gem", AGENT, journal=False)["agentCapabilities"]
        assert caps["loadSession"] is False
        assert caps["sessionCapabilities"] == {"additionalDirectories": {}, "fork": {"k": 1}, "close": {}}

    def test_bare_booleans_become_markers(self) -> None:
        """D-12."""
        agent = {"agentCapabilities": {"sessionCapabilities": {"fork": True, "list": False}}}
        caps = bound_result("gem", agent, journal=False)["agentCapabilities"]
        assert caps["sessionCapabilities"] == {"fork": {}, "close": {}}

    @pytest.mark.rule("G-071")
    def test_terminal_logins_are_not_offered(self) -> None:
        assert bound_result("gem", AGENT, journal=True)["authMethods"] == [AGENT["authMethods"][0]]

    @pytest.mark.parametrize("agent", [{}, {"agentCapabilities": None, "authMethods": None, "_meta": None}])
    def test_a_bare_answer_is_completed(self, agent: dict[str, Any]) -> None:
        result = bound_result("gem", agent, journal=True)
        assert result["protocolVersion"] == 1
        assert result["authMethods"] == []
        assert result["agentCapabilities"]["loadSession"] is True

    @pytest.mark.rule("G-031")
    def test_the_version_is_ours(self) -> None:
        assert bound_result("gem", {"protocolVersion": 7}, journal=True)["protocolVersion"] == 1


@pytest.mark.rule("G-034")
class TestUnbound:
    def result(self, agent: dict[str, Any] | None = AGENT, *, journal: bool = True) -> dict[str, Any]:
        return unbound_result("gem", ["gem", "other"], agent, journal=journal)

    def test_the_gateway_introduces_itself_and_lists_its_agents(self) -> None:
        result = self.result()
        assert result["protocolVersion"] == 1
        assert result["agentInfo"] == {"name": "dragoman", "title": "Dragoman", "version": __version__}
        assert result["_meta"] == {"dragoman": {"version": __version__, "agents": ["gem", "other"]}}

    @pytest.mark.parametrize("journal", [True, False])
    def test_load_follows_the_journal_and_sessions_are_the_gateways(self, journal: bool) -> None:
        caps = self.result(journal=journal)["agentCapabilities"]
        assert caps["loadSession"] is journal
        own: dict[str, Any] = (
            {"list": {}, "resume": {}, "close": {}, "delete": {}, "fork": {}} if journal else {"close": {}}
        )
        assert caps["sessionCapabilities"] == own

    def test_prompts_and_mcp_are_the_default_agents(self) -> None:
        caps = self.result()["agentCapabilities"]
        assert caps["promptCapabilities"] == AGENT["agentCapabilities"]["promptCapabilities"]
        assert caps["mcpCapabilities"] == {"http": True}

    def test_meta_and_unknown_capabilities_of_one_agent_are_not_all_agents(self) -> None:
        assert not {"future", "_meta"} & self.result()["agentCapabilities"].keys()

    def test_whether_one_can_log_out_is_the_default_agents(self) -> None:
        assert self.result()["agentCapabilities"]["auth"] == {"logout": {}}
        assert "auth" not in self.result(agent=None)["agentCapabilities"]

    def test_login_methods_say_whose_they_are(self) -> None:
        assert self.result()["authMethods"] == [{"id": "gem:key", "name": "API key", "_meta": {"k": 1}}]

    def test_without_an_agent_the_gateway_promises_only_its_own(self) -> None:
        caps = self.result(None)["agentCapabilities"]
        assert caps["promptCapabilities"] == caps["mcpCapabilities"] == {}
        assert caps["loadSession"] is True

    def test_the_agents_answer_is_not_changed(self) -> None:
        before = copy.deepcopy(AGENT)
        self.result()
        assert before == AGENT
