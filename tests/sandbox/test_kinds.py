"""What holds for an agent in a box of any kind: the client sees its own paths, and nothing stays behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.agents.agent_log import AgentLog
from support.clients.sample_answers import ALLOW, EVERYTHING
from support.gateway_process import Start, gone, marked_processes
from support.rpc_peer import is_request
from support.sandboxes.sandbox_kinds import Kind

CAPABILITIES = json.dumps({"mcpCapabilities": {"http": True}})


def tool_call(root: str) -> dict[str, Any]:
    return {
        "sessionUpdate": "tool_call",
        "toolCallId": "t1",
        "title": f"Edit {root}/src/a.txt",
        "kind": "edit",
        "locations": [{"path": f"{root}/src/a.txt", "line": 1}],
        "content": [
            {"type": "diff", "path": f"{root}/src/a.txt", "oldText": "hello", "newText": root},
            {
                "type": "content",
                "content": {"type": "resource_link", "name": "a", "uri": f"file://{root}/a%20b"},
            },
        ],
        "rawInput": {"path": f"{root}/src/a.txt"},
    }


@pytest.mark.rule("G-150", "G-151", "G-152")
async def test_an_agent_edits_the_workspace_and_the_client_sees_its_own_paths(
    dragoman: Start, kind: Kind, project: Path
) -> None:
    gateway = await dragoman("acp", "scripted", **kind.config())
    await gateway.initialize()
    session = await gateway.new_session(project / "src")
    edit = "sh cd .. && echo edited >> src/a.txt && pwd"
    turn = await gateway.prompt(session, f"cwd\n{edit}\nupdate {json.dumps(tool_call(kind.inside))}")
    assert (project / "src" / "a.txt").read_text() == "hello\nedited\n"
    assert turn.report("sh")["code"] == 0, turn.report("sh")
    seen = next(each for each in turn.updates if each.get("sessionUpdate") == "tool_call")
    wanted = tool_call(str(project))
    wanted["title"], wanted["rawInput"] = (
        f"Edit {kind.inside}/src/a.txt",
        {"path": f"{kind.inside}/src/a.txt"},
    )
    wanted["content"][0]["newText"] = kind.inside
    wanted["content"][1]["content"]["uri"] = f"file://{str(project).replace(' ', '%20')}/a%20b"
    assert seen == wanted


@pytest.mark.rule("G-151")
async def test_the_agent_gets_translated_params(
    dragoman: Start, kind: Kind, project: Path, tmp_path: Path
) -> None:
    heard = AgentLog(project / "heard.jsonl")
    flags = [flag.replace(str(project), kind.inside) for flag in heard.flags]
    gateway = await dragoman("acp", "scripted", **kind.config(*flags, "--caps", CAPABILITIES))
    await gateway.initialize()
    server = {
        "name": "m",
        "command": f"{project}/bin/m",
        "args": [f"{project}/x", f"--y={project}"],
        "env": [],
    }
    far = {"type": "http", "name": "far", "url": "http://host.example/mcp", "headers": []}
    session = await gateway.new_session(project / "src", mcpServers=[server, far])
    link = {
        "type": "resource_link",
        "name": "a",
        "uri": f"file://{str(project).replace(' ', '%20')}/src/a.txt",
    }
    await gateway.prompt(session, [{"type": "text", "text": f"say {project}"}, link])
    new = heard.params("session/new")[0]
    assert new["cwd"] == f"{kind.inside}/src"
    translated = {**server, "command": f"{kind.inside}/bin/m", "args": [f"{kind.inside}/x", f"--y={project}"]}
    assert new["mcpServers"] == [translated, far]
    prompt = heard.params("session/prompt")[0]["prompt"]
    assert prompt[0]["text"] == f"say {project}"
    assert prompt[1]["uri"] == f"file://{kind.inside}/src/a.txt"


@pytest.mark.rule("G-151")
async def test_questions_reach_the_client_with_its_own_paths(
    dragoman: Start, kind: Kind, project: Path
) -> None:
    gateway = await dragoman("acp", "scripted", **kind.config())
    await gateway.initialize(clientCapabilities=EVERYTHING)
    gateway.on("session/request_permission", ALLOW)
    session = await gateway.new_session(project)
    asked = json.dumps({"toolCall": {"toolCallId": "c", "locations": [{"path": f"{kind.inside}/a"}]}})
    await gateway.prompt(session, f"permission {asked}")
    question = await gateway.next_message(is_request("session/request_permission"))
    assert question["params"]["toolCall"]["locations"] == [{"path": f"{project}/a"}]


async def test_files_and_commands_that_the_gateway_serves_obey_the_box(
    dragoman: Start, kind: Kind, project: Path
) -> None:
    gateway = await dragoman("acp", "scripted", **kind.config(serve_fs=True, serve_terminal=True))
    await gateway.initialize()
    session = await gateway.new_session(project)
    secret = project.parent / "not-shown"
    secret.write_text("secret\n")
    (project / "out").symlink_to(secret)
    turn = await gateway.prompt(
        session,
        f"fswrite {kind.inside}/new.txt written\nfsread {kind.inside}/src/a.txt\nterminal pwd\nterminal env",
    )
    if kind.name == "ssh":  # another machine's files are not the gateway's to serve
        assert turn.report("fswrite")["error"]["code"] == -32601
    else:
        assert (project / "new.txt").read_text() == "written"
        assert turn.report("fsread") == {"result": {"content": "hello\n"}}
    where, environment = turn.reports("terminal/output")
    assert Path(where["result"]["output"].strip()).name in (Path(kind.inside).name, project.name)
    assert "TEST_GATEWAY_MARK" not in environment["result"]["output"]
    for path in ("out", "../x", str(secret), "/dev/zero"):
        turn = await gateway.prompt(session, f"fsread {Path(kind.inside, path)}")
        assert "error" in turn.report("fsread"), path


async def test_the_whole_tree_ends_with_the_session_inside_the_box_too(
    dragoman: Start, kind: Kind, project: Path
) -> None:
    gateway = await dragoman("acp", "scripted", **kind.config())
    await gateway.initialize()
    session = await gateway.new_session(project)
    token = f"{project.parent.name}-{kind.name}"
    stray = f"sh SANDBOX_STRAY={token} setsid sleep 1000 >/dev/null 2>&1 & echo"
    await gateway.prompt(session, f"orphan\nchild\n{stray}")
    assert strays(token)
    await gateway.request("session/close", {"sessionId": session})
    await gone(lambda: strays(token))


async def test_the_whole_tree_ends_when_the_gateway_is_killed(
    dragoman: Start, kind: Kind, project: Path
) -> None:
    gateway = await dragoman("acp", "scripted", **kind.config())
    await gateway.initialize()
    session = await gateway.new_session(project)
    token = f"{project.parent.name}-{kind.name}-kill"
    await gateway.prompt(session, f"sh SANDBOX_STRAY={token} setsid sleep 1000 >/dev/null 2>&1 & echo")
    assert strays(token)
    await gateway.kill()
    await gone(lambda: strays(token))
    await gone(lambda: marked_processes(gateway.mark))


async def test_secrets_go_in_by_name_and_nothing_else_does(
    dragoman: Start, kind: Kind, project: Path, tmp_path: Path
) -> None:
    (tmp_path / "key").write_text("from a file\n")
    secrets = {"FROM_FILE": f"file:{tmp_path}/key", "RENAMED": "env:HOST_NAME_OF_IT"}
    config = kind.config(secrets=secrets, env={"CONFIGURED": "yes"}, sandbox={"pass_env": ["PASSED_*"]})
    host = {"HOST_NAME_OF_IT": "renamed", "PASSED_ON": "passed", "AWS_SECRET_ACCESS_KEY": "no", "OTHER": "no"}
    gateway = await dragoman("acp", "scripted", env=host, **config)
    await gateway.initialize()
    session = await gateway.new_session(project)
    names = ("FROM_FILE", "RENAMED", "CONFIGURED", "PASSED_ON", "AWS_SECRET_ACCESS_KEY", "OTHER")
    turn = await gateway.prompt(session, "\n".join(f"env {name}" for name in names))
    assert turn.reports("env") == ["from a file", "renamed", "yes", "passed", None, None]


async def test_sessions_of_one_workspace_and_of_others(dragoman: Start, kind: Kind, project: Path) -> None:
    gateway = await dragoman("acp", "scripted", **kind.config("--session-ids", "s"))
    await gateway.initialize()
    one, two = await gateway.new_session(project), await gateway.new_session(project / "src")
    for session in (one, two):
        turn = await gateway.prompt(session, f"sh echo {session} >> {kind.inside}/both.txt")
        assert turn.report("sh")["code"] == 0
    assert (project / "both.txt").read_text() == f"{one}\n{two}\n"


async def test_history_is_kept_and_replayed_with_host_paths(
    dragoman: Start, kind: Kind, project: Path
) -> None:
    gateway = await dragoman("acp", "scripted", **kind.config())
    await gateway.initialize()
    session = await gateway.new_session(project)
    await gateway.prompt(session, f"update {json.dumps(tool_call(kind.inside))}")
    listed = await gateway.request("session/list", {"cwd": str(project)})
    assert [each["cwd"] for each in listed["sessions"]] == [str(project)]
    before = len(gateway.of(session))
    await gateway.request("session/load", {"sessionId": session, "cwd": str(project), "mcpServers": []})
    replayed = gateway.of(session)[before:]
    shown = next(each for each in replayed if each.get("sessionUpdate") == "tool_call")
    assert shown["locations"] == [{"path": f"{project}/src/a.txt", "line": 1}]


def strays(token: str) -> list[int]:
    """Processes of this machine, in whatever box, that carry the token."""
    wanted = f"SANDBOX_STRAY={token}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue  # ended meanwhile
    return found
