"""`dragoman audit` and `dragoman policy replay` on the command line."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dragoman.audit.chain import Chain
from dragoman.cli.commands import root
from dragoman.policy.load import act_of_command
from dragoman.policy.recorded import recorded
from support.pseudo_terminal import Terminal


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path))
    chain = Chain(tmp_path / "audit")
    for line, decision in (("git status", "ask"), ("date", "deny"), ("git push", "ask")):
        act = recorded(act_of_command(line, cwd=str(tmp_path), workspace=str(tmp_path)))
        facts = {"session": "dgm_a", "agent": "claude", "decision": decision, "by": "default", "act": act}
        chain.append("decision", facts)
    chain.append("unmediated", {"session": "dgm_b", "agent": "codex", "title": "=HYPERLINK(x)"})
    chain.close()
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(root, list(arguments))


def lines(result: Result) -> list[dict[str, object]]:
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_query_and_tail(home: Path) -> None:
    assert len(lines(run("audit", "query", "--session", "dgm_a", "--json"))) == 3
    assert len(lines(run("audit", "query", "--since", "1h", "--decision", "deny", "--json"))) == 1
    (one,) = lines(run("audit", "tail", "--unmediated", "--json"))
    assert one["agent"] == "codex"
    shown = run("audit", "tail", "-n", "2").stdout
    assert "unmediated" in shown and "=HYPERLINK(x)" in shown and "git status" not in shown


def test_beginnings_of_processes_are_shown_if_asked_for(home: Path) -> None:
    for words in (("query",), ("tail",)):
        assert "chain" not in run("audit", *words).stdout
        for more in (("--all",), ("--kind", "chain"), ("--json",)):
            assert "chain" in run("audit", *words, *more).stdout
    assert "chain" in run("audit", "export").stdout


def test_the_table_names_the_rule_that_answered(home: Path) -> None:
    chain = Chain(home / "audit")
    for by in ("--approve none", "user"):
        chain.append("answer", {"session": "dgm_c", "by": by, "identity": "local", "decision": "deny"})
    chain.close()
    _, refused, said = run("audit", "query", "--session", "dgm_c", "--kind", "answer").stdout.splitlines()
    assert "--approve none" in refused and "local" not in refused
    assert said.split()[-1] == "local"


def test_a_session_by_its_beginning(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (f"dgm_abcd{letter * 20}" for letter in "xy")
    monkeypatch.setattr("dragoman.audit.chain.MOST_SESSIONS", 1)
    chain = Chain(home / "audit")
    for session in (first, second):
        chain.append("decision", {"session": session})
    for beginning in ("abcdx", "dgm_abcdx", first):
        (one,) = lines(run("audit", "query", "--session", beginning, "--json"))
        assert one["session"] == first
    chain.close()
    (one,) = lines(run("audit", "query", "--session", "abcdy", "--json"))
    assert one["session"] == second
    both = run("audit", "query", "--session", "abcd")
    assert both.exit_code == 2 and first in both.output and second in both.output
    assert "no such records" in run("audit", "query", "--session", "zzz").stdout


def test_one_record(home: Path) -> None:
    first = lines(run("audit", "query", "--json"))[1]
    assert lines(run("audit", "show", str(first["id"]), "--json")) == [first]
    missing = run("audit", "show", "20200101-aaaaaaaa:9")
    assert missing.exit_code == 1 and "there is no record" in missing.output


def test_an_export_holds_no_formula(home: Path) -> None:
    table = list(csv.reader(io.StringIO(run("audit", "export", "--format", "csv").stdout)))
    assert table[0][:3] == ["id", "at", "kind"]
    assert "'=HYPERLINK(x)" in [row[-1] for row in table]
    assert len(run("audit", "export").stdout.splitlines()) == 5


def test_verify_says_what_is_proved(home: Path, tmp_path: Path) -> None:
    good = run("audit", "verify")
    assert good.exit_code == 0 and "consistent here" in good.output and "Not anchored" in good.output
    (segment,) = (home / "audit").glob("*/*.ndjson")
    segment.write_bytes(segment.read_bytes().replace(b'"deny"', b'"allow"'))
    bad = run("audit", "verify")
    assert bad.exit_code == 1 and "NOT CONSISTENT" in bad.output and "changed after" in bad.output
    assert json.loads(run("audit", "verify", "--json").stdout)["consistent"] is False


def test_verify_counts_on_a_terminal_on_one_line(home: Path) -> None:
    chain = Chain(home / "audit")
    for _ in range(20_000):
        chain.append("decision", {})
    chain.close()
    with Terminal("audit", "verify", env={**os.environ, "DRAGOMAN_HOME": str(home)}, cwd=home) as terminal:
        assert terminal.end() == 0
    assert "10,000 records checked" in terminal.raw
    counting, _, said = terminal.raw.rpartition("\x1b[D")
    assert "\n" not in counting and said.startswith("20008 records in 2 chains")


def test_key(home: Path) -> None:
    before = json.loads(run("audit", "key", "--json").stdout)
    after = json.loads(run("audit", "key", "--new", "--json").stdout)
    assert before["fingerprint"] != after["fingerprint"]
    assert run("audit", "verify").exit_code == 0
    (changed,) = lines(run("audit", "query", "--kind", "key_changed", "--json"))
    assert (changed["former"], changed["fingerprint"]) == (before["fingerprint"], after["fingerprint"])
    (handed,) = (home / "audit").glob(f"{str(changed['id']).partition(':')[0]}/*.ndjson")
    assert before["fingerprint"] in handed.read_text().splitlines()[-1]
    (home / "audit" / "key").unlink()
    third = json.loads(run("audit", "key", "--new", "--json").stdout)
    assert third == json.loads(run("audit", "key", "--json").stdout)


def test_a_time_that_is_none_is_told(home: Path) -> None:
    wrong = run("audit", "query", "--since", "soon")
    assert wrong.exit_code == 2 and '"soon" is no time' in wrong.output


def test_rules_are_tried_on_the_past(home: Path, tmp_path: Path) -> None:
    draft = tmp_path / "draft.toml"
    draft.write_text('[[policy.rules]]\nname = "git"\ndecision = "allow"\ncommand = [["git", "status"]]\n')
    found = json.loads(run("policy", "replay", "--rules", str(draft), "--json").stdout)
    assert found["acts"] == 3
    changes = {(each["was"], each["now"]): each["count"] for each in found["changes"]}
    assert changes == {("ask", "allow"): 1, ("deny", "ask"): 1}
    shown = run("policy", "replay", "--rules", str(draft)).stdout
    assert "git status" in shown and "2 would be decided otherwise" in shown
    draft.write_text("[[policy.rules]]\ndecision = 7\n")
    broken = run("policy", "replay", "--rules", str(draft))
    assert broken.exit_code != 0
