"""What the lines of a prompt make the scripted agent do: one function per directive, one table.

A directive that learns something reports it as a message chunk ``NAME JSON``, so that a test can read it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from support.agents.scripted_connection import Connection, RpcError

    Params = dict[str, Any]
else:
    from scripted_connection import Connection, RpcError

OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "always", "name": "Always allow", "kind": "allow_always"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


class Turn:
    """One prompt while it runs."""

    def __init__(
        self,
        connection: Connection,
        session: str,
        request_id: Any,
        params: Params,
        freeze: Callable[[], None],
    ) -> None:
        self.connection = connection
        self.session = session
        self.request_id = request_id
        self.params = params
        self.freeze = freeze
        self.cancelled = threading.Event()
        self.finished = threading.Event()
        self.request_cancelled = False
        self.result: Params | None = None

    def say(self, text: str) -> None:
        self.connection.say(self.session, text)

    def report(self, name: str, value: Any) -> None:
        self.say(f"{name} {json.dumps(value, ensure_ascii=False)}")

    def ask(self, method: str, params: Params) -> Params:
        return self.connection.request(method, {"sessionId": self.session, **params})


def run_script(turn: Turn, scripts: dict[str, str]) -> Params:
    blocks = turn.params.get("prompt") or []
    text = "\n".join(block.get("text", "") for block in blocks if block.get("type") == "text")
    text = scripts.get(text, text)
    for line in filter(None, text.split("\n")):
        name, _, rest = line.partition(" ")
        directive = DIRECTIVES.get(name)
        if directive is None:
            turn.say(line)
        else:
            directive(turn, rest)
        if turn.result is not None:
            return turn.result
    if turn.request_cancelled:
        raise RpcError(-32800, "Request cancelled")
    return {"stopReason": "cancelled" if turn.cancelled.is_set() else "end_turn"}


# Output


def think(turn: Turn, rest: str) -> None:
    turn.connection.say(turn.session, rest, "agent_thought_chunk")


def update(turn: Turn, rest: str) -> None:
    turn.connection.update(turn.session, json.loads(rest))


def raw(turn: Turn, rest: str) -> None:
    line = rest.replace("{sid}", turn.session).replace("{id}", json.dumps(turn.request_id))
    turn.connection.send_bytes(line.encode() + b"\n")


def flood(turn: Turn, rest: str) -> None:
    count, size = map(int, rest.split())
    for number in range(count):
        turn.say(f"{number} ".ljust(size, "."))


def garbage(turn: Turn, rest: str) -> None:
    for _ in range(int(rest or 1)):
        turn.connection.send_bytes(b"Loading plugins... {not json\n")


def bad_utf8(turn: Turn, rest: str) -> None:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "BAD"}}
    message = {"jsonrpc": "2.0", "method": "session/update"}
    line = json.dumps({**message, "params": {"sessionId": turn.session, "update": update}})
    turn.connection.send_bytes(line.encode().replace(b"BAD", b"\xff\xfe") + b"\n")


def half_line(turn: Turn, rest: str) -> None:
    turn.connection.send_bytes(b'{"jsonrpc":"2.0","method":"session/upd')


def stderr(turn: Turn, rest: str) -> None:
    count = int(rest)
    sys.stderr.write(("noise " * 20 + "\n") * (count // 121) + "last words on stderr\n")
    sys.stderr.flush()


def mutter(turn: Turn, rest: str) -> None:
    """What a talkative agent writes beside the protocol."""
    sys.stderr.write(f"got: {rest}\n")
    sys.stderr.flush()
    turn.connection.send_bytes(f"got: {rest}\n".encode())


def late_update(turn: Turn, rest: str) -> None:
    turn.connection.after_response(lambda: turn.say(rest or "late"))


def echo_params(turn: Turn, rest: str) -> None:
    turn.report("echo-params", turn.params)


# Tool calls and permissions


def tool(turn: Turn, rest: str) -> None:
    name, _, status = rest.partition(" ")
    tool_open(turn, name)
    done = {"sessionUpdate": "tool_call_update", "toolCallId": name, "status": status or "completed"}
    turn.connection.update(turn.session, done)


def tool_open(turn: Turn, rest: str) -> None:
    call = {"sessionUpdate": "tool_call", "toolCallId": rest, "title": f"Tool {rest}", "kind": "execute"}
    turn.connection.update(turn.session, {**call, "status": "in_progress"})


def tool_output(turn: Turn, rest: str) -> None:
    """A tool call that ends with so many bytes of output."""
    name, _, size = rest.partition(" ")
    tool_open(turn, name)
    done = {"sessionUpdate": "tool_call_update", "toolCallId": name, "status": "completed"}
    turn.connection.update(turn.session, {**done, "rawOutput": "x" * int(size)})


def permission_params(rest: str) -> Params:
    return {
        "toolCall": {"toolCallId": "call-1", "title": "Run it", "kind": "execute", "status": "pending"},
        "options": OPTIONS,
        **(json.loads(rest) if rest else {}),
    }


def permission(turn: Turn, rest: str) -> None:
    turn.report("permission", turn.ask("session/request_permission", permission_params(rest)))


def ask(turn: Turn, rest: str) -> None:
    """As `permission`, without telling what came of it."""
    turn.ask("session/request_permission", permission_params(rest))


def permission_no_wait(turn: Turn, rest: str) -> None:
    turn.connection.ask("session/request_permission", {"sessionId": turn.session, **permission_params(rest)})


def permission_flood(turn: Turn, rest: str) -> None:
    """Ask as often as `rest` says without waiting, then tell what came of the last question.

    After the number there may be more of the tool call, as JSON, in which `{}` is the number of the question.
    """
    asked = None
    count, _, more = rest.partition(" ")
    for number in range(int(count)):
        told = json.loads(more.replace("{}", str(number))) if more else {}
        tool = {
            "toolCallId": f"call-{number}",
            "title": "Run it",
            "kind": "execute",
            "status": "pending",
            **told,
        }
        params = {"sessionId": turn.session, "toolCall": tool, "options": OPTIONS}
        asked = turn.connection.ask("session/request_permission", params)
    turn.report("permission", turn.connection.wait_for(asked))


def cancel_request(turn: Turn, rest: str) -> None:
    """Ask, wait for the file `rest` if there is one, then withdraw the question."""
    params = {"sessionId": turn.session, **permission_params("")}
    asked = turn.connection.ask("session/request_permission", params)
    if rest:
        wait_file(turn, rest)
    turn.connection.notify("$/cancel_request", {"requestId": asked})
    turn.report("cancel-request", turn.connection.wait_for(asked))


# Client services


def fs_read(turn: Turn, rest: str) -> None:
    turn.report("fsread", turn.ask("fs/read_text_file", {"path": rest}))


def fs_write(turn: Turn, rest: str) -> None:
    path, _, content = rest.partition(" ")
    turn.report("fswrite", turn.ask("fs/write_text_file", {"path": path, "content": content}))


def create_terminal(turn: Turn, rest: str) -> Any:
    command, *arguments = rest.split()
    created = turn.ask("terminal/create", {"command": command, "args": arguments})
    turn.report("terminal/create", created)
    return created.get("result", {}).get("terminalId")


def terminal(turn: Turn, rest: str) -> None:
    handle = create_terminal(turn, rest)
    if handle is not None:
        for method in ("terminal/wait_for_exit", "terminal/output", "terminal/release"):
            turn.report(method, turn.ask(method, {"terminalId": handle}))


def terminal_keep(turn: Turn, rest: str) -> None:
    handle = create_terminal(turn, rest or "sleep 1000")
    call = {"sessionUpdate": "tool_call", "toolCallId": "term", "title": "Terminal", "status": "in_progress"}
    content = [{"type": "terminal", "terminalId": handle}]
    turn.connection.update(turn.session, {**call, "content": content})


def terminal_kill(turn: Turn, rest: str) -> None:
    handle = create_terminal(turn, rest or "sleep 1000")
    for method in ("terminal/kill", "terminal/release"):
        turn.report(method, turn.ask(method, {"terminalId": handle}))


def elicit(turn: Turn, rest: str) -> None:
    asked = {"message": "Your name?", "mode": "form", "requestedSchema": FORM}
    turn.report("elicit", turn.ask("elicitation/create", {**asked, **(json.loads(rest) if rest else {})}))


def elicit_for_prompt(turn: Turn, rest: str) -> None:
    """Scoped to the client's request instead of to the session."""
    asked = {"requestId": turn.request_id, "message": "Your name?", "mode": "form", "requestedSchema": FORM}
    turn.report("elicit", turn.connection.request("elicitation/create", asked))


