"""The release script's edits and checks; the builds themselves are tried by `make release VERSION=... CHECK=1`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tools import release
from tools.release import ReleaseError

ROOT = Path(__file__).parent.parent
SOURCE = '"""Doc."""\n\n__all__ = ["__version__"]\n\n__version__ = "0.1.0"\n'
LOG = """# Changelog

What a user notices.

## Unreleased

### Added

- A thing.

## 0.1.0 (2026-01-02)

- The first.
"""


def test_versions_are_ordered_with_pre_releases_first() -> None:
    ordered = ["0.1.0a2", "0.1.0b1", "0.1.0rc1", "0.1.0rc2", "0.1.0", "0.1.1", "0.10.0", "1.0.0"]
    keys = [release.version_key(version) for version in ordered]
    assert keys == sorted(keys) and len(set(keys)) == len(keys)


@pytest.mark.parametrize("version", ["", "1", "1.2", "v1.2.3", "01.2.3", "1.2.3-rc1", "1.2.3.4", "1.2.3\n"])
def test_what_is_not_a_version_is_refused(version: str) -> None:
    with pytest.raises(ReleaseError, match="is not a version: write"):
        release.version_key(version)


def test_the_version_is_set_and_nothing_else_changes() -> None:
    assert release.with_version(SOURCE, "0.2.0rc1") == SOURCE.replace("0.1.0", "0.2.0rc1")
    assert release.with_version(SOURCE, "0.1.0") == SOURCE, "the first release has the version that is there"


def test_a_lower_version_is_refused() -> None:
    with pytest.raises(ReleaseError, match=r"0\.0\.9 is lower than 0\.1\.0"):
        release.with_version(SOURCE, "0.0.9")


@pytest.mark.parametrize("source", ["", SOURCE + SOURCE])
def test_a_source_without_exactly_one_version_is_refused(source: str) -> None:
    with pytest.raises(ReleaseError, match="must have one line"):
        release.with_version(source, "0.2.0")


def test_unreleased_entries_get_a_version_and_a_date() -> None:
    expected = LOG.replace("## Unreleased\n", "## Unreleased\n\n## 0.2.0 (2026-03-04)\n")
    assert release.with_release(LOG, "0.2.0", "2026-03-04") == expected


def test_the_next_release_needs_entries_of_its_own() -> None:
    released = release.with_release(LOG, "0.2.0", "2026-03-04")
    with pytest.raises(ReleaseError, match="no entry under Unreleased"):
        release.with_release(released, "0.3.0", "2026-03-05")


def test_a_version_is_released_once() -> None:
    with pytest.raises(ReleaseError, match=r"already has a section for 0\.1\.0"):
        release.with_release(LOG, "0.1.0", "2026-03-04")


@pytest.mark.parametrize("log", ["# Changelog\n", LOG + LOG])
def test_a_changelog_needs_one_unreleased_section(log: str) -> None:
    with pytest.raises(ReleaseError, match="must have one line `## Unreleased`"):
        release.with_release(log, "0.2.0", "2026-03-04")


def test_the_repository_is_what_the_edits_expect() -> None:
    version = release.current_version((ROOT / release.VERSION_FILE).read_text())
    release.version_key(version)
    assert (ROOT / release.CHANGELOG).read_text().splitlines().count(release.UNRELEASED) == 1


def test_files_that_the_page_asks_for_must_be_in_the_wheel() -> None:
    page = '<link href="/assets/a.css"><script src="/assets/b.js"></script><a href="/api/docs">'
    there = ["dragoman/web_assets/index.html", "dragoman/web_assets/assets/a.css"]
    assert release.missing_from_page(there, page) == ["assets/b.js"]


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "Traceback (most recent call last):\n",
        '{"jsonrpc":"2.0","id":0,"error":{"code":-32603,"message":"no"}}\n',
        '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentInfo":{"version":"0.1.0"}}}\n',
    ],
)
def test_only_an_answer_of_this_version_counts_as_initialized(answer: str) -> None:
    with pytest.raises(ReleaseError, match="answers `initialize` with"):
        release.check_initialized(answer, "0.2.0")
    right = {"id": 0, "result": {"protocolVersion": 1, "agentInfo": {"version": "0.2.0"}}}
    release.check_initialized(json.dumps(right) + "\n{}\n", "0.2.0")


def test_a_failed_command_is_told_with_its_output_and_advice() -> None:
    with pytest.raises(ReleaseError) as failed:
        release.run(["sh", "-c", "echo out; echo broken >&2; exit 3"], advice="Mend it.")
    assert "failed (3)" in str(failed.value) and "  | broken" in str(failed.value)
    assert str(failed.value).endswith("Mend it.")


def test_a_release_that_cannot_be_made_exits_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert release.main(["next"]) == 1
    assert "No release was made. 'next' is not a version" in capsys.readouterr().err
