"""The follower: prints the output of a command that runs elsewhere, and exits with its exit code.

A client runs this file in one of its terminals as `python -I -S follow.py SOCKET ID`. The file imports only the
standard library and nothing of Dragoman, so that it starts in a few milliseconds. The gateway sends `LENGTH` and a line
feed before each piece of output, and `=CODE` at the end.
"""

from __future__ import annotations

import os
import socket
import sys

LOST = 1
"""Exit code when the gateway ends before the command does."""
READ_BYTES = 65536


def main(path: str, follower_id: str) -> int:
    folder, name = os.path.split(path)
    os.chdir(folder)  # a full path may exceed the kernel's limit of about a hundred bytes
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(name)
            connection.sendall(follower_id.encode() + b"\n")
            with connection.makefile("rb", READ_BYTES) as told:
                return _print(told)
        except OSError as error:
            sys.stderr.write(f"Dragoman does not answer: {error}\n")
            return LOST


def _print(told) -> int:  # type: ignore[no-untyped-def]  # typing is not imported: it costs as much as all the rest
    while head := told.readline():
        if head.startswith(b"="):
            return int(head[1:])
        left = int(head)
        while left:
            part = told.read1(min(left, READ_BYTES))
            if not part:
                break
            left -= len(part)
            while part:
                part = part[os.write(1, part) :]
    sys.stderr.write("Dragoman has ended; the command's end is not known\n")
    return LOST


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
