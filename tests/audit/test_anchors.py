"""Heads of the audit go elsewhere too, and a place that does not answer holds up nothing."""

from __future__ import annotations

import errno
import json
import os
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from dragoman.audit import anchors
from dragoman.audit.anchors import Anchor, read_anchor, sender
from dragoman.audit.log import AuditLog
from dragoman.audit.verify import verify
from dragoman.config.audit_model import AuditConfig
from dragoman.config.errors import ConfigError

HEAD = b'{"n":3,"at":"2026-11-18T03:31:02.123Z","kind":"head","chain":"20261118-aaaaaaaa","prev":"00"}'


class Receiver(HTTPServer):
    """A collector that stores what it is sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.received: list[tuple[str, bytes]] = []
        self.status = 204

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.received.append((self.path, body))
        self.send_response(self.server.status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *args: Any) -> None: ...


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def test_heads_in_a_file_prove_the_folder(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    log = AuditLog(tmp_path / "audit", AuditConfig(anchors=[f"file:{elsewhere}"]))
    log.record("decision", {"session": "dgm_a"})
    log.close()
    report = verify(tmp_path / "audit", read_anchor(elsewhere))
    assert report.consistent and report.anchors == 1 and report.anchored_up_to is not None
    assert elsewhere.stat().st_mode & 0o777 == 0o600


def test_all_records_go_there_if_wanted(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    settings = AuditConfig(anchors=[f"file:{elsewhere}"], anchor_records=True)
    log = AuditLog(tmp_path / "audit", settings)
    log.record("decision", {"session": "dgm_a"})
    log.close()
    kinds = [json.loads(line)["kind"] for line in read_anchor(elsewhere)]
    assert kinds == ["chain", "decision", "head"]
    assert verify(tmp_path / "audit", read_anchor(elsewhere)).anchors == 1


def test_a_url_is_posted_to(receiver: Receiver) -> None:
    anchor = Anchor(f"{receiver.url}/heads")
    anchor.add(HEAD)
    assert anchor.close(10)
    assert receiver.received == [("/heads", HEAD + b"\n")]


def test_a_collector_of_otlp_logs(receiver: Receiver) -> None:
    anchor = Anchor(f"otlp+{receiver.url}")
    anchor.add(HEAD)
    assert anchor.close(10)
    ((path, body),) = receiver.received
    (resource,) = json.loads(body)["resourceLogs"]
    (record,) = resource["scopeLogs"][0]["logRecords"]
    assert path == "/v1/logs"
    assert record["body"]["stringValue"] == HEAD.decode()
    assert record["timeUnixNano"] == "1794972662123000000"


def test_syslog() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.settimeout(10)
        anchor = Anchor(f"syslog://127.0.0.1:{listening.getsockname()[1]}")
        anchor.add(HEAD)
        assert anchor.close(10)
        assert b"dragoman-audit: " + HEAD in listening.recv(65536)


def test_a_place_that_refuses_is_tried_again(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anchors, "FIRST_PAUSE", 0.01)
    refused, sent, post = threading.Event(), threading.Event(), sender(receiver.url)
    receiver.status = 503

    def send(line: bytes) -> None:
        try:
            post(line)
        except OSError:
            receiver.status = 204
            refused.set()
            raise
        sent.set()

    anchor = Anchor(f"{receiver.url}/?token=secret-value", send)
    assert "secret-value" not in anchor.place
    anchor.add(HEAD)
    assert refused.wait(10)
    assert sent.wait(10)
    assert [body for _, body in receiver.received] == [HEAD + b"\n"] * 2


def test_the_queue_of_a_dead_place_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anchors, "QUEUE", 100)

    def refuse(line: bytes) -> None:
        raise OSError("nobody is there")

    anchor = Anchor("test", refuse)
    for number in range(1000):
        anchor.add(b"%d" % number)
    assert anchor.waiting == 100
    assert not anchor.close(0.1)
    assert anchor.problem == "nobody is there"


def test_an_answer_that_is_no_http_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anchors, "FIRST_PAUSE", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(10)
        anchor = Anchor(f"http://127.0.0.1:{listening.getsockname()[1]}")
        anchor.add(HEAD)
        for answer in (
            b"220 mail.example.org ESMTP\r\n\r\n",
            b"HTTP/1.1 204 OK\r\ncontent-length: 0\r\n\r\n",
        ):
            connection, _ = listening.accept()
            with connection:
                connection.settimeout(10)
                received = b""
                while HEAD not in received:
                    received += connection.recv(65536)
                connection.sendall(answer)
        assert anchor.close(10)


def test_a_line_that_is_refused_for_good_is_dropped_and_told(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    receiver.status = 413
    anchor = Anchor(f"{receiver.url}/?token=secret-value")
    anchor.add(HEAD)
    anchor.add(HEAD)
    assert anchor.close(10)
    assert [body for _, body in receiver.received] == [HEAD + b"\n"] * 2
    assert caplog.text.count("refuses a line") == 1
    assert anchor.problem is not None


def test_a_record_that_is_too_long_for_syslog_does_not_hold_up_heads() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.settimeout(10)
        anchor = Anchor(f"syslog://127.0.0.1:{listening.getsockname()[1]}")
        anchor.add(HEAD.replace(b'"head"', b'"decision"') + b"x" * 100_000)
        anchor.add(HEAD)
        assert anchor.close(10)
        assert HEAD in listening.recv(65536)


def test_records_give_way_to_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anchors, "QUEUE", 3)
    refused, sent, ready = threading.Event(), [], threading.Event()

    def send(line: bytes) -> None:
        if not ready.is_set():
            refused.set()
            assert ready.wait(10)
        sent.append(line)

    anchor, record = Anchor("test", send), HEAD.replace(b'"head"', b'"decision"')
    heads = [HEAD.replace(b'"n":3', b'"n":%d' % number) for number in range(4)]
    for line in (heads[0], record, heads[1], record, record, heads[2], record, record):
        anchor.add(line)
    assert refused.wait(10)
    ready.set()
    assert anchor.close(10)
    assert sent == heads[:3]


def test_a_file_that_takes_a_part_gets_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, full = os.write, [True]

    def half(descriptor: int, data: bytes) -> int:
        if len(data) < 30 and full:
            full.clear()
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data[: max(1, len(data) // 2)])

    send = sender(f"file:{tmp_path / 'heads'}")
    monkeypatch.setattr("dragoman.audit.anchors.os.write", half)
    with pytest.raises(OSError, match="No space"):
        send(HEAD)
    send(HEAD)
    monkeypatch.undo()
    assert HEAD in (tmp_path / "heads").read_bytes().splitlines()


@pytest.mark.parametrize("place", ["ftp://x", "heads.ndjson", "file:relative", ""])
def test_an_unknown_place_is_told(place: str) -> None:
    with pytest.raises(ConfigError, match=r"audit\.anchors"):
        sender(place)
