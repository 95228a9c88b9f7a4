"""A certificate that is renewed while people are connected."""

from __future__ import annotations

import asyncio
import shutil
import signal
import ssl
from pathlib import Path

import pytest

from dragoman.server import limits
from dragoman.server.auth.admission import Visit
from dragoman.server.listen.acceptor import Acceptor
from dragoman.server.listen.connection_limit import ConnectionLimit
from dragoman.server.listen.protocol_sniffer import ProtocolSniffer
from dragoman.server.listen.tls import Certificate
from support.certificates import make_certificate
from support.rpc_peer import PATIENCE
from support.serve_process import ServeProcess, read_head

from .conftest import Serve

TRUSTING = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
TRUSTING.check_hostname = False
TRUSTING.verify_mode = ssl.CERT_NONE


async def shown(serving: ServeProcess) -> bytes:
    """The certificate that a newcomer gets."""
    _, writer = await serving.open(TRUSTING)
    found = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    assert isinstance(found, bytes)
    return found


async def until_changed(serving: ServeProcess, old: bytes) -> bytes:
    async with asyncio.timeout(PATIENCE):
        while (found := await shown(serving)) == old:
            await asyncio.sleep(0.1)  # the files are looked at once a second
    return found


def replace(target: tuple[Path, Path], source: tuple[Path, Path]) -> None:
    for old, new in zip(target, source, strict=True):
        shutil.copy(new, old.with_suffix(".new"))
        old.with_suffix(".new").replace(old)


async def test_a_new_certificate_is_taken_over_and_a_bad_one_is_not(
    serve: Serve, workspace: Path, tmp_path: Path
) -> None:
    files = make_certificate(tmp_path / "first")
    second = make_certificate(tmp_path / "second", "second")
    serving = await serve(serve={"tls_cert": str(files[0]), "tls_key": str(files[1])})
    stays = await serving.socket(context=TRUSTING)
    await stays.initialize()
    first = await shown(serving)
    replace(files, second)
    renewed = await until_changed(serving, first)
    files[0].write_text("not a certificate")
    async with asyncio.timeout(PATIENCE):
        while "certificate could not be reloaded" not in serving.gateway.stderr:
            await asyncio.sleep(0.05)  # a log line has no event
    assert await shown(serving) == renewed
    session = await stays.new_session(workspace)
    assert (await stays.prompt(session, "still here")).texts == ["still here"]
    assert "Traceback" not in serving.gateway.stderr


async def test_a_hangup_reloads_instead_of_ending(serve: Serve, tmp_path: Path) -> None:
    files = make_certificate(tmp_path / "first")
    serving = await serve(serve={"tls_cert": str(files[0]), "tls_key": str(files[1])})
    serving.gateway.process.send_signal(signal.SIGHUP)
    async with asyncio.timeout(PATIENCE):
        while "certificate loaded" not in serving.gateway.stderr:
            await asyncio.sleep(0.05)
    await shown(serving)
    assert serving.gateway.process.returncode is None


async def test_without_tls_a_hangup_ends_it(serving: ServeProcess) -> None:
    serving.gateway.process.send_signal(signal.SIGHUP)
    assert await serving.gateway.wait_exit() == 0


@pytest.mark.parametrize("missing", ["tls_cert", "tls_key"])
async def test_one_file_without_the_other_is_a_mistake(serve: Serve, tmp_path: Path, missing: str) -> None:
    cert, key = make_certificate(tmp_path / "first")
    files = {"tls_cert": str(cert), "tls_key": str(key)}
    del files[missing]
    with pytest.raises(ConnectionError):
        await serve(serve=files)


class EmptyHouse:
    """Nobody is behind the door."""

    def __init__(self) -> None:
        self.came = 0

    def enter(self, door: ProtocolSniffer) -> None:
        self.came += 1

    def leave(self, door: ProtocolSniffer) -> None:
        door.on_end()

    def refused(self, status: int) -> None:
        pass

    def http(self, transport: asyncio.Transport, early: bytes, door: ProtocolSniffer) -> None:
        door.refuse(404, "nothing here")

    def websocket(
        self, transport: asyncio.Transport, visit: Visit, early: bytes, door: ProtocolSniffer
    ) -> None:
        door.refuse(404, "nothing here")


async def test_a_connection_that_never_shakes_hands_is_counted_and_ended(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "HEAD_TIMEOUT", 0.5)
    crowd, house = ConnectionLimit(10_000, 0), EmptyHouse()
    entrance = Acceptor(
        crowd, lambda on_end: ProtocolSniffer(house, on_end), silence=60.0, refused=lambda status: None
    )
    entrance.certificate = Certificate(str(certificate[0]), str(certificate[1]))
    port = await entrance.open("localhost", 0)
    silent, silent_writer = await asyncio.open_connection("127.0.0.1", port)
    plain, plain_writer = await asyncio.open_connection("127.0.0.1", port)
    async with asyncio.timeout(PATIENCE):
        while len(crowd) < 2:
            await asyncio.sleep(0.01)
        plain_writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert not (await plain.read()).startswith(b"HTTP")
        assert await silent.read() == b""
        while len(crowd):
            await asyncio.sleep(0.01)
    assert house.came == 0
    good, good_writer = await asyncio.open_connection("127.0.0.1", port, ssl=TRUSTING)
    good_writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert (await read_head(good))[0] == 404
    entrance.close()
    for writer in (silent_writer, plain_writer, good_writer):
        writer.close()
