"""Config options: one state, whatever shape the agent speaks."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from dragoman.gateway.session.settings.options import Options

SELECT = {
    "id": "effort",
    "type": "select",
    "currentValue": "low",
    "options": [{"value": "low", "name": "Low"}],
}
BOOLEAN = {"id": "web", "type": "boolean", "currentValue": True}
MODELS = {
    "currentModelId": "big",
    "availableModels": [
        {"modelId": "big", "name": "Big", "description": "slow"},
        {"modelId": "small", "name": None, "description": None},
        {"id": "old"},
    ],
}
SYNTHETIC = {
    "id": "model",
    "name": "Model",
    "category": "model",
    "type": "select",
    "currentValue": "big",
    "options": [
        {"value": "big", "name": "Big", "description": "slow"},
        {"value": "small", "name": "small"},
        {"value": "old", "name": "old"},
    ],
}


def read(result: dict[str, Any]) -> tuple[Options, bool]:
    options = Options()
    return options, options.read_result(result)


def shown(options: Options, result: dict[str, Any], **known: bool) -> dict[str, Any]:
    """A result as a client is told it that knows nothing but this."""
    return options.for_client(result, **{"boolean": False, "models": False, **known})


MODES = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "do"}]}
MODE_OPTION = {
    "id": "mode",
    "name": "Mode",
    "category": "mode",
    "type": "select",
    "currentValue": "ask",
    "options": [{"value": "ask", "name": "Ask"}, {"value": "do", "name": "do"}],
}


def test_modes_and_models_of_an_old_agent_become_options() -> None:
    result: dict[str, Any] = {"modes": MODES, "models": MODELS}
    options, changed = read(result)
    assert changed and result["configOptions"] == [MODE_OPTION, SYNTHETIC]
    assert options.stand_ins == {"mode": "mode", "model": "model"}


def test_options_of_a_new_agent_become_modes_and_for_who_asks_models() -> None:
    grouped = [{"group": "g", "name": "G", "options": [{"value": "a", "name": "A", "description": "x"}]}]
    model = {"id": "m", "category": "model", "type": "select", "currentValue": "a", "options": grouped}
    result: dict[str, Any] = {"configOptions": [MODE_OPTION, model]}
    options, changed = read(result)
    assert changed and not options.stand_ins and not options.native
    assert result["modes"] == {
        "currentModeId": "ask",
        "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "do", "name": "do"}],
    }
    assert "models" not in result and "models" not in shown(options, result)
    assert shown(options, result, models=True)["models"] == {
        "currentModelId": "a",
        "availableModels": [{"modelId": "a", "name": "A", "description": "x"}],
    }


def test_an_earlier_result_is_told_as_it_would_be_now() -> None:
    result: dict[str, Any] = {"modes": MODES}
    options, _ = read(result)
    assert options.choose("mode", "do") and not options.choose("mode", "do")
    now = options.written(result)
    assert now["modes"]["currentModeId"] == now["configOptions"][0]["currentValue"] == "do"
    assert result["modes"]["currentModeId"] == result["configOptions"][0]["currentValue"] == "ask"


@pytest.mark.parametrize(
    "result", [{}, {"configOptions": None}, {"configOptions": [SELECT]}, {"models": None}]
)
def test_a_v1_result_is_left_alone(result: dict[str, Any]) -> None:
    before = copy.deepcopy(result)
    _, changed = read(result)
    assert not changed
    assert result == before


@pytest.mark.rule("G-052")
def test_boolean_options_are_shown_to_clients_that_know_them() -> None:
    result: dict[str, Any] = {"configOptions": [SELECT, BOOLEAN]}
    options, changed = read(result)
    assert not changed and options.full == [SELECT, BOOLEAN]
    assert shown(options, result, boolean=True)["configOptions"] == [SELECT, BOOLEAN]
    assert shown(options, result)["configOptions"] == [SELECT]
    assert result["configOptions"] == [SELECT, BOOLEAN]


def test_an_option_without_a_type_is_boolean_by_its_value() -> None:
    untyped = {"id": "web", "currentValue": False}
    options, _ = read({"configOptions": [SELECT, untyped]})
    assert options.visible(boolean=True) == [SELECT, untyped]
    assert options.visible(boolean=False) == [SELECT]


def test_models_that_the_agent_told_itself_are_everybodys() -> None:
    options, _ = read(result := {"models": MODELS})
    assert shown(options, result)["models"] == shown(options, result, models=True)["models"] == MODELS


def test_the_models_of_an_old_agent_become_an_option() -> None:
    """D-35."""
    result: dict[str, Any] = {"models": MODELS, "configOptions": [SELECT]}
    options, changed = read(result)
    assert changed and options.native == {"model"}
    assert result == {"models": MODELS, "configOptions": [SELECT, SYNTHETIC]}
    assert options.stand_ins == {"model": "model"}


def test_a_model_option_of_the_agents_own_is_enough() -> None:
    own = {**SELECT, "id": "m", "category": "model"}
    options, changed = read({"models": MODELS, "configOptions": [own]})
    assert not changed
    assert not options.stand_ins
    assert options.option("model") == own


def test_a_taken_id_is_not_taken_again() -> None:
    options, _ = read({"models": MODELS, "configOptions": [{**SELECT, "id": "model"}]})
    assert options.stand_ins == {"model": "_model"}


@pytest.mark.parametrize("models", [{}, {"availableModels": None}, {"availableModels": [1, None]}])
def test_malformed_models_do_no_harm(models: dict[str, Any]) -> None:
    options, _ = read({"models": models})
    assert options.stand_ins == {"model": "model"}


def test_without_models_there_is_no_model_option() -> None:
    options, _ = read({"configOptions": [SELECT]})
    assert options.option("model") is None and not options.native


def test_setting_the_model_gives_the_whole_list_and_leaves_earlier_ones_alone() -> None:
    result: dict[str, Any] = {"models": MODELS, "configOptions": [SELECT]}
    options, _ = read(result)
    assert options.choose("model", "small")
    assert options.full == [SELECT, {**SYNTHETIC, "currentValue": "small"}]
    assert result["configOptions"][1]["currentValue"] == "big"


class TestUpdates:
    def test_a_full_list_is_remembered_and_passes(self) -> None:
        options, _ = read({"configOptions": [SELECT]})
        update = {"configOptions": [{**SELECT, "currentValue": "high"}]}
        assert not options.read_update(update)
        assert options.full == update["configOptions"]

    def test_a_list_that_lacks_the_synthetic_option_is_completed(self) -> None:
        """D-70."""
        options, _ = read({"models": MODELS, "configOptions": [SELECT]})
        update = {"configOptions": [{**SELECT, "currentValue": "high"}]}
        assert options.read_update(update)
        assert update["configOptions"] == [{**SELECT, "currentValue": "high"}, SYNTHETIC]

    @pytest.mark.parametrize("kind", ["config_options", "config_option_update"])
    def test_an_option_without_its_values_gets_those_that_were_told_before(self, kind: str) -> None:
        """D-70: only an id and the value that is chosen now."""
        options, _ = read({"configOptions": [SELECT, BOOLEAN]})
        update = {"sessionUpdate": kind, "configOptions": [{"id": "effort", "currentValue": "high"}]}
        assert options.read_update(update)
        whole = [{**SELECT, "currentValue": "high"}, BOOLEAN]
        assert update == {"sessionUpdate": "config_option_update", "configOptions": whole}
        assert options.full == whole and SELECT["currentValue"] == "low"

    def test_the_older_name_tells_only_what_changed(self) -> None:
        options, _ = read({"models": MODELS, "configOptions": [SELECT, BOOLEAN]})
        more = {**SELECT, "id": "tone"}
        update = {"sessionUpdate": "config_options", "configOptions": [{**BOOLEAN, "name": "Web"}, more]}
        assert options.read_update(update)
        assert update["configOptions"] == [SELECT, {**BOOLEAN, "name": "Web"}, SYNTHETIC, more]

    def test_what_a_full_list_does_not_have_is_gone(self) -> None:
        options, _ = read({"configOptions": [SELECT, BOOLEAN]})
        assert not options.read_update({"sessionUpdate": "config_option_update", "configOptions": [BOOLEAN]})
        assert options.full == [BOOLEAN]

    @pytest.mark.parametrize("value", [None, "x", {}, 1])
    def test_what_is_no_list_passes_as_it_is(self, value: Any) -> None:
        options, _ = read({"configOptions": [SELECT]})
        update = {"configOptions": value}
        assert not options.read_update(update)
        assert update == {"configOptions": value}
        assert options.full == [SELECT]


def test_values_that_only_the_older_words_have_do_not_become_an_options() -> None:
    """codex-acp 2.6 has both, with other ids."""
    own = {**SYNTHETIC, "options": [{"value": "gpt", "name": "GPT"}], "currentValue": "gpt"}
    models = {"currentModelId": "gpt[low]", "availableModels": [{"modelId": "gpt[low]", "name": "GPT low"}]}
    result: dict[str, Any] = {"models": models, "configOptions": [own]}
    options, _ = read(result)
    assert not options.choose("model", "gpt[low]")
    assert options.written(result) == result
