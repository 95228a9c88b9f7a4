"""Every address of a running gateway, given requests that are nearly right: `python -m fuzz.endpoints INPUTS [NAME…]`.

HTTP requests are well framed (`fuzz.targets` has the framing itself) and wrong in what they say: path, query, headers,
body. WebSockets, the unix socket, TCP and stdio are sent messages that were changed in the same way. A find is an answer
500, a traceback in the log, an end of the process, or memory that grows.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import os
import random
import re
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvloop

from fuzz.run import changed
from fuzz.worker import Reporter, Result, resident
from support.gateway_process import agent, clean_environment, toml
from support.serve_process import WebSocketFraming, read_head

AT_ONCE = 8
"""Connections beside each other."""
BARRIER = 100
"""Messages until the gateway is asked whether it has read them."""
CHUNK = 1000
"""Inputs between two reports."""
PATIENCE = 60.0
WARM_UP = 2000
"""Inputs until memory is measured for the first time."""
ENDLESS = 10**12
EMPTY = (b"204", b"304")
"""Answers that have no body."""
TOKEN = "t" * 32
OVERLAP = 2000
"""Bytes of the log that are read once more, because a line may have been half written."""
NOWHERE = "/no/such/folder"
SESSION = "dgm_aaaaaaaaaaaaaaaaaaaaaaaa"
JSON = "application/json"

_INITIALIZE = (
    '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}'
)
ACP = [
    _INITIALIZE,
    f'{{"jsonrpc":"2.0","id":1,"method":"session/new","params":{{"cwd":"{NOWHERE}","mcpServers":[]}}}}',
    f'{{"jsonrpc":"2.0","id":"a","method":"session/load","params":{{"sessionId":"{SESSION}","cwd":"{NOWHERE}"}}}}',
    f'{{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{{"sessionId":"{SESSION}",'
    '"prompt":[{"type":"text","text":"hi"}]}}',
    '{"jsonrpc":"2.0","id":3,"method":"session/list","params":{"cursor":"eyJhIjoxfQ","_meta":{"dragoman":{}}}}',
    f'{{"jsonrpc":"2.0","method":"session/cancel","params":{{"sessionId":"{SESSION}"}}}}',
    '{"jsonrpc":"2.0","id":4,"method":"session/set_config_option","params":{"sessionId":"x","configId":"m","value":1}}',
    '{"jsonrpc":"2.0","id":5,"result":{"outcome":{"outcome":"selected","optionId":"yes"}}}',
    '{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"no"}}',
    '[{"jsonrpc":"2.0","id":6,"method":"authenticate","params":{"methodId":"x"}},{"jsonrpc":"2.0","method":"x"}]',
    '{"jsonrpc":"2.0","id":7,"method":"_dragoman/x","params":{"sessionId":null}}',
]
BRIDGE = [
    '{"type":"list_sessions","requestId":"1","limit":10,"cursor":null}',
    f'{{"type":"load_session","requestId":"2","sessionId":"{SESSION}","after":0}}',
    f'{{"type":"send_message","requestId":"3","messageId":"m","sessionId":"{SESSION}","content":[{{"type":"text","text":"x"}}]}}',
    f'{{"type":"answer_permission","sessionId":"{SESSION}","questionId":"q","optionId":"yes"}}',
    f'{{"type":"create_session","requestId":"4","agent":"nobody","cwd":"{NOWHERE}"}}',
    f'{{"type":"cancel","sessionId":"{SESSION}"}}',
    f'{{"type":"rename_session","sessionId":"{SESSION}","title":"t"}}',
    '{"type":"search","requestId":"5","query":"x"}',
    '{"type":"complete_path","requestId":"6","path":"/no"}',
]


@dataclass(frozen=True)
class Http:
    method: str
    path: str
    bodies: tuple[str, ...] = ()
    query: str = ""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Messages:
    """A connection that carries one message after another."""

    transport: str
    seeds: tuple[str, ...]
    path: str = ""


SESSIONS, TOKENS = "/api/sessions", "/api/tokens"
EVENTS = {"Accept": "text/event-stream", "Last-Event-ID": "1.1"}
CONNECTION = {"Acp-Connection-Id": "abc", "Acp-Session-Id": SESSION}
ENDPOINTS: dict[str, Http | Messages] = {
    "page": Http("GET", "/", query="x=1", headers={"Accept": "text/html", "Cookie": "dragoman=a"}),
    "asset": Http("GET", "/assets/index.js", headers={"Accept-Encoding": "gzip, br", "If-None-Match": '"x"'}),
    "healthz": Http("GET", "/healthz"),
    "readyz": Http("GET", "/readyz", query=f"token={TOKEN}"),
    "metrics": Http("GET", "/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"}),
    "acp post": Http("POST", "/acp", tuple(ACP), headers=CONNECTION),
    "acp get": Http("GET", "/acp", headers={**EVENTS, **CONNECTION}),
    "acp delete": Http("DELETE", "/acp", headers=CONNECTION),
    "acp agent": Http("POST", "/acp/scripted", tuple(ACP[1:]), headers=CONNECTION),
    "acp rpc": Http("POST", "/acp/rpc", tuple(ACP), query="client_id=one"),
    "acp sse": Http("GET", "/acp/sse", query="client_id=one", headers=EVENTS),
    "acp inline": Http("POST", "/acp/inline", tuple(ACP)),
    "acp events": Http("GET", "/acp/events", query=f"session={SESSION}", headers=EVENTS),
    "api agents": Http("GET", "/api/agents"),
    "api limits": Http("GET", "/api/limits"),
    "api logout": Http(
        "POST", "/api/logout", ("{}",), headers={"X-Dragoman-Page": "x", "Cookie": "dragoman=y"}
    ),
    "api openapi": Http("GET", "/api/openapi.json"),
    "api docs": Http("GET", "/api/docs"),
    "api docs style": Http("GET", "/api/docs.css"),
    "api list": Http("GET", SESSIONS, query="limit=10&cwd=/"),
    "api create": Http("POST", SESSIONS, (f'{{"cwd":"{NOWHERE}","agent":"nobody","title":"t"}}',)),
    "api session": Http("GET", f"{SESSIONS}/{SESSION}"),
    "api change": Http("PATCH", f"{SESSIONS}/{SESSION}", ('{"title":"t"}', '{"mode":"m","model":null}')),
    "api delete": Http("DELETE", f"{SESSIONS}/{SESSION}"),
    "api prompt": Http(
        "POST", f"{SESSIONS}/{SESSION}/prompt", ('{"prompt":"x","wait":true}',), query="stream=1"
    ),
    "api answer": Http(
        "POST", f"{SESSIONS}/{SESSION}/questions/1", ('{"option":"yes"}', '{"decision":"allow"}')
    ),
    "api cancel": Http("POST", f"{SESSIONS}/{SESSION}/cancel", ("{}",)),
    "api close": Http("POST", f"{SESSIONS}/{SESSION}/close", ("{}",)),
    "api export": Http("GET", f"{SESSIONS}/{SESSION}/export", query="format=markdown"),
    "api tokens": Http("GET", TOKENS),
    "api new token": Http(
        "POST", TOKENS, ('{"name":"ci","role":"nobody","expires":"30d","quotas":{"turns":1}}',)
    ),
    "api end token": Http("DELETE", f"{TOKENS}/ci"),
    "websocket acp": Messages("websocket", tuple(ACP), "/acp"),
    "websocket acp agent": Messages("websocket", tuple(ACP), "/acp/scripted"),
    "websocket bridge": Messages("websocket", tuple(BRIDGE), "/bridge"),
    "unix": Messages("unix", tuple(ACP)),
    "tcp": Messages("tcp", tuple(ACP)),
    "stdio": Messages("stdio", tuple(ACP)),
}


@dataclass
class Find(Exception):
    what: str


@dataclass
class Gateway:
    process: asyncio.subprocess.Process
    home: Path
    port: int
    _read: int = 0
    """Bytes of the log in which nothing was found."""

    @property
    def resident(self) -> int:
        return resident(self.process.pid)

    def check(self) -> None:
        with (self.home / "log").open("rb") as file:
            file.seek(max(0, self._read - OVERLAP))
            log = file.read().decode(errors="replace")
            self._read = file.tell()
        if (found := re.search(r"Traceback|level=error.*", log)) is not None:
            raise Find(log[max(0, found.start() - 500) : found.start() + 3000])
        if self.process.returncode is not None:
            raise Find(f"the gateway ended with {self.process.returncode}: {log[-2000:]}")


@asynccontextmanager
async def running(*arguments: str, port: int = 0) -> AsyncIterator[Gateway]:
    with tempfile.TemporaryDirectory(prefix="dgm-") as folder:
        home = Path(folder)
        serve = {"auth_token": TOKEN, "connections_per_address": 0}
        config = {"default_agent": "scripted", "serve": serve, "agents": {"scripted": agent()}}
        (home / "config.toml").write_text(toml(config))
        with (home / "log").open("wb") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "dragoman", *arguments),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                env={**clean_environment(), "DRAGOMAN_HOME": str(home)},
                cwd=home,
                limit=64 * 2**20,
            )
        try:
            if arguments[0] == "serve":
                assert process.stdout is not None
                printed = await asyncio.wait_for(process.stdout.readline(), PATIENCE)
                port = int(re.findall(rb":(\d+)/", printed)[0])
            yield Gateway(process, home, port)
        finally:
            if process.returncode is None:
                process.terminate()
            await process.wait()


async def run(
    name: str, inputs: int, seed: int = 1, report: Callable[[Result], None] | None = None
) -> Result:
    """So many inputs for one endpoint, with a gateway of its own; `report` is told after each chunk of them."""
    endpoint = ENDPOINTS[name]
    words: tuple[str, ...] = ("serve", "--port", "0")
    port = 0
    if isinstance(endpoint, Messages) and endpoint.transport == "stdio":
        words = ("acp", "scripted", "--log-level", "warning")
    elif isinstance(endpoint, Messages) and endpoint.transport == "tcp":
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        words = ("acp", "scripted", "--port", str(port))
    total, warm = Result(0), 0
    async with running(*words, port=port) as gateway:
        if isinstance(endpoint, Http):
            made = _http_inputs(endpoint, gateway.port, seed)
        else:
            made = _message_inputs(endpoint, seed)
        while total.inputs < inputs:
            count = min(CHUNK if warm else min(max(inputs // 10, 1), WARM_UP), inputs - total.inputs)
            try:
                result = await _chunk(gateway, endpoint, list(itertools.islice(made, count)), warm)
            except Find as find:
                result = Result(0, 0, find.what)
            warm = warm or gateway.resident
            total = Result(total.inputs + result.inputs, max(total.grown, result.grown), result.find)
            if report is not None:
                report(result)
            if result.find:
                break
    return total


async def _chunk(gateway: Gateway, endpoint: Http | Messages, inputs: list[bytes], warm: int) -> Result:
    """`warm`: megabytes of the gateway after the first chunk; 0 in that."""
    if isinstance(endpoint, Http):
        await _requests(gateway, inputs)
    else:
        await _messages(gateway, endpoint, inputs)
    gateway.check()
    return Result(len(inputs), gateway.resident - warm if warm else 0)


# -- HTTP

_UNSAFE = bytes(range(0x21)) + b"\x7f"


async def _requests(gateway: Gateway, inputs: Iterable[bytes]) -> None:
    """Each is answered before the next goes out on the same connection."""
    unsent = iter(inputs)

    async def client() -> None:
        connection = None
        for request in unsent:
            connection = connection or await asyncio.open_connection("127.0.0.1", gateway.port)
            try:
                async with asyncio.timeout(PATIENCE):
                    goes_on = await _ask(request, *connection)
            except TimeoutError:
                raise Find(f"no answer to {request!r}") from None
            if not goes_on:
                connection[1].transport.abort()
                connection = None
        if connection:
            connection[1].close()

    await asyncio.gather(*(client() for _ in range(AT_ONCE)))


def _http_inputs(endpoint: Http, port: int, seed: int) -> Iterator[bytes]:
    """One part of each is changed."""
    chance = random.Random(seed)
    usual = {"Authorization": f"Bearer {TOKEN}", **endpoint.headers}
    if endpoint.bodies:
        usual["Content-Type"] = JSON
    usual["Origin"] = f"http://127.0.0.1:{port}"
    parts = {
        "path": endpoint.path.encode(),
        "query": endpoint.query.encode(),
        **{k: v.encode() for k, v in usual.items()},
    }
    bodies = [body.encode() for body in endpoint.bodies] or [b""]
    new_bodies = changed(bodies, ENDLESS, seed) if endpoint.bodies else itertools.repeat(b"")
    others = {key: changed([value or b"a=b"], ENDLESS, seed) for key, value in parts.items()}
    while True:
        said, body = dict(parts), chance.choice(bodies)
        if endpoint.bodies and chance.random() < 0.7:
            body = next(new_bodies)
        else:
            changes = [key for key in parts if key != "path" or chance.random() < 0.3]
            key = chance.choice(changes)
            said[key] = next(others[key]).translate(None, _UNSAFE)
        path = said.pop("path").removeprefix(b"/")
        target = b"/" + path + (b"?" + said.pop("query") if said.get("query") else said.pop("query", b""))
        lines = [f"{endpoint.method} ".encode() + target + b" HTTP/1.1", f"Host: 127.0.0.1:{port}".encode()]
        lines += [key.encode() + b": " + value for key, value in said.items()]
        lines += [b"Content-Length: %d" % len(body)] if body or endpoint.bodies else []
        yield b"\r\n".join(lines) + b"\r\n\r\n" + body


_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
_CLOSES = re.compile(rb"\r\nconnection: *close\r\n", re.IGNORECASE)


async def _ask(request: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Whether the connection can be used again."""
    writer.write(request)
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        status = head[9:12]
        if status == b"500":
            raise Find(f"500 for {request!r}")
        if (length := _LENGTH.search(head)) is not None:
            await reader.readexactly(int(length[1]))
        elif status not in EMPTY:
            return False  # a stream, or the end
    except (asyncio.IncompleteReadError, ConnectionError):
        return False
    return _CLOSES.search(head) is None


