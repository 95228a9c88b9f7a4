"""Modes, models and effort of a Codex thread. A mode is an approval policy and a sandbox policy together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dragoman.agents.native.options import EFFORT, MODE, MODEL, Options, Row, Value
from dragoman.wire.json_types import JsonObject, as_object, objects


@dataclass(frozen=True, slots=True)
class Mode:
    name: str
    description: str
    approval: str
    sandbox: str
    policy: JsonObject
    reviewer: str = "user"


WORKSPACE_WRITE: JsonObject = {
    "type": "workspaceWrite",
    "writableRoots": [],
    "networkAccess": False,
    "excludeTmpdirEnvVar": False,
    "excludeSlashTmp": False,
}
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
        WORKSPACE_WRITE,
    ),
    "auto-review": Mode(
        "Auto review",
        "Edit in the workspace; a model decides about the rest",
        "on-request",
        "workspace-write",
        WORKSPACE_WRITE,
        "auto_review",
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


COLLABORATION = Row("collaboration_mode", "Collaboration", None, "Do the work, or plan it with you first")
COLLABORATION_MODES = (
    Value("default", "Default", "Do the work"),
    Value("plan", "Plan", "Ask, and make a plan, before anything is changed"),
)


SPEED = Row("service_tier", "Speed", None, "How fast it answers, and at which price")
USUAL = "default"


class CodexOptions(Options):
    rows = (MODE, COLLABORATION, MODEL, EFFORT, SPEED)

    def __init__(self, models: object, started: JsonObject, folders: Sequence[str] = ()) -> None:
        """`models` is from `model/list`, `started` the answer to `thread/start`; `folders` are the additional ones."""
        super().__init__()
        self._folders = folders
        self._reviewer = started.get("approvalsReviewer")
        self.models = [model for model in objects(models) if not model.get("hidden") and model.get("id")]
        sandbox = str(as_object(started.get("sandbox")).get("type"))
        self.current = {
            "mode": self._first_mode(SANDBOX_MODES.get(sandbox, "workspace-write")),
            "model": str(started.get("model") or ""),
            "effort": str(started.get("reasoningEffort") or ""),
            "collaboration_mode": "default",
            SPEED.id: str(started.get("serviceTier") or USUAL),
        }
        self.current["model"] = str(self._model().get("id") or self.model)
        self._changed: set[str] = set()
        self._check_effort()
        self._check_speed()

    def _first_mode(self, mode: str) -> str:
        reviewed = self._reviewer is not None and self._reviewer != "user"
        return "auto-review" if reviewed and mode == "workspace-write" else mode

    def values(self, option: str) -> list[Value]:
        if option == COLLABORATION.id:
            return list(COLLABORATION_MODES)
        values = {"mode": self._modes, "model": self._models, "effort": self._efforts, SPEED.id: self._speeds}
        return values[option]()

    def choose(self, option: str, value: str) -> None:
        """Set an option; it is sent to Codex with the next turn."""
        self.check(option, value)
        self.current[option] = value
        self._changed.add(option)
        self._check_effort()
        self._check_speed()

    def _check_speed(self) -> None:
        if self.current[SPEED.id] not in self.offered(SPEED.id):
            self.current[SPEED.id] = USUAL

    def _check_effort(self) -> None:
        """Choose an effort that the model offers: Codex may not report one, and models differ."""
        offered = self.offered("effort")
        if self.current["effort"] not in offered:
            usual = str(self._model().get("defaultReasoningEffort") or "")
            self.current["effort"] = usual if usual in offered else next(iter(offered), "")

    def for_turn(self, cwd: str) -> JsonObject:
        """Members of `turn/start`: only the options chosen here, the rest is the user's own configuration."""
        told: JsonObject = {}
        if "mode" in self._changed:
            mode = MODES[self.mode]
            told["approvalPolicy"] = mode.approval
            told["sandboxPolicy"] = dict(mode.policy)
            if "writableRoots" in mode.policy:
                told["sandboxPolicy"]["writableRoots"] = [cwd, *self._folders]
            if self._reviewer is not None:
                told["approvalsReviewer"] = mode.reviewer
        if "model" in self._changed:
            told["model"] = str(self._model().get("model") or self.model)
        if {"effort", "model"} & self._changed and self.current["effort"]:
            told["effort"] = self.current["effort"]
        if SPEED.id in self._changed:
            speed = self.current[SPEED.id]
            told["serviceTier"] = None if speed == USUAL else speed
        if COLLABORATION.id in self._changed:
            told["collaborationMode"] = self._collaboration()
        return told

    def _collaboration(self) -> JsonObject:
        """The collaboration mode; overrides model and effort, so it repeats them; null: the mode's own instructions."""
        settings = {
            "model": str(self._model().get("model") or self.model),
            "reasoning_effort": self.current["effort"] or None,
            "developer_instructions": None,
        }
        return {"mode": self.current[COLLABORATION.id], "settings": settings}

    def _modes(self) -> list[Value]:
        """The modes; without `approvalsReviewer` in Codex's answer, only those that the user reviews."""
        return [
            Value(id, mode.name, mode.description)
            for id, mode in MODES.items()
            if mode.reviewer == "user" or self._reviewer is not None
        ]

    def _speeds(self) -> list[Value]:
        """The service tiers; empty, so that the option is not shown, for a model without any."""
        tiers = [
            Value(str(tier["id"]), str(tier.get("name") or tier["id"]), str(tier.get("description") or ""))
            for tier in objects(self._model().get("serviceTiers"))
            if tier.get("id")
        ]
        return [Value(USUAL, "Usual"), *tiers] if tiers else []

    def _models(self) -> list[Value]:
        return [
            Value(
                str(model["id"]),
                str(model.get("displayName") or model["id"]),
                str(model.get("description") or ""),
            )
            for model in self.models
        ]

    def _efforts(self) -> list[Value]:
        levels = objects(self._model().get("supportedReasoningEfforts"))
        named = [str(level.get("reasoningEffort")) for level in levels]
        return [Value(level, level.capitalize()) for level in named]

    def _model(self) -> JsonObject:
        return next(
            (model for model in self.models if self.model in (model.get("id"), model.get("model"))), {}
        )
