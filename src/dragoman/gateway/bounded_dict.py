"""A dict for keys that a peer chose: the oldest entries are dropped, so that no peer can fill memory."""

from __future__ import annotations

from typing import TypeVar

from dragoman.wire import limits

T = TypeVar("T")


class BoundedDict(dict[str, T]):
    """At most `most` entries; a key longer than `limits.PEER_ID_LENGTH` is not stored."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: str, value: T) -> None:
        if len(key) > limits.PEER_ID_LENGTH:
            return
        super().__setitem__(key, value)
        if len(self) > self._most:
            del self[next(iter(self))]
