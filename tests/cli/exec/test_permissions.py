"""How `dragoman exec` answers permission questions: by its rule, or by a person."""

from __future__ import annotations

import json

import pytest

from support.command_line import CommandLine

PERMISSION = 'permission {"toolCall":{"toolCallId":"c","title":"Look","kind":"%s"}}'


def chosen(output: str) -> str:
    """The option that the agent was answered."""
    report = next(line for line in output.splitlines() if line.startswith("permission "))
    outcome = json.JSONDecoder().raw_decode(report.removeprefix("permission "))[0]["result"]["outcome"]
    return str(outcome.get("optionId") or outcome["outcome"])


@pytest.mark.parametrize(
    ("approve", "kind", "option"),
    [
        (["--approve", "all"], "execute", "yes"),
        (["--approve", "reads"], "read", "yes"),
        (["--approve", "reads"], "search", "yes"),
        (["--approve", "reads"], "fetch", "no"),
        (["--approve", "reads"], "execute", "no"),
        (["--approve", "none"], "read", "no"),
        ([], "read", "no"),
    ],
)
def test_permissions_follow_the_rule(shell: CommandLine, approve: list[str], kind: str, option: str) -> None:
    done = shell.run("exec", *approve, PERMISSION % kind)
    assert chosen(done.stdout) == option
    refused = f"refused: Look ({kind}) (--approve {approve[1] if approve else 'none'}; --approve all"
    assert (refused in done.stderr) == (option == "no")


@pytest.mark.parametrize(
    ("kind", "hint"), [("execute", "--approve all allows it)"), ("read", "--approve all or reads allows it)")]
)
def test_a_refusal_says_what_would_allow_it(shell: CommandLine, kind: str, hint: str) -> None:
    assert hint in shell.run("exec", PERMISSION % kind).stderr


def test_the_kind_is_known_from_the_tool_call_if_the_question_does_not_say(shell: CommandLine) -> None:
    call = '{"sessionUpdate":"tool_call","toolCallId":"c","title":"Look","kind":"read","status":"pending"}'
    ask = 'permission {"toolCall":{"toolCallId":"c"}}'
    assert chosen(shell.run("exec", "--approve", "reads", f"update {call}\n{ask}").stdout) == "yes"


def test_a_read_that_carries_a_command_is_no_read(shell: CommandLine) -> None:
    tool = '{"toolCallId":"c","title":"Look","kind":"read","rawInput":{"command":"rm -r x"}}'
    assert chosen(shell.run("exec", "--approve", "reads", f'permission {{"toolCall":{tool}}}').stdout) == "no"


def test_a_question_without_a_way_to_refuse_is_cancelled(shell: CommandLine) -> None:
    options = '{"options":[{"optionId":"go","name":"Go","kind":"allow_once"}]}'
    assert chosen(shell.run("exec", f"permission {options}").stdout) == "cancelled"


@pytest.mark.parametrize(("typed", "option"), [("y\n", "yes"), ("2\n", "always"), ("n\n", "no")])
def test_a_person_answers(shell: CommandLine, typed: str, option: str) -> None:
    with shell.terminal("exec", "permission") as terminal:
        terminal.until("Answer: ")
        assert "  y        Allow\n  2 Enter  Always allow\n  n        Reject\n" in terminal.shown
        assert (
            terminal.shown.index("? Run it")
            < terminal.shown.index("is not understood")
            < terminal.shown.index(" y ")
        )
        terminal.type(f"x\n{typed}")  # what means nothing does nothing
        assert terminal.end() == (3 if option == "no" else 0)
        assert chosen(terminal.shown) == option


def test_one_key_answers_once_the_question_has_been_seen(shell: CommandLine) -> None:
    with shell.terminal("exec", "permission") as terminal:
        terminal.until("Answer: ")
        while not terminal.ended():
            terminal.type("\x7fy")  # a key of the first moment becomes a line: erase it, press again
        assert '"optionId": "yes"' in terminal.shown


def test_no_single_key_answers_for_good(shell: CommandLine) -> None:
    with shell.terminal("exec", "permission") as terminal:
        terminal.until("Answer: ")
        terminal.type("a2\x15" * 40 + "n\n")
        assert terminal.end() == 3
        assert chosen(terminal.shown) == "no"


def test_a_key_that_erases_takes_back_what_is_seen_too(shell: CommandLine) -> None:
    with shell.terminal("exec", "permission") as terminal:
        terminal.until("Answer: ")
        terminal.type("no\x7f\x7f\x7fn\n")
        assert terminal.end() == 3
        assert "no" + 2 * "\x1b[D \x1b[D" + "n" in terminal.raw


EDIT = (
    'permission {"toolCall":{"toolCallId":"%s","title":"Edit","kind":"edit","content":'
    '[{"type":"diff","path":"/a.txt","oldText":"one\\n","newText":"two\\n"}]}}'
)


def test_a_person_sees_the_diff_before_they_decide(shell: CommandLine) -> None:
    with shell.terminal("exec", EDIT % "c") as terminal:
        terminal.until("Answer: ")
        question = terminal.shown
        assert question.index("? Edit (edit)") < question.index("  -one\n  +two\n") < question.index("  y ")
        terminal.type("y\n")
        assert terminal.end() == 0


def test_keys_for_one_question_do_not_answer_the_next(shell: CommandLine) -> None:
    with shell.terminal("exec", "\n".join([EDIT % "c", EDIT % "d"])) as terminal:
        terminal.until("Answer: ")
        terminal.type("y\nyy")
        terminal.until("Answer: ", times=2)
        terminal.type("\x15n\n")
        assert terminal.end() == 0
        assert '"optionId": "no"' in terminal.shown or '"optionId":"no"' in terminal.shown


def test_when_everything_was_refused_the_exit_code_says_so(shell: CommandLine) -> None:
    done = shell.run("exec", "-a", "builtin", "--approve", "none", "/run touch made")
    assert (done.returncode, done.stdout) == (3, "Not done: it was not allowed.\n")
    assert "dragoman: nothing was done" in done.stderr
    assert not (shell.folder / "made").exists()
    session = done.stderr.split()[-1]
    assert "reject_once by --approve none" in shell.run("sessions", "show", session).stdout


def test_when_a_rule_denied_the_only_call_the_exit_code_says_so(shell: CommandLine) -> None:
    (shell.home / "config.toml").write_text(
        '[[policy.rules]]\nname = "inside"\ndecision = "deny"\naccess = "write"\noutside_workspace = true\n'
    )
    done = shell.run("exec", "-a", "builtin", "--approve", "all", "/run touch ../made")
    assert done.returncode == 3
    assert "dragoman: nothing was done: it was denied by the rule inside" in done.stderr
    assert shell.run("exec", "-a", "builtin", "--approve", "all", "/run touch made").returncode == 0
