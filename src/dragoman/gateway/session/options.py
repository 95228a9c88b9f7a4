"""A session's modes, models and config options: one state, whatever shape the agent speaks (D-33, D-35, D-70, G-052).

Agents and clients are of different ages. What an agent tells in one of the three shapes, clients see in all of them:
an option that stands in for `modes` or `models` of an old agent, and `modes` made of a new agent's options. `models` are
not in the schema any more: they are made only for a client that asks for them.

Here is the whole truth; what one client does not know is left out when that client is told.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from dragoman.gateway.json_types import JsonObject, as_object
from dragoman.gateway.rewriting import dialects

MODE, MODEL = "mode", "model"
UPDATE = "config_option_update"


@dataclass(frozen=True, slots=True)
class Words:
    """The older words for an option of one category."""

    name: str
    holder: str
    current: str
    available: str
    id: str
    update: str


WORDS = {
    MODE: Words("Mode", "modes", "currentModeId", "availableModes", "id", "current_mode_update"),
    MODEL: Words("Model", "models", "currentModelId", "availableModels", "modelId", "current_model_update"),
}


class Options:
    def __init__(self) -> None:
        self.full: list[JsonObject] = []
        self.native: set[str] = set()
        """The categories that the agent itself tells in the older words."""
        self._older: dict[str, list[object]] = {}
        """By category: the values in the older words, which may be others (codex-acp 2.6: `model[effort]`)."""
        self.stand_ins: dict[str, str] = {}
        """By category: the option that stands in for an old agent's modes or models."""

    def read_result(self, result: JsonObject) -> bool:
        """The result of `session/new` and its like, completed with stand-ins and `modes`; True if it changed."""
        changed = dialects.read_session_result(result)
        options = result.get("configOptions")
        self.full = [each for each in options if isinstance(each, dict)] if isinstance(options, list) else []
        self.native = {each for each, words in WORDS.items() if isinstance(result.get(words.holder), dict)}
        self.stand_ins = {}
        for category, words in WORDS.items():
            option, holder = self.option(category), result.get(words.holder)
            if category in self.native and option is None:
                self.full = [*self.full, self._stand_in(category, words, result[words.holder])]
                changed = True
            elif category not in self.native and option is not None:
                holder = _older(words, option)
                if (
                    category == MODE
                ):  # the schema has no `models`: only who asks for them gets them, in `for_client`
                    result[words.holder] = holder
                    changed = True
            listed = as_object(holder).get(words.available)
            self._older[category] = [each.get(words.id, each.get("id")) for each in _flat(listed)]
        if self.stand_ins:
            result["configOptions"] = self.full
        return changed

    def read_update(self, update: JsonObject) -> bool:
        """A `config_option_update`, or an older agent's `config_options`; True if it changed."""
        older, options = update.get("sessionUpdate") == dialects.PARTIAL_OPTIONS, update.get("configOptions")
        if older:
            update["sessionUpdate"] = UPDATE
        if not isinstance(options, list):
            return older
        self.replace(options, partial=older)
        if self.full == options:
            return older
        update["configOptions"] = self.full
        return True

    def replace(self, options: list[Any], *, partial: bool = False) -> None:
        """A new list of the agent's; it does not know of the stand-ins.

        v1 always tells all options, so what is missing is gone. Older agents tell only what changed (D-70): under the
        older name, or as an option without its type or values. Such a list is completed from the last full one.
        """
        fresh = [option for option in options if isinstance(option, dict)]
        if partial or any(_is_partial(option) for option in fresh):
            self.full = _merged(self.full, fresh)
            return
        known = [option.get("id") for option in fresh]  # of any type: they are the agent's
        kept = [
            each
            for each in self.full
            if each.get("id") in self.stand_ins.values() and each.get("id") not in known
        ]
        self.full = [*fresh, *kept]

    def visible(self, *, boolean: bool) -> list[JsonObject]:
        """Boolean options only for clients that said they know them (ACP v1, config options)."""
        return without_booleans(self.full) if not boolean else self.full

    def for_client(self, result: JsonObject, *, boolean: bool, models: bool) -> JsonObject:
        """A session result as one client takes it: without options that it does not know, `models` only if it asks."""
        told = dict(result)
        if isinstance(told.get("configOptions"), list) and not boolean:
            told["configOptions"] = without_booleans(told["configOptions"])
        option = self.option(MODEL)
        if models and MODEL not in self.native and option is not None:
            told[WORDS[MODEL].holder] = _older(WORDS[MODEL], option)
        return told

    def option(self, category: str) -> JsonObject | None:
        return next((option for option in self.full if option.get("category") == category), None)

    def current(self) -> dict[str, object]:
        """What is chosen, by category."""
        found = {category: self.option(category) for category in WORDS}
        return {category: each.get("currentValue") for category, each in found.items() if each is not None}

    def choose(self, category: str, value: object) -> bool:
        """Note a choice that was made in the older words; True if it is another than before."""
        option = self.option(category)
        if option is None or option.get("currentValue") == value:
            return False
        if value not in [each.get("value") for each in _flat(option.get("options"))]:
            return False
        self.full = copy.deepcopy(self.full)  # earlier answers hold the former list
        for each in self.full:
            if each.get("id") == option.get("id"):
                each["currentValue"] = value
        return True

    def offers(self, category: str, value: object, *, older: bool = False) -> bool:
        """Whether it is among the values that are told; where none are, nothing is known."""
        told = [each.get("value") for each in _flat(as_object(self.option(category)).get("options"))]
        if older:
            told = self._older.get(category, [])
        return not told or value in told

    def in_older_words(self, category: str, value: object) -> bool:
        """Whether it is a value there, too."""
        return value in self._older.get(category, ())

    def written(self, result: JsonObject) -> JsonObject:
        """An earlier result, as it would be now."""
        told = dict(result)
        if self.full or "configOptions" in told:
            told["configOptions"] = self.full
        for category, value in self.current().items():
            words = WORDS[category]
            if isinstance(told.get(words.holder), dict) and self.in_older_words(category, value):
                told[words.holder] = {**told[words.holder], words.current: value}
        return told

    def _stand_in(self, category: str, words: Words, holder: JsonObject) -> JsonObject:
        taken = [option.get("id") for option in self.full]
        self.stand_ins[category] = category if category not in taken else f"_{category}"
        available = holder.get(words.available)
        choices: list[Any] = available if isinstance(available, list) else []
        return {
            "id": self.stand_ins[category],
            "name": words.name,
            "category": category,
            "type": "select",
            "currentValue": holder.get(words.current),
            "options": [_choice(words, as_object(each)) for each in choices],
        }


