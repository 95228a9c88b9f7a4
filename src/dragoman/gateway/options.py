"""A session's config options: one state, whatever shape the agent speaks (D-33, D-35, D-70, G-052)."""

from __future__ import annotations

import copy
from typing import Any

from dragoman.gateway import dialects
from dragoman.gateway.json_types import JsonObject, as_object

MODEL = "model"


class Options:
    def __init__(self) -> None:
        self.full: list[JsonObject] = []
        self.synthetic_model: str | None = None
        """The id of the option that stands for an old agent's `models`."""
        self.native_models = False

    def read_result(self, result: JsonObject, *, boolean: bool) -> bool:
        """The result of `session/new` and its like, completed for the client; True if it changed."""
        changed = dialects.read_session_result(result)
        models = result.get("models")
        self.native_models = isinstance(models, dict)
        options = result.get("configOptions")
        self.full = (
            [option for option in options if isinstance(option, dict)] if isinstance(options, list) else []
        )
        if isinstance(models, dict) and self._by_category(MODEL) is None:
            self.full = [*self.full, self._from_models(models)]
            changed = True
        elif boolean or not any(option.get("type") == "boolean" for option in self.full):
            return changed
        result["configOptions"] = self.visible(boolean=boolean)
        return True

    def read_update(self, update: JsonObject, *, boolean: bool) -> bool:
        """A `config_option_update`: partial lists are completed from the last full one (D-70)."""
        options = update.get("configOptions")
        if not isinstance(options, list):
            return False
        fresh = {str(as_object(option).get("id")): option for option in options}
        partial = self.synthetic_model is not None and self.synthetic_model not in fresh
        if partial:
            kept = [option for option in self.full if option.get("id") == self.synthetic_model]
            self.full = [*options, *kept]
        else:
            self.full = list(options)
        visible = self.visible(boolean=boolean)
        if visible == options:
            return False
        update["configOptions"] = visible
        return True

    def visible(self, *, boolean: bool) -> list[JsonObject]:
        """Boolean options only for clients that said they know them (ACP v1, config options)."""
        return [option for option in self.full if boolean or option.get("type") != "boolean"]

    def model_option_id(self) -> str | None:
        option = self._by_category(MODEL)
        return str(option.get("id")) if option is not None else None

    def set_model(self, model_id: object) -> list[JsonObject]:
        """The whole list after the synthetic model option changed."""
        self.full = copy.deepcopy(self.full)
        for option in self.full:
            if option.get("id") == self.synthetic_model:
                option["currentValue"] = model_id
        return self.full

    def _by_category(self, category: str) -> JsonObject | None:
        return next((option for option in self.full if option.get("category") == category), None)

    def _from_models(self, models: JsonObject) -> JsonObject:
        taken = {option.get("id") for option in self.full}
        self.synthetic_model = MODEL if MODEL not in taken else f"_{MODEL}"
        available = models.get("availableModels")
        choices: list[Any] = available if isinstance(available, list) else []
        return {
            "id": self.synthetic_model,
            "name": "Model",
            "category": MODEL,
            "type": "select",
            "currentValue": models.get("currentModelId"),
            "options": [_choice(as_object(model)) for model in choices],
        }


def _choice(model: JsonObject) -> JsonObject:
    value = model.get("modelId", model.get("id"))
    choice: JsonObject = {"value": value, "name": model.get("name") or value}
    if model.get("description") is not None:
        choice["description"] = model["description"]
    return choice
