"""Modes, models and effort of a Claude session."""

from __future__ import annotations

from dragoman.agents.native.options import Options, Value
from dragoman.wire.json_types import JsonObject, objects

MODES: dict[str, tuple[str, str]] = {
    "default": ("Default", "Ask before tools that change something"),
    "acceptEdits": ("Accept edits", "Edit files without asking, ask before commands"),
    "plan": ("Plan", "Read and think, change nothing"),
    "auto": ("Auto", "A model decides what needs asking"),
    "dontAsk": ("Don't ask", "Refuse whatever is not allowed already"),
    "bypassPermissions": ("Bypass permissions", "Never ask"),
}
NEEDS_FLAG = "bypassPermissions"
"""Only offered if the command has the flag for it; else claude refuses to switch to it."""
DEFAULT = "default"


class ClaudeOptions(Options):
    def __init__(self, initialized: JsonObject, *, bypass: bool = False, mode: str = DEFAULT) -> None:
        """`initialized` is claude's answer to `initialize`, `mode` the mode of its command line."""
        super().__init__()
        self.models = [entry for entry in objects(initialized.get("models")) if entry.get("value")]
        self.bypass = bypass or mode == NEEDS_FLAG
        model = str(self.models[0]["value"]) if self.models else DEFAULT
        self.current = {"mode": mode, "model": model, "effort": DEFAULT}

    def update(self, reported: ClaudeOptions) -> None:
        """Take over the reported options; chosen values stay if they are still offered."""
        chosen = self.current if self.models else {}
        self.models, self.bypass = reported.models, reported.bypass
        self.current = {**reported.current, **chosen}
        if self.model not in self.offered("model"):
            self.current["model"] = reported.current["model"]
        self.check_effort()

    def values(self, option: str) -> list[Value]:
        return {"mode": self._modes, "model": self._models, "effort": self._efforts}[option]()

    def check_effort(self) -> None:
        """Reset the effort if the present model does not have it."""
        if self.current["effort"] not in self.offered("effort"):
            self.current["effort"] = DEFAULT

    def saw_model(self, model: str) -> bool:
        """Note the model that the program reports; returns True if the choice changes."""
        if model in (self._model().get("resolvedModel"), self.model) or not self.models:
            return False
        for entry in self.models:
            if model in (entry["value"], entry.get("resolvedModel")):
                self.current["model"] = str(entry["value"])
                return True
        return False

    def _modes(self) -> list[Value]:
        knows_auto = self._model().get("supportsAutoMode") is not False
        return [
            Value(mode, *words)
            for mode, words in MODES.items()
            if (mode != NEEDS_FLAG or self.bypass) and (mode != "auto" or knows_auto)
        ]

    def _models(self) -> list[Value]:
        return [
            Value(str(model["value"]), str(model.get("displayName") or model["value"]), _about(model))
            for model in self.models
        ]

    def _efforts(self) -> list[Value]:
        """The effort levels; empty, so that the option is not shown, for a model without any."""
        levels = self._model().get("supportedEffortLevels")
        if not isinstance(levels, list) or not levels:
            return []
        return [Value(level, level.capitalize()) for level in (DEFAULT, *map(str, levels))]

    def _model(self) -> JsonObject:
        return next((model for model in self.models if model["value"] == self.model), {})


def commands(initialized: JsonObject) -> JsonObject:
    """Claude's slash commands as an `available_commands_update`."""
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


def _about(model: JsonObject) -> str:
    return str(model.get("description") or "")
