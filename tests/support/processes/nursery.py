"""Built-in agents that have already loaded what speaks to models: each is forked from this process when it is asked for.

    nursery.py SOCKET      until stdin ends

A connection sends {"arguments", "env", "cwd"} with three descriptors (stdin, stdout, stderr) and gets the pid as a line,
and the exit code as another one when the agent has ended. Loading takes seconds of processor time, hundreds of times.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import traceback

import pydantic_ai.models.anthropic
import pydantic_ai.models.google
import pydantic_ai.models.openai  # noqa: F401

import dragoman.builtin.llm
import dragoman.builtin.loop
import dragoman.builtin.mcp_client
import dragoman.builtin.providers
import dragoman.builtin.server  # noqa: F401
from dragoman.builtin.__main__ import main

REQUEST_BYTES = 1 << 20


def serve(path: str) -> None:
    wakeup, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    children: dict[int, socket.socket] = {}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(16)
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select([0, wakeup, listener], [], [])
            if 0 in ready:
                return
            if wakeup in ready:
                os.read(wakeup, 4096)
                tell_ends(children)
            if listener in ready:
                bear(listener, children)


def bear(listener: socket.socket, children: dict[int, socket.socket]) -> None:
    connection, _ = listener.accept()
    data, descriptors, _, _ = socket.recv_fds(connection, REQUEST_BYTES, 3)
    pid = os.fork()
    if pid == 0:
        live(json.loads(data), descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    children[pid] = connection
    connection.sendall(b"%d\n" % pid)


def live(request: dict[str, object], descriptors: list[int]) -> None:
    """The child's whole life; never returns."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        os.closerange(3, 256)
        os.environ.clear()
        os.environ.update(request["env"])  # type: ignore[call-overload]
        os.chdir(str(request["cwd"]))
        sys.argv = ["dragoman.builtin", *request["arguments"]]  # type: ignore[misc]
        code = main()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def tell_ends(children: dict[int, socket.socket]) -> None:
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with children.pop(pid) as connection:
            try:
                connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
            except BrokenPipeError:
                pass  # nobody wants to know


if __name__ == "__main__":
    serve(sys.argv[1])
