"""Modes, models and effort of a Codex thread. A mode is an approval policy and a sandbox policy together."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from dragoman.agents.json_types import JsonObject, as_object, objects
from dragoman.wire.errors import invalid_params


@dataclass(frozen=True, slots=True)
class Mode:
    name: str
    description: str
    approval: str
    sandbox: str
    policy: JsonObject


MODES: dict[str, Mode] = {
    "read-only": Mode(
        "Read only",
        "Read and answer; ask before anything else",
        "on-request",
        "read-only",
        {"type": "readOnly", "networkAccess": False},
    ),
    "workspace-write": Mode(
        "Workspace",
        "Edit in the workspace, ask for the rest",
        "on-request",
        "workspace-write",
        {
            "type": "workspaceWrite",
            "writableRoots": [],
            "networkAccess": False,
            "excludeTmpdirEnvVar": False,
            "excludeSlashTmp": False,
        },
    ),
    "full-access": Mode(
        "Full access", "Never ask, no sandbox", "never", "danger-full-access", {"type": "dangerFullAccess"}
    ),
}
SANDBOX_MODES = {
    "readOnly": "read-only",
    "workspaceWrite": "workspace-write",
    "dangerFullAccess": "full-access",
}


class Options:
    def __init__(self, models: object, started: JsonObject) -> None:
        """`models` of `model/list`, and the answer to `thread/start`."""
        self.models = [model for model in objects(models) if not model.get("hidden")]
        self.model = str(started.get("model") or "")
        self.effort = str(started.get("reasoningEffort") or "")
        sandbox = str(as_object(started.get("sandbox")).get("type"))
        self.mode = SANDBOX_MODES.get(sandbox, "workspace-write")
        self._changed: set[str] = set()

    def efforts(self) -> list[str]:
        levels = objects(self._model().get("supportedReasoningEfforts"))
        return [str(level.get("reasoningEffort")) for level in levels]

    def values(self, option: str) -> Collection[str]:
        if option == "model":
            return [str(model.get("id")) for model in self.models]
        return {"mode": list(MODES), "effort": self.efforts()}.get(option, [])

    def choose(self, option: str, value: str) -> None:
        """Codex hears of it with the next turn."""
        if value not in self.values(option):
            raise invalid_params(
                f"{option} {value!r} is not offered; there are {', '.join(self.values(option)) or 'none'}",
                option,
            )
        setattr(self, option, value)
        self._changed.add(option)
        if self.effort not in self.efforts():
            self.effort = str(self._model().get("defaultReasoningEffort") or "")

    def for_turn(self, cwd: str) -> JsonObject:
        """What `turn/start` must say: only what was chosen here, the rest is the user's own configuration."""
        told: JsonObject = {}
        if "mode" in self._changed:
            mode = MODES[self.mode]
            told["approvalPolicy"] = mode.approval
            told["sandboxPolicy"] = dict(mode.policy)
            if "writableRoots" in mode.policy:
                told["sandboxPolicy"]["writableRoots"] = [cwd]
        if "model" in self._changed:
            told["model"] = str(self._model().get("model") or self.model)
        if {"effort", "model"} & self._changed and self.effort:
            told["effort"] = self.effort
        return told

    def state(self) -> JsonObject:
        modes = [{"id": id, "name": mode.name, "description": mode.description} for id, mode in MODES.items()]
        return {
            "modes": {"currentModeId": self.mode, "availableModes": modes},
            "models": {
                "currentModelId": self._current(),
                "availableModels": [{"modelId": each.get("id"), **_named(each)} for each in self.models],
            },
            "configOptions": self.config(),
        }

    def config(self) -> list[JsonObject]:
        modes = [
            {"value": id, "name": mode.name, "description": mode.description} for id, mode in MODES.items()
        ]
        found = [_select("mode", "Mode", "mode", self.mode, modes)]
        if self.models:
            models = [{"value": each.get("id"), **_named(each)} for each in self.models]
            found.append(_select("model", "Model", "model", self._current(), models))
        if self.efforts():
            levels = [{"value": level, "name": level.capitalize()} for level in self.efforts()]
            found.append(_select("effort", "Effort", "thought_level", self.effort, levels))
        return found

    def _model(self) -> JsonObject:
        return next((each for each in self.models if self.model in (each.get("id"), each.get("model"))), {})

    def _current(self) -> str:
        return str(self._model().get("id") or self.model)


def _named(model: JsonObject) -> JsonObject:
    named: JsonObject = {"name": str(model.get("displayName") or model.get("id"))}
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
