"""A registry on this machine, and an installer with a home of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman.config.paths import Paths, find_paths
from dragoman.config.sections.registry import RegistryConfig
from dragoman.gateway.ports.acts import unrecorded
from dragoman.registry.install import Done, Installer, Wish, this_platform
from support.registry.server import Site, serving


@pytest.fixture(scope="session")
def web() -> Iterator[Site]:
    with serving() as site:
        yield site


@pytest.fixture
def site(web: Site) -> Site:
    web.answers.clear()
    web.asked.clear()
    return web


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return find_paths({"DRAGOMAN_HOME": str(tmp_path / "home")})


@pytest.fixture
def work(paths: Paths, site: Site) -> Installer:
    settings = RegistryConfig(url=f"{site.url}/registry.json", timeout=30.0)
    return Installer(paths, settings, unrecorded, "local")


Publish = Callable[..., Installer]


@pytest.fixture
def publish(site: Site, work: Installer) -> Publish:
    """Publish an agent with one archive, and have the installer know it."""

    def put(content: bytes, version: str = "1.0.0", name: str = "a.tar.gz", **facts: Any) -> Installer:
        url = site.put(f"/{version}/{name}", content)
        site.put_registry(
            entry(version, binary={this_platform(): {"archive": url, "cmd": "./agent", **facts}})
        )
        work.catalog.refresh(unrecorded, "local")
        return work

    return put


def entry(version: str = "1.0.0", id: str = "robot", **distribution: Any) -> dict[str, Any]:
    return {
        "id": id,
        "name": "Robot",
        "version": version,
        "description": "A test agent",
        "distribution": distribution,
    }


def installed(work: Installer, version: str | None = None, **more: Any) -> Done:
    return work.install(Wish(work.catalog.find("robot"), version, **more))
