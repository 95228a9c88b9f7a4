"""Modes, models and effort of a Claude session: one state, told as modes, models and config options alike."""

from __future__ import annotations

from collections.abc import Collection

from dragoman.agents.json_types import JsonObject, objects
from dragoman.wire.errors import invalid_params

MODES: dict[str, tuple[str, str]] = {
    "default": ("Default", "Ask before tools that change something"),
    "acceptEdits": ("Accept edits", "Edit files without asking, ask before commands"),
    "plan": ("Plan", "Read and think, change nothing"),
    "auto": ("Auto", "A model decides what needs asking"),
    "dontAsk": ("Don't ask", "Refuse whatever is not allowed already"),
    "bypassPermissions": ("Bypass permissions", "Never ask"),
}
NEEDS_FLAG = "bypassPermissions"
"""Only offered when the program was started so; claude refuses to switch to it otherwise."""
DEFAULT = "default"


class Options:
    def __init__(self, initialized: JsonObject, *, bypass: bool = False) -> None:
        """`initialized` is claude's answer to `initialize`."""
        models = initialized.get("models")
        self.models = objects(models)
        self.bypass = bypass
        self.mode = DEFAULT
        self.model = str(self.models[0].get("value")) if self.models else DEFAULT
        self.effort = DEFAULT

    def modes(self) -> list[str]:
        known = self._model().get("supportsAutoMode")
        return [
            mode
            for mode in MODES
            if (mode != NEEDS_FLAG or self.bypass) and (mode != "auto" or known is not False)
        ]

    def efforts(self) -> list[str]:
        """Not every model has them; then the option is gone."""
        levels = self._model().get("supportedEffortLevels")
        return [DEFAULT, *(str(level) for level in levels)] if isinstance(levels, list) and levels else []

    def check(self, option: str, value: str) -> None:
        if value not in self.values(option):
            raise invalid_params(
                f"{option} {value!r} is not offered; there are {', '.join(self.values(option)) or 'none'}",
                option,
            )

    def values(self, option: str) -> Collection[str]:
        if option == "mode":
            return self.modes()
        if option == "model":
            return [str(each.get("value")) for each in self.models]
        return self.efforts() if option == "effort" else []

    def saw_model(self, model: str) -> bool:
        """The program says which model it uses; True if that is another choice than the known one."""
        if model in (self._model().get("resolvedModel"), self.model) or not self.models:
            return False
        for each in self.models:
            if model in (each.get("value"), each.get("resolvedModel")):
                self.model = str(each.get("value"))
                return True
        return False

    def state(self) -> JsonObject:
        """For the result of `session/new` and its like."""
        return {
            "modes": {
                "currentModeId": self.mode,
                "availableModes": [
                    {"id": mode, "name": MODES[mode][0], "description": MODES[mode][1]}
                    for mode in self.modes()
                ],
            },
            "models": {
                "currentModelId": self.model,
                "availableModels": [
                    {"modelId": each.get("value"), **_named(each)}
                    for each in self.models
                    if each.get("value")
                ],
            },
            "configOptions": self.config(),
        }

    def config(self) -> list[JsonObject]:
        modes = [
            {"value": mode, "name": MODES[mode][0], "description": MODES[mode][1]} for mode in self.modes()
        ]
        found = [_select("mode", "Mode", "mode", self.mode, modes)]
        models = [{"value": each.get("value"), **_named(each)} for each in self.models if each.get("value")]
        if models:
            found.append(_select("model", "Model", "model", self.model, models))
        if self.efforts():
            levels = [{"value": level, "name": level.capitalize()} for level in self.efforts()]
            found.append(_select("effort", "Effort", "thought_level", self.effort, levels))
        return found

    def _model(self) -> JsonObject:
        return next((each for each in self.models if each.get("value") == self.model), {})


def commands(initialized: JsonObject) -> JsonObject:
    """Claude's slash commands."""
    listed = initialized.get("commands")
    found = []
    for each in listed if isinstance(listed, list) else []:
        if not isinstance(each, dict) or not each.get("name"):
            continue
        command: JsonObject = {"name": each["name"], "description": str(each.get("description") or "")}
        if each.get("argumentHint"):
            command["input"] = {"hint": str(each["argumentHint"])}
        found.append(command)
    return {"sessionUpdate": "available_commands_update", "availableCommands": found}


def _named(model: JsonObject) -> JsonObject:
    named: JsonObject = {"name": str(model.get("displayName") or model.get("value"))}
    if model.get("description"):
        named["description"] = str(model["description"])
    return named


def _select(id: str, name: str, category: str, current: str, options: list[JsonObject]) -> JsonObject:
    return {
        "id": id,
        "name": name,
        "category": category,
        "type": "select",
        "currentValue": current,
        "options": options,
    }