def request(turn: Turn, rest: str) -> None:
    method, _, params = rest.partition(" ")
    turn.report("request", turn.connection.request(method, replaced(turn, params)))


def request_no_wait(turn: Turn, rest: str) -> None:
    method, _, params = rest.partition(" ")
    turn.connection.ask(method, replaced(turn, params))


def notify(turn: Turn, rest: str) -> None:
    method, _, params = rest.partition(" ")
    turn.connection.notify(method, replaced(turn, params))


def replaced(turn: Turn, text: str) -> Any:
    return json.loads(text.replace("{sid}", turn.session) or "{}")


# How a turn ends


def sleep_until_cancel(turn: Turn, rest: str) -> None:
    turn.say(rest or "sleeping")
    turn.cancelled.wait()


def ignore_cancel(turn: Turn, rest: str) -> None:
    turn.say(rest or "ignoring")
    threading.Event().wait()


def cancel_error(turn: Turn, rest: str) -> None:
    sleep_until_cancel(turn, rest)
    raise RpcError(-32603, "The operation was aborted", {"name": "AbortError"})


def cancel_end_turn(turn: Turn, rest: str) -> None:
    sleep_until_cancel(turn, rest)
    turn.result = {"stopReason": "end_turn"}


def cancel_then_release(turn: Turn, rest: str) -> None:
    """After the cancel, wait for the file `rest`, say something, and only then end the turn."""
    sleep_until_cancel(turn, "")
    wait_file(turn, rest)
    turn.say("after the cancel")


