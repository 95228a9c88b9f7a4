"""The Python examples of README.md and docs/how-to/from-python.md run as printed.

The agent `claude` repeats prompts here; `builtin` is itself.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from client.conftest import Serving

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "docs" / "how-to" / "from-python.md"]
EXAMPLES = [
    code for page in PAGES for code in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
]
SAID = [
    "started read",
    "What does this repository do?",
    "/search",
    "Summarise CHANGELOG.md in one line",
    "Find the slowest test",
    "",
    "end_turn",
    "Now explain it",
]


def test_every_example_has_its_outcome_here() -> None:
    assert len(EXAMPLES) == len(SAID)


@pytest.mark.parametrize(("code", "said"), [*zip(EXAMPLES, SAID, strict=True)], ids=range(len(SAID)))
def test_an_example_runs(
    at_home: Serving,
    workspace: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    code: str,
    said: str,
) -> None:
    monkeypatch.chdir(workspace)
    (workspace / "README.md").write_text("# Project\n")
    exec(compile(code, "example.py", "exec"), {"__name__": "__main__"})
    assert said in capsys.readouterr().out
