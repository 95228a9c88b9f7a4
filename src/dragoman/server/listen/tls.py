"""The TLS certificate, reloaded when its files change.

Each connection gets the context that is current when it is accepted, so a reload ends no connection. If certificate and
key do not match, as may happen while they are replaced, the previous certificate stays in use.
"""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from dragoman.atomic_file import Stamp, stamp_of
from dragoman.config.errors import ConfigError

log = logging.getLogger(__name__)


class Certificate:
    def __init__(self, chain: str, key: str) -> None:
        self._files = (Path(chain).expanduser(), Path(key).expanduser())
        self._seen = self._stamp()
        self.on_change: Callable[[Path, str, str], None] = lambda file, before, after: None
        """Called with the file and its hashes when another certificate is used."""
        self._hash = ""
        self.context = self._load()

    def refresh(self) -> None:
        """Read the files again if they have changed."""
        if self._stamp() != self._seen:
            self.reload()

    def reload(self) -> None:
        self._seen = self._stamp()
        before = self._hash
        try:
            self.context = self._load()
        except ConfigError as error:
            log.error("certificate could not be reloaded; keeping the previous one: %s", error)
        else:
            log.info("certificate loaded", extra={"file": str(self._files[0])})
            if self._hash != before:
                self.on_change(self._files[0], before, self._hash)

    def _load(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["h2", "http/1.1"])
        chain, key = self._files
        try:
            # An empty passphrase instead of a prompt: a server has no user to type one.
            context.load_cert_chain(chain, key, password=lambda: b"")
            self._hash = sha256(chain.read_bytes()).hexdigest()
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"the certificate in {chain} and {key}: {error}") from error
        return context

    def _stamp(self) -> tuple[Stamp | None, ...]:
        return tuple(stamp_of(file) for file in self._files)
