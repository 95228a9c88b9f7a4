"""Files and terminals that the client offers are the machine's own: an agent in a box gets only what is its own too."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.agent_journal import AgentJournal
from support.answers import EVERYTHING
from support.boxes import Kind
from support.gateway import Start
from support.rpc_peer import is_request


async def test_a_boxed_agents_commands_run_in_its_box_though_the_client_offers_terminals(
    dragoman: Start, bubblewrap: Kind, project: Path
) -> None:
    heard = AgentJournal(project / "heard.jsonl")
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


async def test_the_client_is_not_asked_for_files_that_the_box_does_not_show(
    dragoman: Start, kind: Kind, project: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("a key")
    (project / "out").symlink_to(tmp_path / "secret")
    gateway = await dragoman("acp", "scripted", **kind.config())
    await gateway.initialize(clientCapabilities=EVERYTHING)
    gateway.on("fs/read_text_file", {"content": "a key"})
    gateway.on("fs/write_text_file", {})
    session = await gateway.new_session(project)
    outside = [str(tmp_path / "secret"), f"{kind.inside}/../secret", f"{project}/../../secret", "src/a.txt"]
    if kind.name != "ssh":  # on another machine it is another link
        outside.append(f"{kind.inside}/out")
    for path in outside:
        asked = json.dumps({"sessionId": "{sid}", "path": path, "content": "x"})
        turn = await gateway.prompt(
            session, f"request fs/read_text_file {asked}\nrequest fs/write_text_file {asked}"
        )
        for answer in turn.reports("request"):
            assert answer["error"]["data"]["sandbox"] == "box", path
    turn = await gateway.prompt(session, f"fsread {kind.inside}/src/a.txt")
    assert turn.report("fsread") == {"result": {"content": "a key"}}


async def test_files_shown_read_only_are_not_written_by_the_client(
    dragoman: Start, bubblewrap: Kind, project: Path, tmp_path: Path
) -> None:
    (tmp_path / "shown").mkdir()
    read_only = [*bubblewrap.sandbox["read_only"], f"{tmp_path}/shown:/shown"]
    gateway = await dragoman("acp", "scripted", **bubblewrap.config(sandbox={"read_only": read_only}))
    await gateway.initialize(clientCapabilities=EVERYTHING)
    gateway.on("fs/read_text_file", {"content": "a"})
    gateway.on("fs/write_text_file", {})
    session = await gateway.new_session(project)
    turn = await gateway.prompt(session, "fsread /shown/a.txt\nfswrite /shown/a.txt x")
    assert turn.report("fsread") == {"result": {"content": "a"}}
    assert turn.report("fswrite")["error"]["data"]["sandbox"] == "box"


@pytest.mark.parametrize("offers", [True, False])
async def test_files_are_not_served_for_an_agent_on_another_machine(
    dragoman: Start, ssh: Kind, project: Path, offers: bool
) -> None:
    """The gateway's own files would be taken for those over there."""
    heard = AgentJournal(project / "heard.jsonl")
    gateway = await dragoman("acp", "scripted", **ssh.config(*heard.flags, serve_fs=True))
    await gateway.initialize(clientCapabilities={"fs": {"readTextFile": True}} if offers else {})
    gateway.on("fs/read_text_file", {"content": "the client's"})
    session = await gateway.new_session(project)
    told = heard.params("initialize")[0]["clientCapabilities"].get("fs", {})
    assert told.get("readTextFile", False) is offers
    assert not told.get("writeTextFile")
    turn = await gateway.prompt(session, f"fsread {ssh.inside}/src/a.txt\nfswrite {ssh.inside}/b.txt x")
    assert ("result" in turn.report("fsread")) is offers
    assert turn.report("fswrite")["error"]["code"] == -32601
    assert not (project / "b.txt").exists()
