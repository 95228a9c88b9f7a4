"""The options of a conversation: one state, sent both as modes and as config options.

The gateway derives `models` from the options for a client that asks for them; the schema does not have them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from dragoman.wire.errors import invalid_params
from dragoman.wire.json_types import JsonObject


@dataclass(frozen=True, slots=True)
class Value:
    """A possible value of an option."""

    id: str
    name: str
    description: str = ""

    def as_json(self, member: str) -> JsonObject:
        """The value as JSON; `member` is the name of its id."""
        named: JsonObject = {member: self.id, "name": self.name}
        return {**named, "description": self.description} if self.description else named


@dataclass(frozen=True, slots=True)
class Row:
    """An option as clients see it."""

    id: str
    name: str
    category: str | None = None
    description: str = ""


MODE = Row("mode", "Mode", "mode")
MODEL = Row("model", "Model", "model")
EFFORT = Row("effort", "Effort", "thought_level")


AUTO_RESUME = Row(
    "auto_resume", "Auto-resume", None, "A new session in this folder begins where the last one ended"
)
ON_OFF = [Value("true", "On"), Value("false", "Off")]


class Options(ABC):
    """The options of a conversation; an adapter implements `values`, and an option without values is not shown."""

    rows: tuple[Row, ...] = (MODE, MODEL, EFFORT)

    def __init__(self) -> None:
        self.current: dict[str, str] = {}

    @abstractmethod
    def values(self, option: str) -> list[Value]: ...

    @property
    def mode(self) -> str:
        return self.current["mode"]

    @property
    def model(self) -> str:
        return self.current["model"]

    def offered(self, option: str) -> list[str]:
        return [value.id for value in self._values(option)]

    def _values(self, option: str) -> list[Value]:
        return ON_OFF if option == AUTO_RESUME.id else self.values(option)

    def _rows(self) -> list[Row]:
        kept = [AUTO_RESUME] if AUTO_RESUME.id in self.current else []
        return [row for row in (*self.rows, *kept) if self._values(row.id)]

    def check(self, option: str, value: str) -> None:
        if option not in {row.id for row in self._rows()}:
            raise invalid_params(f"Unknown config option: {option}", "configId")
        if value not in self.offered(option):
            raise invalid_params(
                f"{option} {value!r} is not offered; there are {', '.join(self.offered(option))}", option
            )

    def state(self) -> JsonObject:
        """Members of the results of `session/new`, `session/load` and others."""
        return {
            "modes": {
                "currentModeId": self.mode,
                "availableModes": [value.as_json("id") for value in self.values("mode")],
            },
            "configOptions": self.config(),
        }

    def config(self) -> list[JsonObject]:
        return [self._as_json(row) for row in self._rows()]

    def _as_json(self, row: Row) -> JsonObject:
        told: JsonObject = {"id": row.id, "name": row.name}
        told |= {"description": row.description} if row.description else {}
        told |= {"category": row.category} if row.category else {}
        return {
            **told,
            "type": "select",
            "currentValue": self.current[row.id],
            "options": [value.as_json("value") for value in self._values(row.id)],
        }
