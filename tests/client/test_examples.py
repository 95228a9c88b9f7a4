"""The examples of docs/how-to/from-python.md run as printed, with an agent that repeats prompts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from client.conftest import Serving

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "from-python.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
SAID = [
    "What does this repository do?",
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
    exec(compile(code, str(PAGE), "exec"), {"__name__": "__main__"})
    assert said in capsys.readouterr().out
