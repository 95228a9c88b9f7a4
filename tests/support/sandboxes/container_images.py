"""Container images made on this machine from Debian's packages, PyPI and npm: no registry of images is needed."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
DOCKER = ROOT / "deploy" / "docker"
PREFIX = "localhost/dragoman-test"
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
NEEDED = {
    "podman": "podman",
    "mmdebstrap": "mmdebstrap",
    "/usr/lib/cni/dnsname": "golang-github-containernetworking-plugin-dnsname",
}
BUILD_TIMEOUT = 1200

_SETTINGS = """
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
"""

_BASE = """
FROM {rootfs}
COPY authorities.crt /etc/ssl/certs/ca-certificates.crt
ENV PIP_CERT=/etc/ssl/certs/ca-certificates.crt NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt
"""
"""Debian with Python, and the authorities that this machine trusts for its package registries."""

_CADDY = """
FROM {base}
RUN apt-get update && apt-get install -y --no-install-recommends caddy && rm -rf /var/lib/apt/lists/*
ENV XDG_CONFIG_HOME=/config XDG_DATA_HOME=/data
CMD ["caddy", "run", "--config", "/etc/caddy/Caddyfile", "--adapter", "caddyfile"]
"""


@dataclass(frozen=True)
class Engine:
    """podman, as far as it works here."""

    environment: dict[str, str]

    @classmethod
    def prepare(cls, folder: Path) -> Engine:
        missing = [package for program, package in NEEDED.items() if shutil.which(program) is None]
        if missing:
            pytest.skip(
                f"containers: not installed: {', '.join(missing)} (apt-get install {' '.join(missing)})"
            )
        if os.getuid() != 0:
            pytest.skip("containers: a base image is made by root")
        runtime = 'runtime = "/usr/sbin/runc"\n' if Path("/usr/sbin/runc").exists() else ""
        settings = folder / "containers.conf"
        settings.write_text(_SETTINGS + runtime)
        return cls({**os.environ, "CONTAINERS_CONF": str(settings)})

    def run(self, *words: str | Path, timeout: float = 120, settings: Mapping[str, str] | None = None) -> str:
        """What the command printed; fails with what it complained about."""
        done = subprocess.run(
            [str(word) for word in words],
            env={**self.environment, **(settings or {})},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert done.returncode == 0, f"{words[:3]}: {done.stdout[-1000:]}{done.stderr[-3000:]}"
        return done.stdout

    def has(self, image: str) -> bool:
        command = ["podman", "image", "exists", image]
        return subprocess.run(command, env=self.environment, check=False).returncode == 0

    def build(self, image: str, file: Path, context: Path, **arguments: str) -> str:
        given = [word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")]
        ignored = file.with_name(f"{file.name}.dockerignore")
        ignoring = ["--ignorefile", str(ignored)] if ignored.exists() else []
        # The format of docker has health checks; the network of this machine reaches its package registries.
        fixed = ["--quiet", "--network=host", "--format=docker", "--file", str(file), "--tag", image]
        self.run("podman", "build", *fixed, *ignoring, *given, context, timeout=BUILD_TIMEOUT)
        return image


def base_image(engine: Engine, folder: Path) -> str:
    """Kept between runs: it changes with Debian, not with us."""
    release = dict(
        line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line
    )
    suite = release["VERSION_CODENAME"].strip('"')
    name = f"{PREFIX}-base:{suite}"
    if not engine.has(name):
        sources = [Path("/etc/apt/sources.list"), Path("/etc/apt/sources.list.d/debian.sources")]
        packages = "--include=python3,python3-venv,ca-certificates"
        words = ["mmdebstrap", "--variant=minbase", "--mode=root", packages, suite]
        found = filter(Path.exists, sources)
        engine.run(*words, folder / "rootfs.tar", *found, timeout=BUILD_TIMEOUT)
        rootfs = f"{PREFIX}-rootfs:{suite}"
        engine.run("podman", "import", folder / "rootfs.tar", rootfs, timeout=BUILD_TIMEOUT)
        (folder / "rootfs.tar").unlink()
        shutil.copy(AUTHORITIES, folder / "authorities.crt")
        _build_text(engine, name, _BASE.format(rootfs=rootfs), folder)
    return name


def caddy_image(engine: Engine, base: str, folder: Path) -> str:
    name = f"{PREFIX}-caddy"
    if not engine.has(name):
        _build_text(engine, name, _CADDY.format(base=base), folder)
    return name


def _build_text(engine: Engine, name: str, text: str, folder: Path) -> None:
    file = folder / "Dockerfile"
    file.write_text(text)
    engine.build(name, file, folder)
