"""A session's modes, models and config options as one state, whichever form the agent uses (D-33, D-35, D-70, G-052).

Agents and clients have different protocol versions. What an agent sends in one of the three forms, clients get in all
of them: an option that stands in for `modes` or `models` of an old agent, and `modes` made from a new agent's options.
`models` are not in the schema any more: they are made only for a client that asks for them.

This state is complete; what one client does not know is left out when it is sent to that client.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from dragoman.gateway.json_types import JsonObject, as_object, decode_object
from dragoman.gateway.rewriting import dialects
from dragoman.rpc.request import Reply

MODE, MODEL = "mode", "model"
UPDATE = "config_option_update"
OFFERED = ("modes", "configOptions")


@dataclass(frozen=True, slots=True)
class Words:
    """Names in the older protocol for an option of one category."""

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
        """The categories that the agent itself sends in the older form."""
        self._older: dict[str, list[object]] = {}
        """By category: the values in the older form, which may differ (codex-acp 2.6: `model[effort]`)."""
        self.stand_ins: dict[str, str] = {}
        """By category: the id of the option that stands in for an old agent's modes or models."""
        self.result: JsonObject = {}
        """The session result with modes and options, for clients that attach later."""
        self._offered: JsonObject = {}

    def read_result(self, result: JsonObject) -> bool:
        """Read the result of `session/new` and the like, and add stand-ins and `modes`; True if it changed."""
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
                ):  # the schema has no `models`: `for_client` adds them for clients that ask
                    result[words.holder] = holder
                    changed = True
            listed = as_object(holder).get(words.available)
            self._older[category] = [each.get(words.id, each.get("id")) for each in _flat(listed)]
        if self.stand_ins:
            result["configOptions"] = self.full
        return changed

    def take_result(self, reply: Reply) -> JsonObject:
        """The result of `session/new`, `load`, `resume` or `fork`, without the session id."""
        # null is the documentation's answer to session/load (D-36)
        result = {} if reply.result == b"null" else decode_object(reply.result)
        self.read_result(result)
        result.pop("sessionId", None)
        self.result = result
        return dict(result)

    def take_offer(self) -> JsonObject:
        """The modes and options in the result, if they are not those of the last call; else empty."""
        offer = {name: self.result[name] for name in OFFERED if self.result.get(name)}
        if offer == self._offered:
            return {}
        self._offered = offer or self._offered
        return offer

    def read_update(self, update: JsonObject) -> bool:
        """Read and complete a `config_option_update`, or an older agent's `config_options`; True if it changed."""
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
        """Replace the options by a new list from the agent, and keep the stand-ins, which the agent does not know.

        v1 agents always list all options, so a missing one is gone. Older agents list only what changed (D-70): under
        the older name, or as an option without its type or values. Such a list is completed from the last full one.
        """
        fresh = [option for option in options if isinstance(option, dict)]
        if partial or any(_is_partial(option) for option in fresh):
            self.full = _merged(self.full, fresh)
            return
        known = [option.get("id") for option in fresh]  # an agent's ids may have any JSON type
        kept = [
            each
            for each in self.full
            if each.get("id") in self.stand_ins.values() and each.get("id") not in known
        ]
        self.full = [*fresh, *kept]

    def visible(self, *, boolean: bool) -> list[JsonObject]:
        """The options; boolean ones only for clients that declare support for them (ACP v1, config options)."""
        return without_booleans(self.full) if not boolean else self.full

    def for_client(self, result: JsonObject, *, boolean: bool, models: bool) -> JsonObject:
        """A session result for one client: without options that it does not know, with `models` only if it asks."""
        told = dict(result)
        if isinstance(told.get("configOptions"), list) and not boolean:
            told["configOptions"] = without_booleans(told["configOptions"])
        option = self.option(MODEL)
        if models and MODEL not in self.native and option is not None:
            told[WORDS[MODEL].holder] = _older(WORDS[MODEL], option)
        return told

    def option(self, category: str) -> JsonObject | None:
        return next((option for option in self.full if option.get("category") == category), None)

    def value(self, category: str) -> object:
        """The current value of the first option of a category; None if there is none."""
        for option in self.full:
            if option.get("category") == category:
                return option.get("currentValue")
        return None

    def current(self) -> dict[str, object]:
        """The current values, by category."""
        found = {category: self.option(category) for category in WORDS}
        return {category: each.get("currentValue") for category, each in found.items() if each is not None}

    def modes(self) -> list[object]:
        """Ids of the modes that the agent lists."""
        option = self.option(MODE)
        return [each.get("value") for each in _flat(option.get("options"))] if option is not None else []

    def choose(self, category: str, value: object) -> bool:
        """Set a value that was chosen in the older form; True if it differs from the current one."""
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
        """Whether the agent lists the value; True if it lists none at all."""
        told = [each.get("value") for each in _flat(as_object(self.option(category)).get("options"))]
        if older:
            told = self._older.get(category, [])
        return not told or value in told

    def in_older_words(self, category: str, value: object) -> bool:
        """Whether the value also exists in the older form."""
        return value in self._older.get(category, ())

    def write(self) -> None:
        """Update the result with the current options and values, for later clients."""
        self.result = self.written(self.result)

    def written(self, result: JsonObject) -> JsonObject:
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
    """Whether an option is boolean, by its value if the agent does not send its type."""
    return option.get("type") == "boolean" or (
        "type" not in option and isinstance(option.get("currentValue"), bool)
    )


def _is_partial(option: JsonObject) -> bool:
    """Whether an option lacks what v1 requires: a type, and the values of a select."""
    return "type" not in option or (option["type"] == "select" and "options" not in option)


def _merged(known: list[JsonObject], fresh: list[JsonObject]) -> list[JsonObject]:
    """Merge options by id (of any JSON type), in the known order; new ones come last."""
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
    """The values of an option as a flat list; they may be grouped."""
    found: list[JsonObject] = []
    for each in options if isinstance(options, list) else []:
        inner = as_object(each).get("options")
        found += [as_object(value) for value in inner] if isinstance(inner, list) else [as_object(each)]
    return found


def _named(words: Words, value: JsonObject) -> JsonObject:
    named = {words.id: value.get("value"), "name": value.get("name") or value.get("value")}
    return {**named, "description": value["description"]} if value.get("description") else named
