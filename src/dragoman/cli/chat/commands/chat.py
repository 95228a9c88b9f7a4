"""What commands use of a conversation."""

from __future__ import annotations

from collections.abc import Coroutine, Sequence
from typing import Any, Protocol

from dragoman.cli.chat.lines.markdown import Line
from dragoman.cli.chat.opening import Wanted
from dragoman.client.gateway import Gateway
from dragoman.client.session import Session


class Chat(Protocol):
    @property
    def session(self) -> Session | None: ...

    @property
    def gateway(self) -> Gateway | None: ...

    @property
    def agent(self) -> str: ...

    @property
    def busy(self) -> bool: ...

    @property
    def lives_on(self) -> bool: ...

    @property
    def last_message(self) -> str: ...

    def say(self, text: str, style: str = ...) -> None: ...

    def show(self, lines: Sequence[Line]) -> None: ...

    def interrupt(self) -> None: ...

    def commands(self) -> dict[str, str]: ...

    def switch(self, wanted: Wanted) -> None: ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> object: ...