# -- messages


async def _messages(gateway: Gateway, endpoint: Messages, inputs: list[bytes]) -> None:
    batches = [inputs[start : start + BARRIER] for start in range(0, len(inputs), BARRIER)]
    while batches:
        line = await _Line.open(gateway, endpoint)
        try:
            while batches:
                batch = batches.pop(0)
                async with asyncio.timeout(PATIENCE):
                    if not await line.send(batch):
                        break  # refused in the gateway's own words: the next ones come on a new connection
            gateway.check()
        except TimeoutError:
            raise Find(f"not read within {PATIENCE:.0f} s: {batch!r}") from None
        finally:
            line.close()
        if endpoint.transport == "stdio" and gateway.process.returncode is not None:
            raise Find("the gateway ended")


def _message_inputs(endpoint: Messages, seed: int) -> Iterator[bytes]:
    for data in changed([text.encode() for text in endpoint.seeds], ENDLESS, seed):
        yield data.replace(b"\n", b" ")


class _Line:
    """A connection; `send` returns when the gateway has read everything, False when it has closed."""

    _numbers = itertools.count()

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        framing: WebSocketFraming | None,
        *,
        shared: bool = False,
    ) -> None:
        """`shared`: the process's own pipes, of which there is one pair only."""
        self._reader, self._writer, self._framing = reader, writer, framing
        self._shared = shared

    @classmethod
    async def open(cls, gateway: Gateway, endpoint: Messages) -> _Line:
        if endpoint.transport == "stdio":
            assert gateway.process.stdin is not None and gateway.process.stdout is not None
            return cls(gateway.process.stdout, gateway.process.stdin, None, shared=True)
        if endpoint.transport == "unix":
            path = next(gateway.home.rglob("*.sock"))
            return cls(*await asyncio.open_unix_connection(path, limit=64 * 2**20), None)
        for _ in range(200):
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port, limit=64 * 2**20)
                break
            except ConnectionRefusedError:
                await asyncio.sleep(0.05)  # `acp --port` says nothing when it listens
        if endpoint.transport == "tcp":
            return cls(reader, writer, None)
        key = base64.b64encode(os.urandom(16)).decode()
        writer.write(
            f"GET {endpoint.path}?token={TOKEN} HTTP/1.1\r\nHost: 127.0.0.1:{gateway.port}\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        status, _ = await read_head(reader)
        if status != 101:
            raise Find(f"{endpoint.path}: no WebSocket, but {status}")
        line = cls(reader, writer, WebSocketFraming())
        if endpoint.path != "/bridge":
            writer.write(WebSocketFraming().frame(_INITIALIZE.encode()))
        return line

    async def send(self, batch: list[bytes]) -> bool:
        number = next(self._numbers)
        try:
            if self._framing is not None:
                self._writer.write(b"".join(self._framing.frame(data) for data in batch))
                self._writer.write(self._framing.frame(str(number).encode(), opcode=9))
                return await self._pong(str(number).encode())
            wanted = f'"barrier {number}"'.encode()
            question = b'{"jsonrpc":"2.0","id":%b,"method":"session/list","params":{"cursor":"x"}}\n' % wanted
            self._writer.write(b"\n".join(batch) + b"\n" + question)
            while line := await self._reader.readline():
                if wanted in line:
                    return True
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        return False

    async def _pong(self, wanted: bytes) -> bool:
        while True:
            first, second = await self._reader.readexactly(2)
            size = second & 0x7F
            if size >= 126:
                size = int.from_bytes(await self._reader.readexactly(2 if size == 126 else 8))
            payload = await self._reader.readexactly(size)
            if first & 15 == 8:
                return False
            if first & 15 == 10 and payload == wanted:
                return True

    def close(self) -> None:
        if not self._shared:
            self._writer.transport.abort()


if __name__ == "__main__":
    if sys.argv[1] == "--worker":
        uvloop.run(run(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), Reporter()))
    else:
        for chosen in sys.argv[2:] or ENDPOINTS:
            print(chosen, uvloop.run(run(chosen, int(sys.argv[1]))), flush=True)
