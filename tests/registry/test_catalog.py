"""What can be installed: our own table, and a registry that was fetched; a bad answer changes nothing."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from dragoman.agents.known import KNOWN
from dragoman.config.paths import Paths
from dragoman.config.sections.registry import RegistryConfig
from dragoman.gateway.ports.acts import unrecorded
from dragoman.registry import index
from dragoman.registry.catalog import Catalog, shipped
from dragoman.registry.errors import RegistryError
from dragoman.registry.install import Installer
from dragoman.registry.versions import is_newer, split_name, split_package
from registry.conftest import entry
from support.registry.server import Site

NPX: dict[str, Any] = {"npx": {"package": "robot-acp@2.0.0", "args": ["--acp"]}}


def test_our_own_table_has_the_registry_s_shape() -> None:
    found = shipped()
    assert {entry.id for entry in found} == {name for name, known in KNOWN.items() if known.package}
    document = json.dumps({"version": "1", "agents": json.loads(msgspec.json.encode(found))})
    parsed, _ = index.parse(document.encode())
    assert parsed.entries == found and parsed.left_out == []
    (gemini,) = [entry for entry in found if entry.id == "gemini"]
    assert gemini.distribution.npx is not None and gemini.distribution.npx.args == ["--acp"]
    assert all(known.package for known in KNOWN.values() if known.source.startswith(("npm:", "uv:")))


def test_nothing_is_fetched_unless_asked_for(work: Installer, site: Site) -> None:
    site.put_registry(entry(**NPX))
    assert "robot" not in work.catalog.offers() and work.outdated() == []
    assert site.asked == []


def test_a_registry_is_kept_and_asked_for_changes(work: Installer, paths: Paths, site: Site) -> None:
    site.put_registry(entry(**NPX), headers={"ETag": '"one"'})
    first = work.catalog.refresh(unrecorded, "local")
    assert (first.agents, first.unchanged, first.new) == (1, False, ["robot"])
    again = Catalog(paths, RegistryConfig(url=f"{site.url}/registry.json"))
    second = again.refresh(unrecorded, "local")
    assert second.unchanged and site.asked[-1][1]["If-None-Match"] == '"one"'
    assert again.find("robot").version("npm") == "2.0.0" and again.fetched is not None
    assert set(site.asked[-1][1]) <= {
        *("Accept-Encoding", "Host", "User-Agent", "Accept", "If-None-Match", "Connection")
    }, "nothing else is told"


def test_public_ids_become_the_names_that_are_known_here(work: Installer, site: Site) -> None:
    site.put_registry(entry("9.0.0", "qwen-code", **NPX), entry(id="claude", **NPX))
    work.catalog.refresh(unrecorded, "local")
    assert work.catalog.find("qwen").entry == work.catalog.find("qwen-code").entry
    assert work.catalog.find("qwen").name == "qwen"
    claude = work.catalog.find("claude")
    assert (claude.origin, claude.kind) == ("shipped", "claude"), (
        "what is not spoken to in ACP is not redefined"
    )


BAD: dict[str, tuple[Any, str]] = {
    "no JSON": (b"<html>", "not JSON"),
    "deep": (b"[" * 100_000, "not JSON"),
    "a list": (b"[]", "no registry"),
    "empty": (b'{"agents": []}', "list is empty"),
    "hostile id": (json.dumps({"agents": [entry(id="../x", **NPX)]}).encode(), "no agent that can be used"),
    "huge": (b" " * (index.MAX_BYTES + 1), "more than"),
    "too many": (json.dumps({"agents": [0] * 5001}).encode(), "more than 5000"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_answer_leaves_the_list_as_it_was(work: Installer, site: Site, what: str) -> None:
    site.put_registry(entry(**NPX))
    work.catalog.refresh(unrecorded, "local")
    content, why = BAD[what]
    site.put("/registry.json", content)
    with pytest.raises(RegistryError, match=f"{why}.*stays as it was"):
        work.catalog.refresh(unrecorded, "local")
    assert work.catalog.find("robot").version("npm") == "2.0.0"


@pytest.mark.parametrize("status", [404, 500, 302])
def test_a_refusal_leaves_the_list_as_it_was(work: Installer, site: Site, status: int) -> None:
    site.put("/registry.json", b"", status=status)
    with pytest.raises(RegistryError, match=rf"(answered {status}|without saying where).*stays as it was"):
        work.catalog.refresh(unrecorded, "local")


def test_one_bad_entry_is_left_out_and_named(work: Installer, site: Site) -> None:
    bad = [
        {**entry(id="evil", **NPX), "version": "../../x"},
        entry(id="robot", **NPX),
        entry(id="none"),
        7,
        entry(id="null", npx={"package": "x", "args": ["a\0b"]}),
    ]
    site.put_registry(entry(**NPX), *bad)
    found = work.catalog.refresh(unrecorded, "local")
    assert found.agents == 1 and len(found.left_out) == 5
    assert found.left_out[0].startswith("evil: ") and found.left_out[1] == "robot: is there twice"


def test_text_of_a_registry_cannot_move_the_cursor(work: Installer, site: Site) -> None:
    site.put_registry({**entry(**NPX), "name": "\x1b[2JRobot\n\u202eevil", "description": "a\r\nb"})
    work.catalog.refresh(unrecorded, "local")
    found = work.catalog.find("robot").entry
    assert found.name == "[2JRobot evil" and found.description == "a b"


def test_a_damaged_copy_is_told_and_fetched_anew(work: Installer, paths: Paths, site: Site) -> None:
    site.put_registry(entry(**NPX), headers={"ETag": '"one"'})
    work.catalog.refresh(unrecorded, "local")
    (paths.agents_dir / "registry.json").write_bytes(b"{")
    assert "robot" not in work.catalog.offers()
    assert work.catalog.trouble is not None and "agents refresh" in work.catalog.trouble
    assert work.catalog.refresh(unrecorded, "local").new == ["robot"]


def test_versions_are_compared_by_their_numbers() -> None:
    rising = ["0.9.0", "0.10.0-beta.2", "0.10.0-beta.10", "0.10.0", "1.0", "2026.10.01", "2026.10.02"]
    assert [is_newer(late, early) for early, late in pairwise(rising)] == [True] * 6
    assert not is_newer("1.0.0+build", "1.0.0")


def test_packages_are_names_and_nothing_else() -> None:
    assert split_package("npm", "@scope/agent@1.2.3") == ("@scope/agent", "1.2.3")
    assert split_package("uv", "agent[all]==1.2") == ("agent[all]", "1.2")
    assert split_name("claude@latest") == ("claude", "latest")
    for source, text in [
        ("npm", "git+ssh://host/x"), ("npm", "./folder"), ("npm", "x@npm:evil@1"), ("npm", "--prefix=/"),
        ("npm", "a@1 || 2"), ("uv", "x @ https://host/x.whl"), ("uv", "-r file"), ("uv", "x==1;import os"),
        ("npm", "@scope/../x"), ("npm", "x@../y"),
    ]:  # fmt: skip
        with pytest.raises(RegistryError):
            split_package(source, text)  # type: ignore[arg-type]