def without_booleans(options: list[Any]) -> list[Any]:
    return [option for option in options if not _is_boolean(as_object(option))]


def _is_boolean(option: JsonObject) -> bool:
    """By its value where the agent does not say its type."""
    return option.get("type") == "boolean" or (
        "type" not in option and isinstance(option.get("currentValue"), bool)
    )


def _is_partial(option: JsonObject) -> bool:
    """v1 requires a type, and the values of a select."""
    return "type" not in option or (option["type"] == "select" and "options" not in option)


def _merged(known: list[JsonObject], fresh: list[JsonObject]) -> list[JsonObject]:
    """By id (of any JSON type), in the known order; what is new comes last."""
    merged = [dict(option) for option in known]
    for option in fresh:
        former = next((each for each in merged if each.get("id") == option.get("id")), None)
        if former is None:
            merged.append(option)
        else:
            former.update(option)
    return merged


def _choice(words: Words, each: JsonObject) -> JsonObject:
    value = each.get(words.id, each.get("id"))
    choice: JsonObject = {"value": value, "name": each.get("name") or value}
    if each.get("description") is not None:
        choice["description"] = each["description"]
    return choice


def _older(words: Words, option: JsonObject) -> JsonObject:
    values = [_named(words, value) for value in _flat(option.get("options"))]
    return {words.current: option.get("currentValue"), words.available: values}


def _flat(options: object) -> list[JsonObject]:
    """Values may stand in groups."""
    found: list[JsonObject] = []
    for each in options if isinstance(options, list) else []:
        inner = as_object(each).get("options")
        found += [as_object(value) for value in inner] if isinstance(inner, list) else [as_object(each)]
    return found


def _named(words: Words, value: JsonObject) -> JsonObject:
    named = {words.id: value.get("value"), "name": value.get("name") or value.get("value")}
    return {**named, "description": value["description"]} if value.get("description") else named
