"""The image and the compose file of deploy/docker, built and run with podman on a base made from Debian's packages."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from support.rpc_peer import PATIENCE
from support.sandboxes.container_images import DOCKER, PREFIX, ROOT, Engine, base_image, caddy_image
from support.session_client import free_port

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

NAME = "box.test"
PROJECT = "dragoman-test"
PROXY = "172.30.85.250"
OVERRIDE = """
services:
  dragoman:
    environment:
      DRAGOMAN_SERVE_CONNECTIONS_PER_ADDRESS: "1"
"""
CLIENT = """
import http.client, ssl, sys
def ask(path):
    context = ssl._create_unverified_context()
    connection = http.client.HTTPSConnection(sys.argv[1], context=context)
    connection.request("GET", path, headers={"Authorization": "Bearer " + sys.argv[2], "X-Forwarded-For": "203.0.113.9"})
    return connection.getresponse().status, connection
status, held = ask("/acp/sse?client_id=" + sys.argv[3])
print(status, ask("/readyz")[0], flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True)
class Site:
    """The services of the compose file."""

    engine: Engine
    image: str
    folder: Path
    https: int

    def inside(self, *words: str) -> str:
        return self.engine.run("podman", "exec", f"{PROJECT}_dragoman_1", *words)

    def inspect(self) -> dict[str, object]:
        (found,) = json.loads(self.engine.run("podman", "inspect", f"{PROJECT}_dragoman_1"))
        assert isinstance(found, dict)
        return found

    @property
    def token(self) -> str:
        return self.inside("cat", "/data/run/token").strip()

    def get(self, path: str, **headers: str) -> httpx.Response:
        """As a browser beyond the proxy does."""
        with httpx.Client(verify=False, timeout=PATIENCE) as client:
            request = client.build_request("GET", f"https://127.0.0.1:{self.https}{path}", headers=headers)
            request.headers["Host"] = NAME
            return client.send(request, stream=False)

    def client(self, name: str) -> subprocess.Popen[str]:
        """A client with an address of its own, which keeps a stream open until its stdin ends."""
        where = [f"--network={PROJECT}_inside", f"--add-host={NAME}:{PROXY}", "--entrypoint=python"]
        return subprocess.Popen(
            ["podman", "run", "--rm", "-i", *where, self.image, "-c", CLIENT, NAME, self.token, name],
            env=self.engine.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    engine = Engine.prepare(folder)
    base = base_image(engine, folder)
    own = engine.build(f"{PREFIX}-dragoman", DOCKER / "Dockerfile", ROOT, BASE=base)
    agents = engine.build(
        f"{PREFIX}-agents", DOCKER / "Dockerfile.agents", DOCKER, DRAGOMAN=own, AGENTS="@google/gemini-cli"
    )
    shutil.copytree(ROOT / "deploy", folder / "deploy")  # ./projects is made beside the file
    (folder / "override.yaml").write_text(OVERRIDE)
    uv = Path(sys.executable).with_name("uv")
    engine.run(uv, "pip", "install", "--quiet", "--target", folder / "compose", "podman-compose")
    https = free_port()
    settings = {
        "DOMAIN": NAME,
        "DRAGOMAN_IMAGE": agents,
        "CADDY": caddy_image(engine, base, folder),
        "CADDY_GLOBAL_OPTIONS": "local_certs\n\tdefault_sni " + NAME,
        "HTTP_PORT": f"127.0.0.1:{free_port()}",
        "HTTPS_PORT": f"127.0.0.1:{https}",
        "SUBNET": "172.30.85.0/24",
        "PROXY_ADDRESS": PROXY,
        "PYTHONPATH": str(folder / "compose"),
    }
    compose = [sys.executable, "-m", "podman_compose", "-p", PROJECT]
    files = ["-f", str(folder / "deploy" / "docker" / "compose.yaml"), "-f", str(folder / "override.yaml")]
    made = Site(engine, agents, folder / "deploy" / "docker", https)
    try:
        engine.run(*compose, *files, "up", "-d", "--no-build", settings=settings)
        _wait_until_it_answers(made)
        yield made
    finally:
        engine.run(*compose, *files, "down", "-v", "-t", "0", settings=settings)


def _wait_until_it_answers(site: Site) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            if site.get("/healthz").status_code == 200:
                return
        except httpx.HTTPError:
            pass
        assert time.monotonic() < deadline, "the site does not answer"
        time.sleep(0.2)  # nothing tells another process that a port is open now


def test_it_is_healthy_and_not_root_on_a_root_that_is_read_only(site: Site) -> None:
    site.engine.run("podman", "healthcheck", "run", f"{PROJECT}_dragoman_1")
    assert site.inside("id", "-u", "-n").strip() == "dragoman"
    settings = site.inspect()["HostConfig"]
    assert isinstance(settings, dict) and settings["ReadonlyRootfs"]
    with pytest.raises(AssertionError, match="Read-only file system"):
        site.inside("touch", "/opt/dragoman/x")


def test_projects_belong_to_the_user_that_agents_run_as(site: Site) -> None:
    site.inside("sh", "-c", "echo hello > /workspace/made-inside")
    for path in (site.folder / "projects", site.folder / "projects" / "made-inside"):
        assert (path.stat().st_uid, path.stat().st_gid) == (1000, 1000), path


def test_a_login_through_the_proxy_has_a_secure_cookie(site: Site) -> None:
    answer = site.get(f"/?token={site.token}", Accept="text/html")
    assert answer.status_code == 303
    assert "; Secure" in answer.headers["set-cookie"]
    assert answer.headers["strict-transport-security"] == "max-age=31536000"


def test_two_clients_behind_the_proxy_have_limits_of_their_own(site: Site) -> None:
    clients = [site.client(name) for name in ("one", "two")]
    try:
        for client in clients:
            assert client.stdout is not None
            assert client.stdout.readline().split() == ["200", "429"], (
                "its stream, then one too many of its own"
            )
    finally:
        for client in clients:
            client.communicate()
    # The real addresses are in the log, not the proxy's, and not the one that the clients made up.
    said = site.engine.run("sh", "-c", f"podman logs {PROJECT}_dragoman_1 2>&1")
    assert "connections of 172.30.85." in said and PROXY not in said and "203.0.113.9" not in said


def test_agents_from_npm_start_on_a_root_that_is_read_only(site: Site) -> None:
    assert "gemini: ok" in site.inside("dragoman", "agents", "check", "gemini")
    site.inside("sh", "-c", "npm config get cache | xargs touch -c && npm cache verify")
    # What an agent unpacks into the temporary folder can be run there.
    site.inside("sh", "-c", "cp /bin/true /tmp/unpacked && /tmp/unpacked")
