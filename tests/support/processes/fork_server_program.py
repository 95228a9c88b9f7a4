"""Programs of ours that have already loaded what they need: each is forked from this process when it is asked for.

    fork_server_program.py gateway|builtin SOCKET      until stdin ends
    fork_server_program.py compile                     loads all of it once, so that Python has it compiled

A connection sends {"arguments", "env", "cwd"} with three descriptors (stdin, stdout, stderr) and gets the pid as a line,
and the exit code as another one when the program has ended. Loading takes up to seconds of processor time, and tests
start thousands of them; it is done when the first is asked for. How a program starts by itself is tested with its
command line (tests/cli).
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import select
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterator

import dragoman

sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from support.processes.kill_at_line import KILL_AT, kill_at

REQUEST_BYTES = 1 << 20
LOADED = {
    "gateway": (
        "dragoman.cli.entry",
        "cryptography.hazmat.primitives.asymmetric.ed25519",
        "grp",
        "pwd",
        "uvloop",
    ),
    "builtin": (
        "dragoman.builtin.__main__",
        "dragoman.builtin.models.llm",
        "dragoman.builtin.loop",
        "dragoman.builtin.mcp.servers",
        "dragoman.builtin.models.providers",
        "dragoman.builtin.server",
        "pydantic_ai.models.anthropic",
        "pydantic_ai.models.google",
        "pydantic_ai.models.openai",
    ),
}
"""By program; the first has its `main`. A gateway has all of ours too, see `gateway_modules`."""

Main = Callable[[], int | None]


def load(program: str) -> Main:
    gc.disable()
    modules = [importlib.import_module(name) for name in LOADED[program]]
    for name in gateway_modules() if program == "gateway" else ():
        importlib.import_module(name)
    WARM_UP[program]()
    gc.enable()
    gc.freeze()  # no child looks through it, and so copies it
    main: Main = modules[0].main
    return main


def gateway_modules() -> Iterator[str]:
    """All of ours but the built-in agent: a list of what a gateway needs would miss what is added to it."""
    for module in pkgutil.walk_packages(dragoman.__path__, "dragoman."):
        if module.name.split(".")[1] != "builtin" and not module.name.endswith(".__main__"):
            yield module.name


def warm_up_settings() -> None:
    """How types are converted is worked out at the first use."""
    import msgspec

    from dragoman.config.model import Config

    msgspec.convert({}, Config)


def warm_up_models() -> None:
    """What the libraries put off until a model answers for the first time."""
    import anthropic._models
    import anthropic.types
    import openai._models
    import openai.types.responses
    from google.genai.types import GenerateContentResponse
    from pydantic_ai.messages import ModelMessagesTypeAdapter

    ModelMessagesTypeAdapter.validate_json("[]")
    GenerateContentResponse.model_validate({})
    for models, event in (
        (anthropic._models, anthropic.types.RawMessageStreamEvent),
        (openai._models, openai.types.responses.ResponseStreamEvent),
    ):
        models.construct_type(type_=event, value={"type": "error"})


WARM_UP = {"gateway": warm_up_settings, "builtin": warm_up_models}


def serve(program: str, path: str) -> None:
    main: Main | None = None
    wakeup, woken = os.pipe()
    os.set_blocking(woken, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
    children: dict[int, socket.socket] = {}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        watched: list[int | socket.socket] = [0, wakeup, listener]
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select(watched, [], [])
            if 0 in ready:
                return
            if wakeup in ready:
                os.read(wakeup, 4096)
                report_exits(children)
            if listener in ready:
                main = main or load(program)
                fork_child(main, listener, children)


def fork_child(main: Main, listener: socket.socket, children: dict[int, socket.socket]) -> None:
    connection, _ = listener.accept()
    data, descriptors, _, _ = socket.recv_fds(connection, REQUEST_BYTES, 3)
    pid = os.fork()
    if pid == 0:
        run_child(main, json.loads(data), descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    children[pid] = connection
    connection.sendall(b"%d\n" % pid)


def run_child(main: Main, request: dict[str, object], descriptors: list[int]) -> None:
    """The child's whole life; never returns."""
    code: object = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        os.closerange(3, 1024)
        os.environ.clear()
        os.environ.update(request["env"])  # type: ignore[call-overload]
        os.chdir(str(request["cwd"]))
        sys.argv = ["dragoman", *request["arguments"]]  # type: ignore[misc]
        if killing := os.environ.pop(KILL_AT, ""):
            kill_at(killing)
        code = main()
    except SystemExit as leaving:
        code = leaving.code
    except BaseException:
        traceback.print_exc()
    finally:
        threading._shutdown()  # type: ignore[attr-defined]  # as an interpreter ends: wait for threads first
        atexit._run_exitfuncs()
        os._exit(code if isinstance(code, int) else int(code is not None))


def report_exits(children: dict[int, socket.socket]) -> None:
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with children.pop(pid) as connection:
            try:
                connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
            except BrokenPipeError:
                pass  # the client has left


if __name__ == "__main__":
    if sys.argv[1] == "compile":
        for name in LOADED:
            load(name)
    else:
        serve(sys.argv[1], sys.argv[2])
