"""The key that signs the audit: made once, private to the user, in the audit's folder.

Signatures need the `cryptography` package, which is imported with the first one: reading, appending and hashing do not.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.atomic_file import replace_file

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SECRET = "key"
PUBLIC = "key.pub"


class KeyProblem(Exception):
    """The key is gone, broken or readable by others; the text says what to do."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key that can sign."""

    public: str
    """The public key, 64 hexadecimal digits."""
    secret: Ed25519PrivateKey

    def sign(self, data: bytes) -> bytes:
        return self.secret.sign(data)


def fingerprint(public: str) -> str:
    """The short name of a public key, for people to compare."""
    return sha256(bytes.fromhex(public)).hexdigest()[:32]


def load_key(folder: Path) -> Key:
    """The key of an audit folder; made if the folder has none and was never signed."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    path = folder / SECRET
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        if (folder / PUBLIC).exists():
            raise KeyProblem(
                f"The audit's key {path} is gone. Bring it back from a back-up, or run "
                "`dragoman audit key --new`: what was signed before stays provable with the old public key."
            ) from None
        return new_key(folder)
    except OSError as error:
        raise KeyProblem(f"The audit's key {path} cannot be read: {error.strerror}.") from error
    with os.fdopen(descriptor, "rb") as file:
        facts = os.fstat(file.fileno())
        if not stat.S_ISREG(facts.st_mode):
            raise KeyProblem(f"The audit's key {path} is no regular file: remove it, and bring the key back.")
        content = file.read(1000)
    if facts.st_mode & 0o077 or facts.st_uid != os.getuid():
        raise KeyProblem(
            f"The audit's key {path} can be read by others, who could sign in your name: run "
            f"`chmod 600 {path}` and, if it may have been read, `dragoman audit key --new`."
        )
    try:
        secret = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(content.decode().strip()))
    except ValueError as error:
        raise KeyProblem(f"The audit's key {path} is damaged. Bring it back from a back-up.") from error
    public = _public(secret)
    if not (folder / PUBLIC).exists():  # the process that made the key was killed before it wrote this
        replace_file(folder / PUBLIC, public.encode() + b"\n")
    return Key(public, secret)


def draft_key() -> Key:
    """A key that is not used yet."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    secret = Ed25519PrivateKey.generate()
    return Key(_public(secret), secret)


def new_key(folder: Path, key: Key | None = None) -> Key:
    """Store a key where there is none; of two processes that do so at once, the first one's is used."""
    key = key or draft_key()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = folder / f".{SECRET}-{os.getpid()}"
    replace_file(draft, key.secret.private_bytes_raw().hex().encode() + b"\n")
    try:
        os.link(draft, folder / SECRET)
    except FileExistsError:
        return load_key(folder)
    finally:
        with suppress(OSError):
            draft.unlink()
    replace_file(folder / PUBLIC, key.public.encode() + b"\n")
    return key


def replace_key(folder: Path, key: Key | None = None) -> Key:
    """Put the old key aside, under its fingerprint, and use another one."""
    with suppress(FileNotFoundError):
        old = read_public(folder / PUBLIC)
        (folder / SECRET).unlink(missing_ok=True)
        (folder / PUBLIC).rename(folder / f"old-{fingerprint(old)}.pub")
    return new_key(folder, key)


def public_keys(folder: Path) -> dict[str, str]:
    """The public keys that this folder knows, present and former, by fingerprint."""
    known: dict[str, str] = {}
    for path in sorted(folder.glob("*.pub")):
        with suppress(OSError, ValueError):
            public = read_public(path)
            known[fingerprint(public)] = public
    return known


def read_public(path: Path) -> str:
    """A stored public key; raises `OSError`, or `ValueError` if it is none."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError(f"{path} is no regular file")
        public = file.read(1000).decode(errors="replace").strip()
    if len(public) != 64 or set(public) - set("0123456789abcdef"):
        raise ValueError(f"{path} holds no public key")
    return public


def is_signed_by(public: str, data: bytes, signature: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(public)).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True


def _public(secret: Ed25519PrivateKey) -> str:
    return secret.public_key().public_bytes_raw().hex()
