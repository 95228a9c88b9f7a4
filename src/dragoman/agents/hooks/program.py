"""The hook program: an agent runs it before each tool call, with the call as JSON on stdin.

It runs as `python -I -S program.py`, imports little of the standard library and nothing of Dragoman, so that it starts
in some ten milliseconds. The gateway is asked over the socket in `DRAGOMAN_HOOK` (`PATH#SECRET`): `SECRET LENGTH`, a
line feed and the call. It answers with an exit code, a line feed and a text: for code 0 the text is for stdout, else
for stderr. With 2, agents do not run the call. Whatever goes wrong here, the code is 2.
"""

import os
import sys

try:  # half the start of `socket`, which has more than is needed
    from _socket import AF_UNIX, SOCK_STREAM, socket
except ImportError:
    from socket import AF_UNIX, SOCK_STREAM, socket  # type: ignore[assignment]

DENIED = 2
READ_BYTES = 65536


def main() -> int:
    try:
        address = os.environ["DRAGOMAN_HOOK"]
        call = sys.stdin.buffer.read()
        code, text = ask(address, call)
    except KeyError:
        code, text = DENIED, "Dragoman's rules cannot be asked: DRAGOMAN_HOOK is not set."
    except BaseException as error:  # noqa: BLE001 - an agent takes any other exit code for consent
        code, text = DENIED, f"Dragoman's rules cannot be asked ({str(error) or type(error).__name__})."
    stream = sys.stdout if code == 0 else sys.stderr
    if text:
        stream.write(text if code == 0 else f"{text}\n")
        stream.flush()
    return code


def ask(address: str, call: bytes) -> "tuple[int, str]":
    path, _, secret = address.rpartition("#")
    folder, name = os.path.split(path)
    os.chdir(folder)  # a full path may exceed the kernel's limit of about a hundred bytes
    connection = socket(AF_UNIX, SOCK_STREAM)
    connection.connect(name)
    left = memoryview(f"{secret} {len(call)}\n".encode() + call)
    while left:
        left = left[connection.send(left) :]
    told = b""
    while part := connection.recv(READ_BYTES):
        told += part
    code, end, text = told.partition(b"\n")
    if not end or code not in (b"0", b"2"):
        return DENIED, "Dragoman ended before its rules decided about this call."
    return int(code), text.decode()


if __name__ == "__main__":
    os._exit(main())  # without the work of an orderly end
