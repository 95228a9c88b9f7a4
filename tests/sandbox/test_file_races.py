"""Files of an agent in a box are the gateway's to open: no symlink that the agent swaps leads it, or the client, out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.clients.sample_answers import EVERYTHING
from support.gateway_process import GatewayProcess, Start
from support.sandboxes.sandbox_kinds import PYTHON, Kind

ROUNDS = 320
"""Writes, and as many reads."""

SWAPPING = """
import itertools, os, sys
outside = sys.argv[1]
os.makedirs("real", exist_ok=True)
open("real/file", "w").write("inside")
open("swapping", "w").close()
for at in itertools.count():
    for made, name in ((outside, "folder"), ("real", "folder"), (outside + "/file", "file"), ("real/file", "file")):
        os.symlink(made, f"next-{at}")
        os.rename(f"next-{at}", name)
    if at % 7 == 0:  # a plain folder too, so that the walk meets both
        os.unlink("folder"); os.rename("real", "folder"); os.rename("folder", "real")
"""
"""Swaps `folder` and `file` of the workspace for symlinks that lead out and back, until it is ended."""


def offer_files(gateway: GatewayProcess) -> None:
    """Serve files as an editor does: it opens what it is asked for, symlinks followed, outside of any box."""

    def write(params: dict[str, Any]) -> dict[str, Any]:
        try:
            Path(params["path"]).write_text(params["content"])
        except OSError:
            pass
        return {}

    def read(params: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"content": Path(params["path"]).read_text()}
        except OSError:
            return {"content": ""}

    gateway.on("fs/write_text_file", write)
    gateway.on("fs/read_text_file", read)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "file").write_text("secret")
    return folder


async def test_swapped_symlinks_lead_no_call_out_of_the_box(
    dragoman: Start, bubblewrap: Kind, project: Path, outside: Path
) -> None:
    (project / "swap.py").write_text(SWAPPING)
    gateway = await dragoman("acp", "scripted", **bubblewrap.config())
    await gateway.initialize(clientCapabilities=EVERYTHING)
    offer_files(gateway)
    session = await gateway.new_session(project)
    begin = f"sh ({PYTHON} -S -E swap.py {outside} >/dev/null 2>&1 &) ; until [ -e swapping ]; do :; done"
    calls = [
        directive
        for at in range(ROUNDS // 2)
        for directive in (
            f"fswrite {bubblewrap.inside}/folder/planted-{at} x",
            f"fsread {bubblewrap.inside}/file",
            f"fswrite {bubblewrap.inside}/file overwritten",
            f"fsread {bubblewrap.inside}/folder/file",
        )
    ]
    turn = await gateway.prompt(session, "\n".join([begin, *calls]))
    assert [path.name for path in outside.iterdir()] == ["file"]
    assert (outside / "file").read_text() == "secret"
    answers = [*turn.reports("fsread"), *turn.reports("fswrite")]
    assert len(answers) == 2 * ROUNDS
    assert "secret" not in json.dumps(answers)
    assert any("result" in answer for answer in answers), "the race was never lost: nothing was tested"
    assert not [each for each in gateway.received if each.get("method", "").startswith("fs/")]
