"""Older and foreign shapes of a permission question (D-…); v1 is left alone."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.gateway.rewriting import dialects


class TestPermissions:
    def read(self, **option: Any) -> dict[str, Any]:
        params = {"options": [option]}
        dialects.read_permission(params)
        return params["options"][0]

    def test_v1_options_are_left_alone(self) -> None:
        params = {
            "toolCall": {"toolCallId": "t", "title": "x"},
            "options": [
                {"optionId": kind, "name": "n", "kind": kind, "title": "kept"}
                for kind in sorted(dialects.OPTION_KINDS)
            ],
        }
        before = copy.deepcopy(params)
        assert not dialects.read_permission(params)
        assert params == before

    @pytest.mark.parametrize(
        ("option_id", "kind"),
        [
            ("allow", "allow_once"),
            ("allow_once", "allow_once"),
            ("Allow-Always", "allow_always"),
            ("deny", "reject_once"),
            ("reject", "reject_once"),
            ("reject_always", "reject_always"),
            ("yes", "reject_once"),
            ("ok", "reject_once"),
            ("disallow", "reject_once"),
            ("not_allowed", "reject_once"),
            ("proceed_always", "reject_always"),
            ("1", "reject_once"),
            ("", "reject_once"),
        ],
    )
    def test_a_kind_is_guessed_and_marked_and_never_an_approval(self, option_id: str, kind: str) -> None:
        """D-80: the mark keeps policy from allowing what was only guessed."""
        option = self.read(optionId=option_id, title="T", description="d")
        assert option == {
            "optionId": option_id,
            "name": "T",
            "description": "d",
            "kind": kind,
            "_meta": {"dragoman": {"kindGuessed": True}},
        }

    @given(st.text(st.sampled_from("alowyesdnprxk_-1 "), max_size=12))
    def test_only_what_begins_with_allow_is_shown_as_an_approval(self, option_id: str) -> None:
        kind = self.read(optionId=option_id, name="n")["kind"]
        assert kind in dialects.OPTION_KINDS
        assert kind.startswith("allow") == option_id.startswith("allow")

    def test_an_option_without_any_name_is_called_by_its_id(self) -> None:
        assert self.read(optionId="go", kind="allow_once")["name"] == "go"

    def test_an_unknown_kind_counts_as_none(self) -> None:
        assert self.read(optionId="x", name="n", kind="allow_forever")["kind"] == "reject_once"

    def test_the_tool_call_in_its_old_shape(self) -> None:
        """D-83."""
        params = {"toolCall": {"toolCallId": "t", "toolName": "sh", "arguments": {}}, "options": []}
        assert dialects.read_permission(params)
        assert params["toolCall"] == {
            "toolCallId": "t",
            "title": "sh",
            "rawInput": {},
            "_meta": {"dragoman": {"toolName": "sh"}},
        }