def stop(turn: Turn, rest: str) -> None:
    turn.result = {"stopReason": rest}


def result(turn: Turn, rest: str) -> None:
    turn.result = json.loads(rest)


def error(turn: Turn, rest: str) -> None:
    code, _, message = rest.partition(" ")
    raise RpcError(int(code), message, {"from": "script", "sessionId": turn.session, "big": 2**60})


# How a process ends


def crash(turn: Turn, rest: str) -> None:
    sys.stderr.write("Traceback: the scripted agent crashes as told\n")
    sys.stderr.flush()
    os._exit(int(rest or 1))


def crash_once(turn: Turn, rest: str) -> None:
    """Unless the file `rest` says that it crashed before."""
    if not os.path.exists(rest):
        touch(turn, rest)
        crash(turn, "")


def kill(turn: Turn, rest: str) -> None:
    os.kill(os.getpid(), getattr(signal, f"SIG{rest.removeprefix('SIG')}"))


def hang(turn: Turn, rest: str) -> None:
    """Stop reading stdin too: the process takes nothing more and says nothing more."""
    turn.say("hanging")
    turn.freeze()
    threading.Event().wait()


def close_stdout(turn: Turn, rest: str) -> None:
    os.close(sys.stdout.fileno())
    threading.Event().wait()


def orphan(turn: Turn, rest: str) -> None:
    """A child in its own session that survives its parent unless it is ended."""
    import subprocess

    child = subprocess.Popen(
        ["sleep", "1000"], start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    turn.report("orphan", child.pid)


def child(turn: Turn, rest: str) -> None:
    import subprocess

    started = subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    turn.report("child", started.pid)


# Questions about itself, and order among several peers


def environment(turn: Turn, rest: str) -> None:
    turn.report("env", os.environ.get(rest))


def shell(turn: Turn, rest: str) -> None:
    """Try something in the place where the agent runs."""
    import subprocess

    done = subprocess.run(
        ["sh", "-c", rest], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    turn.report("sh", {"code": done.returncode, "out": done.stdout.strip(), "err": done.stderr.strip()})


def touch(turn: Turn, rest: str) -> None:
    with open(rest, "a"):
        pass


def wait_file(turn: Turn, rest: str) -> None:
    while not os.path.exists(rest):
        time.sleep(0.01)


DIRECTIVES: dict[str, Callable[[Turn, str], None]] = {
    "say": Turn.say,
    "think": think,
    "update": update,
    "raw": raw,
    "flood": flood,
    "big": lambda turn, rest: turn.say("x" * int(rest)),
    "garbage": garbage,
    "badutf8": bad_utf8,
    "half-line": half_line,
    "stderr": stderr,
    "late-update": late_update,
    "echo-params": echo_params,
    "tool": tool,
    "toolopen": tool_open,
    "tool-output": tool_output,
    "permission": permission,
    "ask": ask,
    "permission-nowait": permission_no_wait,
    "permission-flood": permission_flood,
    "cancel-request": cancel_request,
    "fsread": fs_read,
    "fswrite": fs_write,
    "terminal": terminal,
    "terminal-keep": terminal_keep,
    "terminal-kill": terminal_kill,
    "elicit": elicit,
    "elicit-for-prompt": elicit_for_prompt,
    "request": request,
    "request-nowait": request_no_wait,
    "notify": notify,
    "sleep-until-cancel": sleep_until_cancel,
    "ignore-cancel": ignore_cancel,
    "cancel-error": cancel_error,
    "cancel-endturn": cancel_end_turn,
    "cancel-then-release": cancel_then_release,
    "stop": stop,
    "result": result,
    "error": error,
    "mutter": mutter,
    "crash": crash,
    "crash-once": crash_once,
    "kill": kill,
    "hang": hang,
    "close-stdout": close_stdout,
    "exit-clean": lambda turn, rest: os._exit(0),
    "orphan": orphan,
    "child": child,
    "env": environment,
    "pid": lambda turn, rest: turn.report("pid", os.getpid()),
    "cwd": lambda turn, rest: turn.report("cwd", os.getcwd()),
    "sh": shell,
    "touch": touch,
    "wait-file": wait_file,
}
