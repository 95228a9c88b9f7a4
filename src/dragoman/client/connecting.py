"""`connect`: chooses the way to a gateway."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path
from types import TracebackType
from typing import Any

from dragoman.client.channel import Channel
from dragoman.client.errors import CannotConnect
from dragoman.client.gateway import Gateway
from dragoman.client.session import OnQuestion, Session


def connect(
    to: str | os.PathLike[str] | None = None,
    *,
    token: str | None = None,
    ca: str | None = None,
    on_question: OnQuestion | None = None,
) -> Connecting:
    """Connect to a gateway: `async with connect() as gateway`.

    `to` is a URL as `dragoman serve` prints it, the path of a unix socket, `"serve"` for the socket of this user's
    `serve`, or `"child"` for a gateway in a child process. By default it is `serve` if one listens, else a child.
    `on_question` answers the questions of all sessions, which then are no events; it may be async.
    """
    return Connecting(to, token, ca, on_question)


class Connecting:
    """What `connect` returns: use it in `async with`, or await it and call `aclose` at the end."""

    def __init__(
        self,
        to: str | os.PathLike[str] | None,
        token: str | None,
        ca: str | None,
        on_question: OnQuestion | None,
    ) -> None:
        self._to = to
        self._token = token
        self._ca = ca
        self._on_question = on_question
        self._gateway: Gateway | None = None

    def __await__(self) -> Generator[Any, None, Gateway]:
        return self._open().__await__()

    async def __aenter__(self) -> Gateway:
        self._gateway = await self._open()
        return self._gateway

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._gateway is not None
        await self._gateway.aclose()

    async def _open(self) -> Gateway:
        if self._to is None:
            path = _serve_socket()
            if path.exists():
                try:
                    return await self._through(_socket(path))
                except CannotConnect:
                    pass  # left by a `serve` that was killed
            return await self._through(_child())
        return await self._through(self._channel(self._to))

    def _channel(self, to: str | os.PathLike[str]) -> Channel:
        if to == "child":
            return _child()
        if to == "serve":
            return _socket(_serve_socket())
        if isinstance(to, str) and "://" in to:
            from dragoman.client.network import Url

            return Url(to, self._token, self._ca)
        path = Path(os.fspath(to))
        if not path.is_absolute():
            raise CannotConnect(
                f"{os.fspath(to)!r} is no way to a gateway: give a URL, the full path of a socket, 'serve' or 'child'"
            )
        return _socket(path)

    async def _through(self, channel: Channel) -> Gateway:
        from dragoman.client.network import Restored

        gateway = await Gateway(channel, on_question=self._on_question).open()
        if isinstance(channel, Restored):
            channel.on_return = lambda connected: _tell(gateway, connected)
        return gateway


def _tell(gateway: Gateway, connected: bool) -> None:
    text = "connected again" if connected else "the connection to the gateway was lost; connecting again"
    for session in gateway.connection.sessions.values():
        if isinstance(session, Session):
            session.told(text, "info" if connected else "warning")


def _serve_socket() -> Path:
    from dragoman.config.errors import ConfigError
    from dragoman.config.paths import find_paths

    try:
        return find_paths().socket
    except ConfigError as error:
        raise CannotConnect(str(error)) from error


def _socket(path: Path) -> Channel:
    from dragoman.client.network import UnixSocket

    return UnixSocket(path)


def _child() -> Channel:
    from dragoman.client.child import Child

    return Child()
