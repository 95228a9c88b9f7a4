"""What `dragoman exec` says when it cannot begin."""

from __future__ import annotations

import pytest

from support.command_line import CommandLine


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([""], "the prompt is empty"),
        (["--sandbox", "nowhere", "hi"], 'there is no sandbox "nowhere"'),
        (["  \n"], "the prompt is empty"),
        ([], "the prompt is empty"),
        (["--json", "--quiet", "hi"], "give either --json or --quiet"),
        (["--file", "nowhere", "-"], "nowhere"),
        (["--cwd", "nowhere", "hi"], "nowhere is not a folder"),
        (["-a", "scrpted", "hi"], 'there is no agent "scrpted": did you mean scripted?'),
        (["-s", "dgm_aaaaaaaa", "hi"], 'there is no session "dgm_aaaaaaaa"'),
        (["-s", "dgm_a", "hi"], "too short for a session id"),
        (["--timeout", "0", "hi"], "--timeout"),
        (["--approve", "some", "hi"], "--approve"),
    ],
)
def test_bad_usage_is_explained(shell: CommandLine, arguments: list[str], message: str) -> None:
    done = shell.run("exec", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_a_prompt_that_is_not_text_is_refused(shell: CommandLine) -> None:
    done = shell.run("exec", stdin=b"caf\xe9")
    assert done.returncode == 2
    assert "the prompt from stdin is not UTF-8 text (byte 3)" in done.stderr


def test_without_a_prompt_at_a_terminal_it_says_what_to_do(shell: CommandLine) -> None:
    with shell.terminal("exec") as terminal:
        assert terminal.end() == 2
        assert "give PROMPT or --file, or pipe it to stdin" in terminal.shown


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--exit-on-start", "4", "--stderr-on-start", "no licence"], "no licence"),
        (["--init-error"], "initialize refused by the script"),
        (["--new-error"], "session/new refused by the script"),
        (["--auth-required"], "the agent scripted wants you to log in first"),
    ],
)
def test_an_agent_that_does_not_start_is_explained(
    shell: CommandLine, flags: list[str], message: str
) -> None:
    shell.configure(*flags)
    done = shell.run("exec", "hi")
    assert (done.returncode, done.stdout) == (1, "")
    assert message in done.stderr


def test_an_agent_that_is_not_installed_is_explained(shell: CommandLine) -> None:
    shell.configure(agents={"absent": {"kind": "acp", "command": ["/nowhere/agent"]}})
    done = shell.run("exec", "-a", "absent", "hi")
    assert done.returncode == 1
    assert 'The agent "absent" is not installed' in done.stderr


def test_without_a_journal_it_works_and_offers_no_session(shell: CommandLine) -> None:
    shell.configure(sessions={"journal": False})
    done = shell.run("exec", "say hi")
    assert (done.returncode, done.stdout, done.stderr) == (0, "hi\n", "")
    again = shell.run("exec", "-s", "dgm_aaaaaaaa", "say hi")
    assert again.returncode == 2
    assert "sessions.journal is false" in again.stderr
