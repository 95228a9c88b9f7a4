"""`dragoman exec`: what a script, and a person at a terminal, gets to see."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.agents.agent_log import AgentLog
from support.command_line import CommandLine
from support.gateway_process import Start, agent
from support.pseudo_terminal import CTRL_C
from support.rpc_peer import is_request
from support.store.failing_store import WRITES, Faults

PERMISSION = 'permission {"toolCall":{"toolCallId":"c","title":"Look","kind":"%s"}}'


def chosen(output: str) -> str:
    """The option that the agent was answered."""
    report = next(line for line in output.splitlines() if line.startswith("permission "))
    outcome = json.JSONDecoder().raw_decode(report.removeprefix("permission "))[0]["result"]["outcome"]
    return str(outcome.get("optionId") or outcome["outcome"])


# -- what it prints


def test_the_answer_is_on_stdout_and_the_session_on_stderr(shell: CommandLine) -> None:
    done = shell.run("exec", "say Hello\nsay  world")
    assert (done.returncode, done.stdout) == (0, "Hello world\n")
    (line,) = done.stderr.splitlines()
    assert line.startswith("session dgm_")


def test_tool_calls_are_a_line_each_on_stderr(shell: CommandLine) -> None:
    done = shell.run("exec", "think hm\nsay First.\ntool x\ntool y failed\nsay Second.")
    assert done.stdout == "First.\nSecond.\n", "what follows a tool call is another message"
    assert done.stderr.splitlines()[:-1] == ["● Tool x … done", "● Tool y … failed"]


def test_quiet_prints_the_last_message_alone(shell: CommandLine) -> None:
    done = shell.run("exec", "--quiet", "say I will look.\ntool x\nsay It is \nsay 4")
    assert (done.returncode, done.stdout, done.stderr) == (0, "It is 4\n", "")


OUTPUT = (
    'update {"sessionUpdate":"tool_call","toolCallId":"c","title":"Count","kind":"execute","status":"pending",'
    '"content":[{"type":"content","content":{"type":"text","text":%s}}]}\n'
    'update {"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed"}'
)


def test_output_of_tools_is_shown_up_to_a_bound(shell: CommandLine) -> None:
    text = json.dumps("```\n" + "".join(f"{number}\n" for number in range(1, 31)) + "```")
    done = shell.run("exec", OUTPUT % text)
    shown = ["● Count … done", *(f"  {number}" for number in range(1, 21)), "  … 10 more lines"]
    assert done.stderr.splitlines()[:-1] == shown
    session = done.stderr.split()[-1]
    exported = shell.run("sessions", "export", session, "--format", "md").stdout
    assert "- *Count*\n\n<details><summary>Output</summary>\n\n```\n1\n2\n" in exported
    assert "30\n```\n\n</details>" in exported


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_a_command_of_the_builtin_agent_prints_what_it_brought(shell: CommandLine, quiet: list[str]) -> None:
    (shell.folder / "a.txt").write_text("TODO tidy up\n")
    done = shell.run("exec", *quiet, "-a", "builtin", "/search TODO")
    assert (done.returncode, done.stdout) == (0, "a.txt:1: TODO tidy up\n")
    assert "tidy up" not in done.stderr, "once is enough"


def test_json_prints_every_message_and_a_result(shell: CommandLine) -> None:
    done = shell.run("exec", "--json", "say Hello\ntool x")
    *messages, result = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = [each["params"]["update"]["sessionUpdate"] for each in messages if "method" in each]
    assert kinds == ["agent_message_chunk", "tool_call", "tool_call_update"]
    assert [each["id"] for each in messages if "result" in each] == [1, 2, 3]
    session = messages[1]["result"]["sessionId"]
    assert result == {
        "type": "result", "sessionId": session, "text": "Hello", "stopReason": "end_turn", "exitCode": 0,
        "usage": None, "cost": None, "changes": [],
    }  # fmt: skip
    assert done.stderr == ""


def test_json_tells_of_an_error_in_the_result(shell: CommandLine) -> None:
    done = shell.run("exec", "--json", "error -32603 out of tokens")
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["error"] == {"code": -32603, "message": "out of tokens"}
    assert done.returncode == result["exitCode"] == 1


def test_text_from_an_agent_does_not_command_the_terminal(shell: CommandLine) -> None:
    content = {"type": "text", "text": "a\u001b]0;evil\u0007b\r\n"}
    update = json.dumps({"sessionUpdate": "agent_message_chunk", "content": content})
    with shell.terminal("exec", f"update {update}") as term:
        assert term.end() == 0
        assert "\x1b]0" not in term.raw
        assert "a]0;evilb" in term.shown


# -- where the prompt comes from


@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_the_prompt_comes_from_stdin(shell: CommandLine, arguments: list[str]) -> None:
    assert shell.run("exec", *arguments, stdin="say grüße\n").stdout == "grüße\n"


def test_the_prompt_comes_from_a_file(shell: CommandLine) -> None:
    (shell.folder / "prompt.md").write_text("say from a file")
    assert shell.run("exec", "--file", "prompt.md").stdout == "from a file\n"


def test_the_agent_works_in_the_folder_that_is_given(shell: CommandLine) -> None:
    (shell.folder / "inner").mkdir()
    done = shell.run("exec", "--cwd", "inner", "cwd")
    assert done.stdout == f'cwd "{shell.folder / "inner"}"\n'


# -- sessions


def test_a_session_goes_on_by_the_beginning_of_its_id(shell: CommandLine) -> None:
    session = shell.session("say one")
    done = shell.run("exec", "-s", session[:12], "say two")
    assert done.stdout == "two\n", "what was said before is not said again"
    assert done.stderr.splitlines()[-1] == f"session {session}"
    (only,) = json.loads(shell.run("sessions", "list", "--json").stdout)
    assert only["id"] == session


def test_the_session_keeps_its_folder_and_its_agent(shell: CommandLine) -> None:
    shell.configure(agents={"other": agent("--session-ids", "o")})
    session = shell.run("exec", "-a", "other", "hi").stderr.split()[-1]
    (shell.folder / "else").mkdir()
    done = shell.run("exec", "-s", session, "cwd\nenv NOTHING")
    assert str(shell.folder) in done.stdout
    wrong = shell.run("exec", "-s", session, "-a", "scripted", "hi")
    assert wrong.returncode == 2
    assert "belongs to the agent other" in wrong.stderr


async def test_a_session_in_an_editor_gets_the_prompt_of_a_script(
    shell: CommandLine, dragoman: Start
) -> None:
    editor = await dragoman("acp", "scripted")
    await editor.initialize()
    session = await editor.new_session(shell.folder)
    done = await asyncio.to_thread(shell.run, "exec", "-s", session, "say from a script")
    assert (done.returncode, done.stdout) == (0, "from a script\n")
    await editor.text(session, "from a script")
    assert (await editor.prompt(session, "say still here")).texts == ["still here"]


async def test_a_session_in_the_middle_of_a_turn_is_left_alone(shell: CommandLine, dragoman: Start) -> None:
    editor = await dragoman("acp", "scripted")
    await editor.initialize()
    session = await editor.new_session(shell.folder)
    turn = editor.start_prompt(session, "permission")
    question = await editor.next_message(is_request("session/request_permission"))
    done = await asyncio.to_thread(shell.run, "exec", "--approve", "all", "-s", session, "hi")
    assert done.returncode == 1
    assert "A prompt is already in flight in this session" in done.stderr
    editor.reply(question, {"outcome": {"outcome": "selected", "optionId": "no"}})
    assert (await turn).report("permission")["result"]["outcome"]["optionId"] == "no", (
        "not the script's to answer"
    )


@pytest.mark.parametrize("output", [[], ["--quiet"], ["--json"]], ids=["plain", "quiet", "json"])
def test_a_session_that_can_only_be_read_is_said_not_to_be_saved(
    shell: CommandLine, faults: Faults, output: list[str]
) -> None:
    session = shell.session("say one")
    faults.fail(*WRITES)
    done = subprocess.run(
        faults.command("exec", *output, "-s", session, "say two"),
        env={**shell.env, **faults.settings["env"]},
        cwd=shell.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        text=True,
        check=False,
    )
    words = "This conversation is not being saved: No space is left for the test."
    assert done.returncode == 0, done.stderr
    if output == ["--json"]:
        messages = [json.loads(line) for line in done.stdout.splitlines()]
        told = [m["params"]["update"] for m in messages if "notice" in str(m.get("params"))]
        assert told == [{"sessionUpdate": "notice", "severity": "error", "title": words}]
    else:
        assert done.stdout == "two\n"
        assert done.stderr.splitlines().count(f"! {words}") == 1


# -- permissions


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
        terminal.until("[y] Allow, [2 Enter] Always allow, [n] Reject: ")
        terminal.type(f"x\n{typed}")  # what means nothing does nothing
        assert terminal.end() == (3 if option == "no" else 0)
        assert chosen(terminal.shown) == option


def test_one_key_answers_once_the_question_has_been_seen(shell: CommandLine) -> None:
    with shell.terminal("exec", "permission") as terminal:
        terminal.until("[n] Reject: ")
        while not terminal.ended():
            terminal.type("\x7fy")  # a key of the first moment becomes a line: erase it, press again
        assert '"optionId": "yes"' in terminal.shown


def test_no_single_key_answers_for_good(shell: CommandLine) -> None:
    with shell.terminal("exec", "permission") as terminal:
        terminal.until("[n] Reject: ")
        terminal.type("a2\x15" * 40 + "n\n")
        assert terminal.end() == 3
        assert chosen(terminal.shown) == "no"


def test_a_key_that_erases_takes_back_what_is_seen_too(shell: CommandLine) -> None:
    with shell.terminal("exec", "permission") as terminal:
        terminal.until("[n] Reject: ")
        terminal.type("no\x7f\x7f\x7fn\n")
        assert terminal.end() == 3
        assert "no" + 2 * "\x1b[D \x1b[D" + "n" in terminal.raw


EDIT = (
    'permission {"toolCall":{"toolCallId":"%s","title":"Edit","kind":"edit","content":'
    '[{"type":"diff","path":"/a.txt","oldText":"one\\n","newText":"two\\n"}]}}'
)


def test_a_person_sees_the_diff_before_they_decide(shell: CommandLine) -> None:
    with shell.terminal("exec", EDIT % "c") as terminal:
        terminal.until("[y] Allow")
        question = terminal.shown
        assert question.index("? Edit (edit)") < question.index("  -one\n  +two\n") < question.index("[y]")
        terminal.type("y\n")
        assert terminal.end() == 0


def test_keys_for_one_question_do_not_answer_the_next(shell: CommandLine) -> None:
    with shell.terminal("exec", "\n".join([EDIT % "c", EDIT % "d"])) as terminal:
        terminal.until("[y] Allow")
        terminal.type("y\nyy")
        terminal.until("[y] Allow", times=2)
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


# -- how it ends


@pytest.mark.parametrize(
    ("prompt", "code", "message"),
    [
        ("stop end_turn", 0, "session dgm_"),
        ("stop refusal", 3, "the agent scripted refused to go on"),
        ("stop max_tokens", 1, "the agent scripted stopped early (stop reason max_tokens)"),
        ("stop cancelled", 130, "session dgm_"),
        ("error -32603 out of tokens", 1, "dragoman: out of tokens"),
        ("crash 3", 1, "dragoman: The agent scripted exited with code 3"),
        ("kill KILL", 1, "dragoman: The agent scripted was ended by SIGKILL"),
    ],
)
def test_the_exit_code_says_how_it_ended(shell: CommandLine, prompt: str, code: int, message: str) -> None:
    done = shell.run("exec", prompt)
    assert done.returncode == code
    assert message in done.stderr


def test_time_over_cancels_the_turn(shell: CommandLine) -> None:
    done = shell.run("exec", "--timeout", "1", "sleep-until-cancel zzz")
    assert (done.returncode, done.stdout) == (124, "zzz\n")
    assert "no end within 1 s (--timeout): cancelled" in done.stderr


def test_time_is_over_even_if_the_agent_does_not_start(shell: CommandLine) -> None:
    shell.configure("--new-hang")
    assert shell.run("exec", "--timeout", "1", "hi").returncode == 124


def test_interrupted_it_cancels_the_turn_first(shell: CommandLine) -> None:
    with shell.start("exec", "cancel-endturn working") as running:
        assert running.stdout is not None and running.stdout.read(7) == "working"
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=30)
        assert running.returncode == 130
        assert "cancelling; Ctrl-C again ends at once" in err


def test_interrupted_twice_it_ends_though_the_agent_does_not_listen(shell: CommandLine) -> None:
    with shell.terminal("exec", "ignore-cancel working") as terminal:
        terminal.until("working")
        terminal.type(CTRL_C)
        terminal.until("Ctrl-C again ends at once")
        terminal.type(CTRL_C)
        assert terminal.end() == 130


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("output", ["--quiet", "--json"])
def test_a_full_disk_is_said_once(shell: CommandLine, output: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "dragoman", "exec", output, "say hello"],
            env=shell.env,
            cwd=shell.folder,
            stdin=subprocess.DEVNULL,
            timeout=60,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.count("No space left on device") == 1
    assert "Traceback" not in done.stderr


def test_nobody_reads_and_it_ends(shell: CommandLine) -> None:
    with shell.start("exec", "flood 100000 100") as running:
        assert running.stdout is not None and running.stderr is not None
        running.stdout.read(10)
        running.stdout.close()
        assert running.wait(timeout=30) == 1
        assert "Traceback" not in running.stderr.read()


# -- bad input


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


def test_nothing_is_left_running(shell: CommandLine, tmp_path: Path) -> None:
    done = shell.run("exec", "child\npid")
    pid = done.stdout.strip().rpartition("pid ")[2]
    assert not Path(f"/proc/{pid}").exists()


def test_when_a_rule_denied_the_only_call_the_exit_code_says_so(shell: CommandLine) -> None:
    (shell.home / "config.toml").write_text(
        '[[policy.rules]]\nname = "inside"\ndecision = "deny"\naccess = "write"\noutside_workspace = true\n'
    )
    done = shell.run("exec", "-a", "builtin", "--approve", "all", "/run touch ../made")
    assert done.returncode == 3
    assert "dragoman: nothing was done: it was denied by the rule inside" in done.stderr
    assert shell.run("exec", "-a", "builtin", "--approve", "all", "/run touch made").returncode == 0


def test_without_a_model_nothing_was_answered_and_the_exit_code_says_so(shell: CommandLine) -> None:
    done = shell.run("exec", "-a", "builtin", "What is in this folder?")
    assert done.returncode == 1
    assert "no language model is configured" in done.stdout
    assert "dragoman: the agent builtin has no language model that could answer" in done.stderr


# -- which session, and with which options


def test_the_last_session_of_the_folder_is_continued(shell: CommandLine, home: Path) -> None:
    nothing = shell.run("exec", "--continue", "hello")
    assert (nothing.returncode, "to continue" in nothing.stderr) == (2, True)
    shell.session("first")
    second = shell.session("second")
    again = shell.run("exec", "-c", "once more")
    assert again.stderr.strip().splitlines()[-1] == f"session {second}"
    assert shell.run("exec", "-c", "-s", second, "x").returncode == 2


def test_model_mode_and_other_options_are_set_before_the_prompt(shell: CommandLine, tmp_path: Path) -> None:
    heard = AgentLog(tmp_path / "heard.jsonl")
    shell.configure("--config-options", "--modes", *heard.flags)
    done = shell.run("exec", "--model", "large", "--mode", "code", "--name", "Big one", "hello")
    assert done.returncode == 0, done.stderr
    asked = [method for method in heard.methods if method.startswith("session/") and method != "session/new"]
    assert asked[:3] == ["session/set_config_option", "session/set_mode", "session/prompt"]
    assert "Big one" in shell.run("sessions", "list").stdout
    refused = shell.run("exec", "--option", "model=huge", "hello")
    assert (refused.returncode, "it has: small, large" in refused.stderr) == (2, True)
    assert shell.run("exec", "--option", "model", "hello").returncode == 2


def test_without_serve_a_prompt_is_not_handed_over(shell: CommandLine) -> None:
    done = shell.run("exec", "--no-wait", "hello")
    assert (done.returncode, "needs a running `dragoman serve`" in done.stderr) == (2, True)
    session = shell.session()
    told = shell.run("prompt", session, "hello").stderr
    assert f"`dragoman exec -s {session}`" in told
    assert (told.count("dragoman serve"), told.count("reached")) == (1, 0), told


def test_a_prompt_is_handed_to_serve(shell: CommandLine) -> None:
    with shell.start("serve", "--port", "0") as serving:
        assert serving.stdout is not None
        serving.stdout.readline()
        done = shell.run("exec", "--no-wait", "--name", "Later", "sleep-until-cancel")
        assert done.returncode == 0, done.stderr
        session = done.stdout.strip()
        (row,) = json.loads(shell.run("ps", "--json").stdout)
        assert (row["id"], row["state"], row["title"]) == (session, "working", "Later")
        for again in (["exec", "--no-wait", "-s", session, "hello"], ["prompt", "--now", session, "hello"]):
            refused = shell.run(*again)
            assert (refused.returncode, refused.stdout) == (1, "")
        assert shell.run("cancel", session).returncode == 0
        assert shell.run("prompt", session, "say thanks").stdout == f"{session}\n"
        assert shell.run("prompt", session, " ").returncode == 2


def test_json_tells_what_the_turn_changed(shell: CommandLine) -> None:
    shell.configure(checkpoints={"enabled": True}, agents={"scripted": agent(serve_fs=True)})
    done = shell.run("exec", "--json", "--approve", "all", f"fswrite {shell.folder}/made.txt one")
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["changes"] == [{"path": "made.txt", "status": "added", "added": 1, "removed": 0}]
