"""No record has a secret: of the configuration, of references, of the gateway, or before a command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from dragoman.audit import hiding
from dragoman.audit.hiding import MASK, Hiding
from dragoman.audit.read import Query, query
from dragoman.masking import mask_assigned
from dragoman.policy.load import act_of_command
from dragoman.policy.recorded import recorded, secrets_of
from support.gateway_process import Start, agent

KEY = "-----BEGIN KEY-----\nMIIEvgIBADANBgkqhkiG9w0\nAQEFAASCBKgwggSkAgEAAoIB\n-----END KEY-----"
HOSTILE = {
    "plain": "hunter2-value",
    "quotes": "hun\"ter'2 value",
    "backslash": "hun\\ter2\\value",
    "pattern": "hunter.*[2](value",
    "unicode": "hünter2-wert-✓",
    "address": "hun ter/2&value=x",
    "lines": KEY,
    "part of another": "hunter2-value-and-more",
}


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_a_value_is_hidden_wherever_it_stands(value: str) -> None:
    made = Hiding(HOSTILE.values())
    facts = {
        "title": f"run with {value} twice {value}",
        "why": {"deep": [1, None, ("x", value)], value: "as a name"},
        "json": json.dumps({"token": value}),
        "ascii": json.dumps({"token": value}, ensure_ascii=False),
        "url": f"https://example.org/?token={quote(value, safe='')}&x={quote_plus(value)}",
    }
    text = json.dumps(made.apply(facts), ensure_ascii=False)
    for form in hiding.forms(value):
        assert form not in text and json.dumps(form)[1:-1] not in text
    assert text.count(MASK) >= 8 and "twice" in text and "example.org" in text


def test_words_with_too_many_values_are_not_recorded() -> None:
    """To look for each value in each word would hold up the event loop."""
    values = [f"value-{number}" for number in range(1200)]
    act = {"commands": [{"words": [f"A={value}"]} for value in values]}
    facts = {"session": "dgm_a", "decision": "deny", "by": "value-7-rule", "act": act, "title": "x " * 100}
    told = Hiding().apply(facts, values)
    assert told == {
        "session": "dgm_a",
        "decision": "deny",
        "by": "***-rule",
        "withheld": "it has 1200 values of variables; with more than 200 no words are recorded",
    }
    few = Hiding().apply({"act": act["commands"][:200]}, values[:200] * 2)
    assert few == {"act": [{"words": ["A=***"]}] * 200}


def test_one_line_of_a_key_is_hidden_too() -> None:
    cleaned = Hiding([KEY]).apply({"output": "grep: MIIEvgIBADANBgkqhkiG9w0"})
    assert cleaned == {"output": f"grep: {MASK}"}


def test_a_token_of_a_gateway_is_known_by_its_form() -> None:
    token = "dgt_" + "a-B_9" * 8 + "xyz"
    cleaned = Hiding().apply({"title": f"curl -H 'Authorization: Bearer {token}' x"})
    assert cleaned == {"title": f"curl -H 'Authorization: Bearer {MASK}' x"}


def test_a_title_is_cut_after_its_secrets_are_gone() -> None:
    title = "x" * (hiding.LONGEST_TITLE - 4) + "hunter2-value"
    cleaned = Hiding(["hunter2-value"]).apply({"title": title})["title"]
    assert len(cleaned) <= hiding.LONGEST_TITLE and "hunt" not in cleaned


def test_the_number_of_hidden_values_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hiding, "MOST", 100)
    made = Hiding()
    for number in range(1000):
        made.add([f"value-{number:06d}"])
    assert len(made._values) == 100
    assert made.apply({"a": "value-000999"}) == {"a": MASK}


ASSIGNED = {
    "TOKEN=abc ./deploy": ("TOKEN=*** ./deploy", ["abc"]),
    "a=1 b='two words' run": ("a=*** b=*** run", ["1", "two words"]),
    'A="x\\"y z" run': ("A=*** run", ['x"y z']),
    'A=x"y z"w run': ("A=*** run", ["xy zw"]),
    "cd x && token=abc make": ("cd x && token=*** make", ["abc"]),
    "env -i token=abc make": ("env -i token=*** make", ["abc"]),
    "export token=abc; make": ("export token=***; make", ["abc"]),
    "make CC=gcc": ("make CC=***", ["gcc"]),
    "Run `x=1 y`": ("Run `x=*** y`", ["1"]),
    "dd if=disk of=copy": ("dd if=disk of=copy", []),
    "git clone --depth=1 --b=2": ("git clone --depth=1 --b=2", []),
    "read a.b=c, x == y": ("read a.b=c, x == y", []),
    "A=": ("A=", []),
    "": ("", []),
}


@pytest.mark.parametrize("text", ASSIGNED)
def test_values_of_variables_in_a_title(text: str) -> None:
    assert mask_assigned(text) == ASSIGNED[text]


def test_a_long_title_is_read_quickly() -> None:
    for text in ("a=b " * 1000, "A" * 4000, "env " * 1000, '"' * 4000, "A=" + "\\" * 3999):
        mask_assigned(text)


@pytest.mark.parametrize(
    "line",
    [
        "TOKEN=ab9 curl x",
        "env TOKEN=ab9 curl x",
        "export TOKEN=ab9; curl $TOKEN",
        "declare -x TOKEN=ab9",
        "bash -c 'TOKEN=ab9 curl x'",
        "sudo TOKEN=ab9 curl x",
    ],
)
def test_even_a_short_value_before_a_command_is_not_in_the_act(line: str) -> None:
    act = act_of_command(line, cwd="/w", workspace="/w")
    told = Hiding().apply({"act": recorded(act)}, secrets_of(act))
    if (
        "$TOKEN" not in line
    ):  # expanded, it is an argument like any other; values from six characters on are found
        assert "ab9" not in json.dumps(told)
    long = act_of_command(line.replace("ab9", "abcdef9"), cwd="/w", workspace="/w")
    assert "abcdef9" not in json.dumps(Hiding().apply({"act": recorded(long)}, secrets_of(long)))


async def test_no_secret_is_in_any_record_of_a_gateway(
    dragoman: Start, workspace: Path, home: Path, tmp_path: Path
) -> None:
    fetched = tmp_path / "fetched"
    fetched.write_text("fetched-secret-value\n")
    given = agent(env={"API_KEY": 'given "secret" value'}, secrets={"LATER": f"file:{fetched}"})
    gateway = await dragoman(agents={"scripted": given}, audit={"content": True})
    await gateway.initialize()

    def answer(params: Any) -> Any:
        (once,) = (each["optionId"] for each in params["options"] if each["kind"] == "allow_once")
        return {"outcome": {"outcome": "selected", "optionId": once}}

    gateway.on("session/request_permission", answer)
    session = await gateway.new_session(workspace)
    line = "PREFIX='prefix secret value' deploy --key 'given \"secret\" value' fetched-secret-value"
    tool: dict[str, Any] = {"toolCallId": "c1", "kind": "execute", "title": line, "status": "pending"}
    tool["rawInput"] = {"command": line, "nested": [json.dumps({"env": 'given "secret" value'})]}
    done = {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "completed"}
    done["rawOutput"] = "it said fetched-secret-value"
    asked = json.dumps({"toolCall": tool})
    update = json.dumps({"sessionUpdate": "tool_call", **tool})
    await gateway.prompt(session, f"update {update}\npermission {asked}\nupdate {json.dumps(done)}")
    await gateway.stop()
    found = list(query(home / "audit", Query(session=session)))
    assert [each["kind"] for each in found] == [
        *("session_begun", "tool_begun", "decision", "answer", "tool_ended")
    ]
    text = json.dumps(found)
    for secret in ("given", "fetched-secret", "prefix secret"):
        assert secret not in text, [each for each in found if secret in json.dumps(each)]
    assert found[1]["title"] == "PREFIX=*** deploy --key '***' ***"
    assert found[1]["rawInput"]["command"] == found[1]["title"] and found[-1]["rawOutput"] == "it said ***"
