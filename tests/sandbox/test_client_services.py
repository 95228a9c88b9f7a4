"""What a client offers, it does outside of the box: an agent in one gets its files and terminals from the gateway."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.agents.agent_log import AgentLog
from support.clients.sample_answers import EVERYTHING
from support.gateway_process import GatewayProcess, Start
from support.rpc_peer import Message, is_request
from support.sandboxes.sandbox_kinds import Kind
from support.session_client import load


async def test_a_boxed_agents_commands_run_in_its_box_though_the_client_offers_terminals(
    dragoman: Start, bubblewrap: Kind, project: Path
) -> None:
    heard = AgentLog(project / "heard.jsonl")
    flags = [flag.replace(str(project), bubblewrap.inside) for flag in heard.flags]
    gateway = await dragoman("acp", "scripted", **bubblewrap.config(*flags))
    await gateway.initialize(clientCapabilities=EVERYTHING)
    gateway.on("terminal/create", {"terminalId": "the client's"})
    session = await gateway.new_session(project)
    turn = await gateway.prompt(session, "terminal pwd")
    assert turn.report("terminal/output")["result"]["output"].strip() == bubblewrap.inside
    assert not any(is_request("terminal/create")(each) for each in gateway.received)
    assert heard.params("initialize")[0]["clientCapabilities"]["terminal"] is True


async def test_a_sandbox_by_name_only_leaves_terminals_to_the_client(dragoman: Start, project: Path) -> None:
    kind = Kind("local", {"kind": "local"}, str(project))
    gateway = await dragoman("acp", "scripted", **kind.config())
    await gateway.initialize(clientCapabilities=EVERYTHING)
    gateway.on("terminal/create", {"terminalId": "the client's"})
    session = await gateway.new_session(project)
    turn = await gateway.prompt(session, "terminal-keep pwd")
    assert turn.report("terminal/create")["result"]["terminalId"] == "the client's"


OFFERS = pytest.mark.parametrize("offered", [{"fs": {"readTextFile": True}}, {}], ids=["reading", "nothing"])


def not_asked(gateway: GatewayProcess) -> bool:
    return not [each for each in gateway.received if str(each.get("method")).startswith("fs/")]


@OFFERS
async def test_the_gateway_serves_a_boxed_agents_files_whatever_the_client_offers(
    dragoman: Start, kind: Kind, project: Path, offered: dict[str, Any]
) -> None:
    """An ssh box alone has none: its files are another machine's."""
    heard = AgentLog(project / "heard.jsonl")
    flags = [flag.replace(str(project), kind.inside) for flag in heard.flags]
    gateway = await dragoman("acp", "scripted", **kind.config(*flags))
    await gateway.initialize(clientCapabilities=offered)
    gateway.on("fs/read_text_file", {"content": "the client's"})
    gateway.on("fs/write_text_file", {})
    session = await gateway.new_session(project)
    turn = await gateway.prompt(session, f"fsread {kind.inside}/src/a.txt\nfswrite {kind.inside}/new/b.txt x")
    told = heard.params("initialize")[-1]["clientCapabilities"]
    if kind.name == "ssh":
        assert "fs" not in told
        assert turn.report("fsread")["error"]["code"] == -32601
        assert turn.report("fswrite")["error"]["code"] == -32601
        assert not (project / "new").exists()
    else:
        assert told["fs"] == {"readTextFile": True, "writeTextFile": True}
        assert turn.report("fsread") == {"result": {"content": "hello\n"}}
        assert turn.report("fswrite") == {"result": {}}
        assert (project / "new" / "b.txt").read_text() == "x"
    assert not_asked(gateway)


