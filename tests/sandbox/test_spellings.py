"""A folder has many names: all lead to the same workspace and box, and each client is told its own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.gateway.lifecycle.workspace import workspace_root
from dragoman.sandbox.mounts import Mount, spelled_map
from support.gateway_process import GatewayProcess, Start
from support.rpc_peer import is_update
from support.sandboxes.sandbox_kinds import INSIDE, Kind

NAMES = ("real", "link", "link below", "link to below", "dots", "slash")


@pytest.fixture
def names(project: Path, tmp_path: Path) -> dict[str, str]:
    """What a client may call `project/src`."""
    (tmp_path / "link").symlink_to(project)
    (tmp_path / "deep").symlink_to(project / "src")
    (project / "inner").symlink_to("src")
    return {
        "real": f"{project}/src",
        "link": f"{tmp_path}/link/src",
        "link below": f"{project}/inner",
        "link to below": f"{tmp_path}/deep",
        "dots": f"{project}/../{project.name}/./src",
        "slash": f"{project}/src/",
    }


async def shown(gateway: GatewayProcess, cwd: str, path: str) -> Any:
    """How a client in `cwd` is told of `path` in the box."""
    session = await gateway.new_session(cwd)
    where = (await gateway.prompt(session, "cwd")).report("cwd")
    call = {"sessionUpdate": "tool_call", "toolCallId": "t", "title": "t", "locations": [{"path": path}]}
    await gateway.prompt(session, f"update {json.dumps(call)}")
    update = await gateway.next_message(is_update(session, "tool_call"))
    return where, update["params"]["update"]["locations"][0]["path"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("inside", [INSIDE, None], ids=["other paths", "same paths"])
async def test_each_name_leads_into_the_box_and_comes_back(
    dragoman: Start, bubblewrap: Kind, project: Path, names: dict[str, str], name: str, inside: str | None
) -> None:
    config = bubblewrap.config(sandbox={"workspace": inside} if inside else {})
    if inside is None:
        config["sandboxes"]["box"].pop("workspace", None)
    gateway = await dragoman("acp", "scripted", **config)
    await gateway.initialize()
    root = inside or str(project)
    where, told = await shown(gateway, names[name], f"{root}/src/a.txt")
    assert where == f"{root}/src"
    own = names[name].rstrip("/")
    assert told == f"{own}/a.txt"
    listed = (await gateway.request("session/list", {}))["sessions"]
    assert names[name] in [each["cwd"] for each in listed]


def test_every_name_has_the_same_root(project: Path, names: dict[str, str]) -> None:
    assert {workspace_root(name) for name in names.values()} == {str(project)}


def test_a_link_in_a_project_that_leads_out_of_it_chooses_no_other(project: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (project / ".git").mkdir(exist_ok=True)
    (project / "out").symlink_to(tmp_path / "other")
    assert workspace_root(f"{project}/out") == str(project)


@pytest.mark.parametrize("name", NAMES)
def test_the_map_knows_the_client_s_name_and_the_real_one(
    project: Path, names: dict[str, str], name: str
) -> None:
    paths = spelled_map([Mount(str(project), "/w", writable=True)], names[name])
    assert paths is not None
    assert paths.to_box.path(names[name]) == "/w/src"
    assert paths.to_box.path(f"{project}/src/x") == "/w/src/x"
    assert paths.to_host.path("/w/src/x") == f"{names[name].rstrip('/')}/x"
