"""A mapping whose keys a peer chose: what came first is forgotten first, so that no peer can fill our memory with it."""

from __future__ import annotations

from typing import TypeVar

from dragoman.wire import limits

T = TypeVar("T")


class BoundedDict(dict[str, T]):
    """At most `most` entries; a key that is longer than an id has reason to be is not remembered at all."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: str, value: T) -> None:
        if len(key) > limits.PEER_ID_LENGTH:
            return
        super().__setitem__(key, value)
        if len(self) > self._most:
            del self[next(iter(self))]