async def test_files_that_the_box_does_not_show_are_not_served(
    dragoman: Start, kind: Kind, project: Path, tmp_path: Path
) -> None:
    if kind.name == "ssh":
        pytest.skip("no files are served there")
    (tmp_path / "secret").write_text("a key")
    (project / "out").symlink_to(tmp_path / "secret")
    gateway = await dragoman("acp", "scripted", **kind.config())
    await gateway.initialize(clientCapabilities=EVERYTHING)
    gateway.on("fs/read_text_file", {"content": "a key"})
    gateway.on("fs/write_text_file", {})
    session = await gateway.new_session(project)
    outside = [str(tmp_path / "secret"), f"{kind.inside}/../secret", f"{project}/../../secret", "src/a.txt"]
    for path in (*outside, f"{kind.inside}/out"):
        asked = json.dumps({"sessionId": "{sid}", "path": path, "content": "x"})
        turn = await gateway.prompt(
            session, f"request fs/read_text_file {asked}\nrequest fs/write_text_file {asked}"
        )
        for answer in turn.reports("request"):
            assert answer["error"]["data"]["sandbox"] == "box", path
            assert "a key" not in json.dumps(answer)
    assert (tmp_path / "secret").read_text() == "a key"
    assert not_asked(gateway)


async def test_without_the_name_of_a_session_there_is_no_way_past_the_box(
    dragoman: Start, kind: Kind, project: Path
) -> None:
    gateway = await dragoman("acp", "scripted", **kind.config())
    await gateway.initialize(clientCapabilities=EVERYTHING)
    asked = {
        "fs/read_text_file": {"path": "/etc/hostname"},
        "fs/write_text_file": {"path": "/etc/hostname", "content": "x"},
        "terminal/create": {"command": "id"},
    }
    for method in asked:
        gateway.on(method, {"content": "a key", "terminalId": "t"})
    session = await gateway.new_session(project)
    script = "\n".join(f"request {method} {json.dumps(params)}" for method, params in asked.items())
    turn = await gateway.prompt(session, script)
    assert [answer["error"]["code"] for answer in turn.reports("request")] == [-32602] * 3
    assert not [message for message in gateway.received if message.get("method") in asked]


async def test_files_shown_read_only_are_read_and_not_written(
    dragoman: Start, bubblewrap: Kind, project: Path, tmp_path: Path
) -> None:
    shown = tmp_path / "shown"
    shown.mkdir()
    for file in (shown / "a.txt", tmp_path / "alone.txt", project / "src" / "fixed.txt"):
        file.write_text("a")
    read_only = [
        *bubblewrap.sandbox["read_only"],
        f"{shown}:/shown",
        f"{tmp_path}/alone.txt:/alone.txt",
        f"{project}/src/fixed.txt:{bubblewrap.inside}/src/fixed.txt",  # a part of the workspace, which is writable
    ]
    gateway = await dragoman("acp", "scripted", **bubblewrap.config(sandbox={"read_only": read_only}))
    await gateway.initialize(clientCapabilities=EVERYTHING)
    session = await gateway.new_session(project)
    for path in ("/shown/a.txt", "/alone.txt", f"{bubblewrap.inside}/src/fixed.txt"):
        turn = await gateway.prompt(session, f"fsread {path}\nfswrite {path} x\nsh echo x > {path}")
        assert turn.report("fsread") == {"result": {"content": "a"}}, path
        assert turn.report("fswrite")["error"]["data"]["sandbox"] == "box", path
        assert turn.report("sh")["code"] != 0, path
    assert (project / "src" / "fixed.txt").read_text() == "a"
    assert not_asked(gateway)


async def test_what_a_mount_hides_inside_is_not_served(
    dragoman: Start, bubblewrap: Kind, project: Path, tmp_path: Path
) -> None:
    (project / "src" / "keys").mkdir()
    (project / "src" / "keys" / "key").write_text("a key")
    (tmp_path / "instead").mkdir()
    (tmp_path / "instead" / "key").write_text("no key")
    mounts = [f"{tmp_path}/instead:{bubblewrap.inside}/src/keys"]
    gateway = await dragoman("acp", "scripted", **bubblewrap.config(sandbox={"mounts": mounts}))
    await gateway.initialize(clientCapabilities=EVERYTHING)
    session = await gateway.new_session(project)
    # By its path inside, by its path outside, and by a symlink that only leads anywhere outside.
    turn = await gateway.prompt(
        session,
        f"sh ln -s {project}/src/keys/key {bubblewrap.inside}/link\nfsread {bubblewrap.inside}/src/keys/key\n"
        f"fsread {project}/src/keys/key\nfsread {bubblewrap.inside}/link\nfswrite {project}/src/keys/key x",
    )
    inside, *others = turn.reports("fsread")
    assert inside == {"result": {"content": "no key"}}
    assert all("error" in answer for answer in (*others, turn.report("fswrite")))
    assert (project / "src" / "keys" / "key").read_text() == "a key"


