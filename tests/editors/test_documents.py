"""The settings in the documents are what `dragoman editor show` prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from dragoman.cli.setup.editor import editor
from dragoman.editors.catalog import EDITORS

ROOT = Path(__file__).resolve().parents[2]
SHOWN = re.compile(r"<!-- dragoman editor (show .*?) -->\n```\w+\n(.*?)```\n", re.DOTALL)


@pytest.mark.parametrize("name", ["README.md", "docs/how-to/editors.md"])
def test_settings_in_the_documents_are_what_show_prints(name: str) -> None:
    blocks = SHOWN.findall((ROOT / name).read_text())
    assert len(blocks) >= 3
    for command, block in blocks:
        done = CliRunner().invoke(editor, shlex.split(command), catch_exceptions=False)
        assert done.exit_code == 0, done.output
        assert done.output == block, command


def test_the_page_has_every_editor() -> None:
    page = (ROOT / "docs/how-to/editors.md").read_text()
    assert [name for name in EDITORS if f"`{name}`" not in page] == []