async def test_a_single_file_is_written_in_its_place(
    dragoman: Start, bubblewrap: Kind, project: Path, tmp_path: Path
) -> None:
    """A new file of that name would not be the one that the box shows."""
    alone = tmp_path / "alone.txt"
    alone.write_text("a")
    config = bubblewrap.config(sandbox={"mounts": [f"{alone}:/alone.txt"]})
    gateway = await dragoman("acp", "scripted", **config)
    await gateway.initialize()
    session = await gateway.new_session(project)
    turn = await gateway.prompt(session, "fswrite /alone.txt written\nsh cat /alone.txt")
    assert turn.report("fswrite") == {"result": {}}
    assert turn.report("sh")["out"] == "written"
    assert alone.read_text() == "written"


async def test_a_tool_whose_files_are_another_machines_has_none_served(
    dragoman: Start, command: Kind, project: Path
) -> None:
    heard = AgentLog(project / "heard.jsonl")
    gateway = await dragoman("acp", "scripted", **command.config(*heard.flags, sandbox={"elsewhere": True}))
    await gateway.initialize(clientCapabilities=EVERYTHING)
    session = await gateway.new_session(project)
    assert "fs" not in heard.params("initialize")[-1]["clientCapabilities"]
    turn = await gateway.prompt(session, f"fsread {command.inside}/src/a.txt\nterminal pwd")
    assert turn.report("fsread")["error"]["code"] == -32601
    assert turn.report("terminal/output")["result"]["output"].strip()
    assert not_asked(gateway)


async def test_a_sandbox_by_name_only_leaves_files_to_the_client(dragoman: Start, project: Path) -> None:
    kind = Kind("local", {"kind": "local"}, str(project))
    gateway = await dragoman("acp", "scripted", **kind.config())
    await gateway.initialize(clientCapabilities=EVERYTHING)
    gateway.on("fs/read_text_file", {"content": "the client's"})
    session = await gateway.new_session(project)
    turn = await gateway.prompt(session, f"fsread {project}/src/a.txt")
    assert turn.report("fsread") == {"result": {"content": "the client's"}}


def is_shown(message: Message, text: str) -> bool:
    """The tool call of `terminal-keep`, with this text in place of its terminal."""
    update = message.get("params", {}).get("update", {})
    content = [{"type": "content", "content": {"type": "text", "text": text}}]
    return bool(update.get("toolCallId") == "term" and update.get("content") == content)


async def test_a_client_with_terminals_sees_what_a_command_in_a_box_prints(
    dragoman: Start, bubblewrap: Kind, project: Path
) -> None:
    (project / "steps.sh").write_text("echo one; while [ ! -e go ]; do sleep 0.02; done; echo two\n")
    gateway = await dragoman("acp", "scripted", **bubblewrap.config())
    await gateway.initialize(clientCapabilities=EVERYTHING)
    session = await gateway.new_session(project)
    await gateway.prompt(session, "terminal-keep sh steps.sh")

    await gateway.next_message(lambda message: is_shown(message, "one\n"))
    (project / "go").touch()
    await gateway.next_message(lambda message: is_shown(message, "one\ntwo\n"))
    assert "was not kept" not in str(gateway.received)
    again = await dragoman("acp", "scripted", "--connect", "never", **bubblewrap.config())
    await again.initialize(clientCapabilities=EVERYTHING)
    loaded = await load(again, session, project)
    assert "one\\ntwo\\n" in str(loaded)
